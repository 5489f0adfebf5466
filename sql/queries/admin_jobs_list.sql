-- SPDX-License-Identifier: Apache-2.0
-- Jobs with ids in a range, newest first; the caller walks from range to range, so that no call reads more than it needs. Each filter
-- may be NULL. $1, $2: whether to look among the open and the finished jobs. $3, $4: the range of ids, both included. $5, $6: a range
-- of times, the second excluded: of the end or, for open jobs, of the creation. Then follow states, kinds, queues, tags (a job must
-- have all of them), the id or host of a worker, and a text within the error. $14: columns that are read only if they are named here.
-- $15: metadata that the job's must contain. $16: the batch, $17: the owner, $18: the map. The error of an open job is that of its
-- last failed attempt, as in the view jobs. A job that ended before it was due has no ready_at, and neither has a job that waits for
-- others, since it is not known when that will be due. Indexes: job_pkey, job_history_id, job_attempt_pkey.
-- params: open bool, finished bool, low int8, high int8, since timestamptz, until timestamptz, states text[], kinds text[],
-- params: queues text[], tags text[], worker text, error text, limit int4, wanted text[], metadata text, batch int8, owner text,
-- params: map text
-- shows: id number, kind text, queue text, state text, priority number wide, attempt number, created_at time extra,
-- shows: ready_at time, attempted_at time extra, finalized_at time, worker text extra, worker_id text extra,
-- shows: tags text long extra, args json long extra, metadata json long extra, result json long extra, error text long,
-- shows: progress text long extra, owner text extra
WITH named AS MATERIALIZED (
    SELECT worker_id FROM claimd.worker WHERE host = $11 OR worker_id::text = $11
), found AS (
    SELECT id, kind, queue,
           claimd.open_state(state, ready_at, attempt, flags) AS state,
           priority, attempt, generation, created_at, ready_at, NULLIF(attempted_at, 'epoch') AS attempted_at,
           NULL::timestamptz AS finalized_at, worker_id, tags, NULL::text AS error,
           CASE WHEN 'args' = ANY ($14) THEN args END AS args,
           CASE WHEN 'metadata' = ANY ($14) THEN metadata END AS metadata, NULL::jsonb AS result, owner
      FROM claimd.job
     WHERE $1 AND id BETWEEN $3 AND $4 AND ($15 IS NULL OR metadata @> $15::jsonb)
       AND ($16 IS NULL OR EXISTS (SELECT FROM claimd.batch_job m WHERE m.job_id = id AND m.batch_id = $16))
       AND ($18 IS NULL OR share_key = 'map:' || $18)
       AND ($5 IS NULL OR created_at >= $5) AND ($6 IS NULL OR created_at < $6)
    UNION ALL
    SELECT id, kind, queue, state, priority, attempt, generation, created_at,
           CASE WHEN ready_at <= finalized_at THEN ready_at END, NULLIF(attempted_at, 'epoch'), finalized_at,
           worker_id, tags, error,
           CASE WHEN 'args' = ANY ($14) THEN args END, CASE WHEN 'metadata' = ANY ($14) THEN metadata END,
           CASE WHEN 'result' = ANY ($14) THEN result END, owner
      FROM claimd.job_history
     WHERE $2 AND id BETWEEN $3 AND $4 AND retried_at IS NULL AND ($15 IS NULL OR metadata @> $15::jsonb)
       AND ($16 IS NULL OR EXISTS (SELECT FROM claimd.batch_job m WHERE m.job_id = id AND m.batch_id = $16))
       AND ($18 IS NULL OR share_key = 'map:' || $18)
       AND ($5 IS NULL OR finalized_at >= $5) AND ($6 IS NULL OR finalized_at < $6)
), listed AS (
    SELECT *
      FROM found f
     WHERE ($7 IS NULL OR state = ANY ($7)) AND ($8 IS NULL OR kind = ANY ($8)) AND ($9 IS NULL OR queue = ANY ($9))
       AND ($10 IS NULL OR tags @> $10) AND ($17 IS NULL OR owner = $17)
       AND ($11 IS NULL OR worker_id IN (SELECT n.worker_id FROM named n))
       AND ($12 IS NULL OR strpos(lower(COALESCE(error, CASE WHEN finalized_at IS NULL AND attempt > 0 THEN
                (SELECT a.error FROM claimd.job_attempt a
                  WHERE a.job_id = f.id AND a.generation = f.generation AND a.error IS NOT NULL AND a.outcome <> 'snoozed'
                  ORDER BY a.fence DESC LIMIT 1) END)), lower($12)) > 0)
     ORDER BY id DESC
     LIMIT $13
)
SELECT l.id, l.kind, l.queue, l.state, l.priority, l.attempt,
       {utc l.created_at} AS created_at,
       CASE WHEN l.state <> 'waiting' THEN {utc l.ready_at} END AS ready_at,
       {utc l.attempted_at} AS attempted_at,
       {utc l.finalized_at} AS finalized_at,
       w.host AS worker, NULLIF(l.worker_id, '00000000-0000-0000-0000-000000000000') AS worker_id,
       array_to_string(l.tags, ',') AS tags, l.args, l.metadata, l.result,
       COALESCE(l.error, CASE WHEN l.finalized_at IS NULL AND l.attempt > 0 THEN
           (SELECT a.error FROM claimd.job_attempt a
                  WHERE a.job_id = l.id AND a.generation = l.generation AND a.error IS NOT NULL AND a.outcome <> 'snoozed'
                  ORDER BY a.fence DESC LIMIT 1) END) AS error,
       CASE WHEN 'progress' = ANY ($14) AND l.state = 'running' THEN
           (SELECT NULLIF(concat_ws(' ', o.percent || '%', o.progress), '')
              FROM claimd.job_live o JOIN claimd.job j ON j.id = o.id AND j.fence = o.fence WHERE o.id = l.id) END AS progress, l.owner
  FROM listed l
  LEFT JOIN claimd.worker w ON w.worker_id = l.worker_id
 ORDER BY l.id DESC
