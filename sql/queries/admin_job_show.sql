-- SPDX-License-Identifier: Apache-2.0
-- One job with all that is known about it, and `situation`: where it is and what it waits for. It is looked up by id in both tables;
-- if an operator has retried it, the newest generation is shown.
-- params: id int8 id
-- shows: id number, state text, situation text, kind text, queue text, priority number, args json, tags text, metadata json,
-- shows: unique_key text, exclusive_key text, second_key text, share_key text, backoff text, created_at text, scheduled_at text,
-- shows: attempted_at text, finalized_at text, attempt number, max_attempts number, crashes number, max_crashes number,
-- shows: timeout_s seconds, grace_s seconds, owner text, at_most_once bool, fence number, generation number, version number,
-- shows: worker_id text, host text, pid number, result json, error text, progress number, doing text, checkpoint json,
-- shows: batch number hidden, log text hidden
-- tables: record job, after = job_before, timeline = job_timeline, attempts = job_attempts, edits = job_edits,
-- tables: awaited_by = job_awaited_by
WITH j AS (
    SELECT * FROM claimd.jobs WHERE id = $1 ORDER BY generation DESC LIMIT 1
), live AS (
    SELECT count(*) FILTER (WHERE j.queue = ANY (w.queues)) AS of_queue,
           count(*) FILTER (WHERE j.queue = ANY (w.queues) AND j.kind = ANY (w.kinds)) AS of_kind,
           count(*) FILTER (WHERE j.queue = ANY (w.queues) AND j.kind = ANY (w.kinds) AND w.lock_nodes > 0
                              AND 2 * w.lock_nodes_voting <= w.lock_nodes) AS cut_off,
           count(*) FILTER (WHERE j.queue = ANY (w.queues) AND j.kind = ANY (w.kinds) AND w.quiet) AS quiet,
           sum(w.slots) FILTER (WHERE j.queue = ANY (w.queues) AND j.kind = ANY (w.kinds)) AS slots,
           sum(w.running) FILTER (WHERE j.queue = ANY (w.queues) AND j.kind = ANY (w.kinds)) AS busy
      FROM j, claimd.worker w
     WHERE NOT w.dead AND NOT w.stopped AND w.stale_at > clock_timestamp()
), feed AS (
    SELECT CASE WHEN count(leader_since) > 0 THEN ''
                WHEN count(*) = 0 THEN '; no leader: no scheduler runs'
                WHEN count(*) = 1 THEN '; no leader: the only scheduler does not lead'
                ELSE format('; no leader: none of %s schedulers leads', count(*)) END AS trouble
      FROM claimd.scheduler WHERE stale_at > clock_timestamp()
), before AS (
    SELECT count(*) FILTER (WHERE a.state IS NULL) AS open, count(*) AS jobs,
           min(a.after_id) FILTER (WHERE a.state <> 'completed') AS dead,
           (SELECT string_agg(o.after_id::text, ', ' ORDER BY o.after_id)
              FROM (SELECT b.after_id FROM claimd.job_after b, j WHERE b.job_id = j.id AND b.state IS NULL
                     ORDER BY b.after_id LIMIT 5) AS o) AS ids
      FROM j JOIN claimd.job_after a ON a.job_id = j.id
), limits AS (
    SELECT CASE WHEN l.taken >= q.max_running THEN format('; %s of at most %s jobs of queue %s run', l.taken, q.max_running, q.name)
                ELSE '' END
           || CASE WHEN l.tokens < 1 THEN format('; queue %s starts %s jobs a second, the next one in %s s', q.name,
                                                 round(q.rate::numeric, 3), round(((1 - l.tokens) / q.rate)::numeric, 1))
                   ELSE '' END AS of_queue
      FROM j
      JOIN claimd.queue q ON q.name = j.queue
      LEFT JOIN claimd.bucket b ON b.queue = q.name
     CROSS JOIN LATERAL (
         SELECT (SELECT count(*) FROM claimd.slot s WHERE s.queue = q.name AND s.fence <> 0) AS taken,
                b.tokens + q.rate * GREATEST(0, extract(epoch FROM clock_timestamp() - b.filled_at)) AS tokens) l
), keys AS (
    SELECT k.key, 'its key' || CASE WHEN j.second_key IS NULL THEN '' ELSE ' ' || k.key END AS name
      FROM j CROSS JOIN LATERAL (VALUES (j.exclusive_key), (j.second_key)) AS k(key) WHERE k.key IS NOT NULL
), key AS (
    SELECT string_agg(format('; %s is held by job%s %s', h.name, CASE WHEN h.jobs = 1 THEN '' ELSE 's' END, h.ids), '' ORDER BY h.name) AS held
      FROM (SELECT k.name, count(*) AS jobs, string_agg(e.job_id::text, ', ' ORDER BY e.job_id) AS ids
              FROM keys k JOIN claimd.exclusive e ON e.key = k.key
             GROUP BY k.key, k.name
            HAVING count(*) >= COALESCE((SELECT l.max_running FROM claimd.key_limit l WHERE l.key = k.key),
                                        (claimd.group_of(k.key)).max_running, 1)) AS h
), key_rate AS (
    SELECT string_agg(format('; %s starts %s jobs a second, the next one in %s s', k.name, round(l.rate::numeric, 3),
                             round(((1 - t.tokens) / l.rate)::numeric, 1)), '' ORDER BY k.name) AS spent
      FROM keys k
      JOIN claimd.key_limit l ON l.key = k.key
     CROSS JOIN LATERAL (SELECT claimd.key_tokens(l, clock_timestamp()) AS tokens) AS t
     WHERE t.tokens < 1
), kept AS (
    SELECT string_agg(format('; a place of %s is kept for job %s', k.name, r.job_id), '' ORDER BY k.name) AS elsewhere
      FROM keys k JOIN claimd.key_reserved r ON r.key = k.key JOIN j ON j.id <> r.job_id
     WHERE r.until > clock_timestamp()
), ahead AS (
    SELECT count(*) AS jobs
      FROM j
     CROSS JOIN LATERAL (SELECT o.id, o.state, o.priority, o.share, o.ready_at FROM claimd.job o
                          WHERE o.queue = j.queue AND o.priority <= j.priority AND o.ready_at <= statement_timestamp()
                          ORDER BY o.queue, o.priority, o.share, o.ready_at, o.id LIMIT 10000) AS o
     WHERE j.state = 'available' AND o.state = 'available' AND (o.priority, o.ready_at, o.id) < (j.priority, j.ready_at, j.id)
       AND (j.share = 0 OR o.share = j.share)
)
SELECT j.id, j.state,
       CASE WHEN j.state = 'running' THEN
                CASE WHEN w.worker_id IS NULL THEN 'runs on a worker that left no row'
                     WHEN w.stopped OR w.dead THEN format('its worker %s (pid %s) is gone: it will be rescued', w.host, w.pid)
                     ELSE format('has run on %s (pid %s) for %s s, last heartbeat %s s ago%s', w.host, w.pid,
                                 round(extract(epoch FROM clock_timestamp() - j.attempted_at), 1),
                                 round(extract(epoch FROM clock_timestamp() - w.beat_at), 1),
                                 CASE WHEN w.stale_at < clock_timestamp() THEN ': stale, it will be rescued' ELSE '' END) END
                || CASE WHEN EXISTS (SELECT FROM claimd.job_live l WHERE l.id = j.id AND l.fence = j.fence AND l.cancel_requested)
                        THEN '; its cancel was asked for' ELSE '' END
                || CASE WHEN EXISTS (SELECT FROM claimd.job_edit e
                                     WHERE e.job_id = j.id AND e.generation = j.generation AND e.applied_at IS NULL)
                        THEN '; an edit waits for its next attempt' ELSE '' END
            WHEN j.finalized_at IS NOT NULL THEN
                format('ended %s s ago', round(extract(epoch FROM clock_timestamp() - j.finalized_at)))
            WHEN j.state = 'waiting' THEN
                CASE WHEN before.open > 0
                     THEN format('waits for %s of %s jobs to end: %s%s', before.open, before.jobs, before.ids,
                                 CASE WHEN before.open > 5 THEN ', …' ELSE '' END)
                     WHEN before.dead IS NOT NULL AND t.if_dead = 'hold'
                     THEN format('held: job %s was %s; retry that one, or cancel this', before.dead,
                                 (SELECT a.state FROM claimd.job_after a WHERE a.job_id = j.id AND a.after_id = before.dead))
                     WHEN before.jobs = 0 THEN
                         (SELECT CASE WHEN m.state IN ('paused', 'cancelled') THEN format('map %s is %s', m.name, m.state)
                                      ELSE format('waits for its turn in map %s: %s of its jobs run, at most %s may', m.name, m.running,
                                                  m.max_running) END
                            FROM claimd.maps m WHERE 'map:' || m.name = j.exclusive_key)
                     ELSE 'all jobs before it have ended: the leading scheduler lets it go on' || feed.trouble END
            ELSE CASE WHEN j.ready_at > clock_timestamp()
                      THEN format('due in %s s', round(extract(epoch FROM j.ready_at - clock_timestamp()), 1))
                      ELSE format('due for %s s', round(extract(epoch FROM clock_timestamp() - j.ready_at), 1)) END
                 || COALESCE((SELECT format('; expires in %s s', round(extract(epoch FROM d.expires_at - clock_timestamp()), 1))
                                FROM claimd.job_deadline d WHERE d.job_id = j.id AND j.attempt = 0), '')
                 || COALESCE((SELECT format('; queue %s is paused', j.queue)
                                     || COALESCE(format(' (by %s at %s UTC)', q.paused_by,
                                                        to_char(q.paused_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')), '')
                                FROM claimd.queue q WHERE q.name = j.queue AND q.paused), '')
                 || CASE WHEN s.why IS NOT NULL THEN format('; kind %s %s', j.kind, s.why)
                         WHEN live.of_queue = 0 THEN format('; no live worker serves queue %s', j.queue)
                         WHEN live.of_kind = 0 AND live.of_queue = 1
                         THEN format('; the only live worker of queue %s does not serve kind %s', j.queue, j.kind)
                         WHEN live.of_kind = 0 THEN format('; none of the %s live workers of queue %s serves kind %s',
                                                           live.of_queue, j.queue, j.kind)
                         WHEN live.quiet = 1 AND live.of_kind = 1 THEN '; the only live worker that serves it is quiet'
                         WHEN live.quiet = live.of_kind THEN format('; all %s live workers that serve it are quiet', live.of_kind)
                         ELSE format('; served by %s live worker%s', live.of_kind, CASE WHEN live.of_kind = 1 THEN '' ELSE 's' END)
                              || CASE WHEN live.busy >= live.slots AND live.slots = 1 THEN ', whose slot is busy'
                                      WHEN live.busy >= live.slots THEN format(', whose %s slots are busy', live.slots)
                                      ELSE '' END END
                 || CASE WHEN j.ready_at > clock_timestamp() OR live.cut_off = 0 THEN ''
                         WHEN live.cut_off = live.of_kind
                         THEN '; no quorum: too few lock nodes vote for ' || CASE WHEN live.of_kind = 1 THEN 'it' ELSE 'them' END
                         ELSE format('; no quorum: too few lock nodes vote for %s of them', live.cut_off) END
                 || CASE WHEN j.ready_at > clock_timestamp() THEN ''
                         ELSE COALESCE((SELECT l.of_queue FROM limits l), '') || COALESCE((SELECT h.held FROM key h), '')
                              || COALESCE((SELECT r.spent FROM key_rate r), '')
                              || COALESCE((SELECT r.elsewhere FROM kept r), '')
                              || CASE WHEN ahead.jobs = 0 THEN ''
                                      ELSE format('; %s job%s %sbefore it in its queue', ahead.jobs,
                                                  CASE WHEN ahead.jobs = 1 THEN '' ELSE 's' END, CASE WHEN j.share = 0 THEN '' ELSE 'of its tenant ' END) END
                              || feed.trouble END
       END AS situation,
       j.kind, j.queue, j.priority, j.args, j.tags::text, j.metadata, j.unique_key, j.exclusive_key, j.second_key, j.share_key,
       j.backoff,
       {utc j.created_at} AS created_at,
       {utc COALESCE(t.scheduled_at, j.scheduled_at)} AS scheduled_at,
       {utc j.attempted_at} AS attempted_at,
       {utc j.finalized_at} AS finalized_at,
       j.attempt, CASE WHEN k.at_most_once THEN 1 ELSE COALESCE(j.max_attempts, k.max_attempts, 25) END AS max_attempts,
       j.crashes, COALESCE(k.max_crashes, 3) AS max_crashes,
       extract(epoch FROM COALESCE(j.timeout, k.timeout, interval '30 minutes'))::float8 AS timeout_s,
       extract(epoch FROM COALESCE(j.grace, k.grace))::float8 AS grace_s, j.owner,
       COALESCE(k.at_most_once, false) AS at_most_once,
       j.fence, j.generation, j.version, j.worker_id, w.host, w.pid, j.result, j.error,
       o.percent AS progress, o.progress AS doing, o.checkpoint,
       (SELECT m.batch_id FROM claimd.batch_job m WHERE m.job_id = j.id) AS batch,
       CASE WHEN j.state = 'running' THEN NULLIF(o.log, '') END AS log
  FROM live, feed, before, ahead, j
  LEFT JOIN claimd.job_wait t ON t.job_id = j.id
  LEFT JOIN claimd.job_live o ON o.id = j.id AND j.finalized_at IS NULL AND (o.fence = j.fence OR j.state <> 'running')
  LEFT JOIN claimd.worker w ON w.worker_id = j.worker_id
  LEFT JOIN claimd.kind k ON k.name = j.kind
  LEFT JOIN claimd.stopped_kind s ON s.name = j.kind
