-- SPDX-License-Identifier: Apache-2.0
-- Checks that the contents of the database are as claimd promises. `claimctl db verify` runs this file, and so can any role that may
-- read the tables:
--
--     psql -XAt -d DATABASE -f check.sql                          each row is a violation; no output is good
--     PGOPTIONS="-c claimd.check_after='5 s'" psql …              with other settings (see below)
--
-- The form is stable, for programs that read this file. Each query begins with a line `-- check: NAME RULE TEXT`, and its last line is
-- the only one that ends in a semicolon. It takes no parameters, only reads, and returns at most 100 rows of four columns (check, rule,
-- job, detail): its NAME, the broken RULE (docs/guarantees.md), the job's id or NULL, and what is wrong. A line `-- suspect: …` below
-- the first one says that the rows are not violations yet, and how to decide; a line `-- warning: …` says that they are not violations,
-- but worth a look.
--
-- Settings:  claimd.check_after   how long a condition may last before recovery ends it (default 60 s)
--            claimd.check_since   leaves out finished jobs and attempts that ended before this time (default: none)
--
-- The limits of a kind may change with its plugin: a run that began before they were announced does not count as a violation.

-- check: fence_twice inv.S1 a fence was given to the claims of two jobs
SELECT 'fence_twice' AS "check", 'inv.S1' AS rule, min(id) AS job, format('fence %s is also of job %s', fence, max(id)) AS detail
  FROM (SELECT id, fence FROM claimd.job
        UNION ALL
        SELECT id, fence FROM claimd.job_history
         WHERE finalized_at >= COALESCE(NULLIF(current_setting('claimd.check_since', true), ''), '-infinity')::timestamptz
        UNION ALL
        SELECT job_id, fence FROM claimd.job_attempt
         WHERE ended_at >= COALESCE(NULLIF(current_setting('claimd.check_since', true), ''), '-infinity')::timestamptz) AS f
 WHERE fence > 0
 GROUP BY fence
HAVING min(id) <> max(id)
 LIMIT 100;

-- check: fence_ahead inv.S1 a row has a fence that the sequence has yet to give
SELECT 'fence_ahead' AS "check", 'inv.S1' AS rule, f.id AS job,
       format('fence %s, but the sequence is at %s: was a backup restored?', f.fence, s.last_value) AS detail
  FROM claimd.fence s
 CROSS JOIN (SELECT id, fence FROM claimd.job
             UNION ALL
             SELECT id, fence FROM claimd.job_history
              WHERE finalized_at >= COALESCE(NULLIF(current_setting('claimd.check_since', true), ''), '-infinity')::timestamptz) AS f
 WHERE f.fence > s.last_value
 LIMIT 100;

-- check: finished_twice inv.S2 a job ended twice in one generation
SELECT 'finished_twice' AS "check", 'inv.S2' AS rule, id AS job,
       format('generation %s ended %s times: %s', generation, count(*), string_agg(state, ', ' ORDER BY finalized_at)) AS detail
  FROM claimd.job_history
 WHERE finalized_at >= COALESCE(NULLIF(current_setting('claimd.check_since', true), ''), '-infinity')::timestamptz
 GROUP BY id, generation
HAVING count(*) > 1
 LIMIT 100;

-- check: completed_stale inv.S3 a job was completed by an older claim than its newest
SELECT 'completed_stale' AS "check", 'inv.S3' AS rule, h.id AS job,
       format('completed with fence %s, but fence %s was claimed, too', h.fence, max(a.fence)) AS detail
  FROM claimd.job_history h
  JOIN claimd.job_attempt a ON a.job_id = h.id AND a.generation = h.generation AND a.fence > h.fence
 WHERE h.state = 'completed'
   AND h.finalized_at >= COALESCE(NULLIF(current_setting('claimd.check_since', true), ''), '-infinity')::timestamptz
 GROUP BY h.id, h.fence
 LIMIT 100;

-- check: illegal_state inv.S5 a job is in a state that no way leads to
SELECT 'illegal_state' AS "check", 'inv.S5' AS rule, id AS job,
       format('%s with attempt %s, fence %s, worker %s', state, attempt, fence, worker_id) AS detail
  FROM (SELECT id, state, attempt, crashes, fence, worker_id, attempted_at, true AS is_open FROM claimd.job
        UNION ALL
        SELECT id, state, attempt, crashes, fence, worker_id, attempted_at, false FROM claimd.job_history
         WHERE finalized_at >= COALESCE(NULLIF(current_setting('claimd.check_since', true), ''), '-infinity')::timestamptz) AS j
 WHERE CASE WHEN state NOT IN ('available', 'running') THEN is_open ELSE NOT is_open END
    OR state NOT IN ('available', 'running', 'completed', 'cancelled', 'discarded')
    OR attempt < 0 OR crashes < 0
    OR (state IN ('running', 'completed')
        AND (fence < 1 OR attempt < 1 OR attempted_at = 'epoch' OR worker_id = '00000000-0000-0000-0000-000000000000'))
 LIMIT 100;

-- check: open_and_finished inv.S6 a job is open and finished at once
SELECT 'open_and_finished' AS "check", 'inv.S6' AS rule, j.id AS job, format('%s, and %s in the history', j.state, h.state) AS detail
  FROM claimd.job j
  JOIN claimd.job_history h ON h.id = j.id AND h.generation >= j.generation
 LIMIT 100;

-- check: attempts inv.S7 a job was tried more often than it may be
SELECT 'attempts' AS "check", 'inv.S7' AS rule, j.id AS job, format('attempt %s of %s', j.attempt, j.wanted) AS detail
  FROM (SELECT j.id, j.attempt, COALESCE(j.max_attempts, k.max_attempts, 25) AS wanted
          FROM (SELECT id, kind, attempt, max_attempts, attempted_at FROM claimd.job
                UNION ALL
                SELECT id, kind, attempt, max_attempts, attempted_at FROM claimd.job_history
                 WHERE finalized_at >= COALESCE(NULLIF(current_setting('claimd.check_since', true), ''), '-infinity')::timestamptz) AS j
          LEFT JOIN claimd.kind k ON k.name = j.kind
         WHERE j.max_attempts IS NOT NULL OR k.updated_at IS NULL OR k.updated_at < j.attempted_at) AS j
 WHERE j.attempt > j.wanted
 LIMIT 100;

-- check: too_early inv.S8 a job was started before its time
SELECT 'too_early' AS "check", 'inv.S8' AS rule, id AS job, format('started %s, scheduled for %s', attempted_at, scheduled_at) AS detail
  FROM (SELECT id, state, attempted_at, scheduled_at FROM claimd.job
        UNION ALL
        SELECT id, state, attempted_at, scheduled_at FROM claimd.job_history
         WHERE finalized_at >= COALESCE(NULLIF(current_setting('claimd.check_since', true), ''), '-infinity')::timestamptz) AS j
 WHERE state IN ('running', 'completed') AND attempted_at < scheduled_at
 LIMIT 100;

-- check: at_most_once inv.S10 a job that may start once was started again
SELECT 'at_most_once' AS "check", 'inv.S10' AS rule, s.id AS job, format('started %s times', count(DISTINCT s.fence)) AS detail
  FROM claimd.kind k
  JOIN (SELECT id, generation, kind, fence, attempted_at FROM claimd.job WHERE state = 'running'
        UNION ALL
        SELECT id, generation, kind, fence, attempted_at FROM claimd.job_history
         WHERE state IN ('completed', 'discarded')
           AND finalized_at >= COALESCE(NULLIF(current_setting('claimd.check_since', true), ''), '-infinity')::timestamptz
        UNION ALL
        SELECT a.job_id, a.generation, j.kind, a.fence, a.started_at
          FROM claimd.job_attempt a
          JOIN (SELECT id, generation, kind FROM claimd.job
                UNION ALL
                SELECT id, generation, kind FROM claimd.job_history) j ON j.id = a.job_id AND j.generation = a.generation
         WHERE a.outcome IN ('lost', 'crashed', 'timeout')) AS s
    ON s.kind = k.name AND s.attempted_at > k.updated_at
 WHERE k.at_most_once
 GROUP BY s.id, s.generation
HAVING count(DISTINCT s.fence) > 1
 LIMIT 100;

-- check: key_not_held inv.S18 a job runs without holding its exclusive key
SELECT 'key_not_held' AS "check", 'inv.S18' AS rule, j.id AS job,
       format('runs under fence %s, its key %s is held by %s', j.fence, k.key,
              COALESCE((SELECT string_agg(format('job %s, fence %s', e.job_id, e.fence), ', ') FROM claimd.exclusive e
                         WHERE e.key = k.key), 'nobody')) AS detail
  FROM claimd.job j
 CROSS JOIN LATERAL (VALUES (j.exclusive_key), (j.second_key)) AS k(key)
 WHERE j.state = 'running' AND k.key IS NOT NULL
   AND NOT EXISTS (SELECT FROM claimd.exclusive e WHERE e.key = k.key AND e.job_id = j.id AND e.fence = j.fence)
 LIMIT 100;

-- check: held_by_nobody inv.S18 an exclusive key or a place of a queue is held by no run
SELECT 'held_by_nobody' AS "check", 'inv.S18' AS rule, h.job_id AS job, format('%s, fence %s', h.what, h.fence) AS detail
  FROM (SELECT 'key ' || key AS what, job_id, fence FROM claimd.exclusive
        UNION ALL
        SELECT format('place %s of queue %s', n, queue), job_id, fence FROM claimd.slot WHERE fence <> 0) AS h
 WHERE NOT EXISTS (SELECT FROM claimd.job j WHERE j.id = h.job_id AND j.fence = h.fence AND j.state = 'running')
   AND COALESCE((SELECT max(e.at)
                   FROM (SELECT finalized_at AS at FROM claimd.job_history WHERE id = h.job_id AND fence = h.fence
                         UNION ALL
                         SELECT ended_at FROM claimd.job_attempt WHERE job_id = h.job_id AND fence = h.fence) AS e), '-infinity')
       < clock_timestamp() - COALESCE(NULLIF(current_setting('claimd.check_after', true), ''), '60 s')::interval
 LIMIT 100;

-- check: unique_twice inv.S21 a job was made although another one with its unique key waited
SELECT 'unique_twice' AS "check", 'inv.S21' AS rule, y.id AS job, format('has the key %s of job %s', k.key, x.id) AS detail
  FROM claimd.job_key k
  JOIN claimd.job x ON x.id = k.job_id AND x.unique_key = k.key AND x.state = 'available' AND x.attempt = 0 AND x.generation = 0
  JOIN claimd.job y ON y.unique_key = k.key AND y.id <> x.id AND y.generation = 0 AND y.created_at > x.created_at
 WHERE k.expires_at IS NULL OR k.expires_at > clock_timestamp()
 LIMIT 100;

-- check: batch_untold inv.S22 a batch does not know how one of its jobs is
SELECT 'batch_untold' AS "check", 'inv.S22' AS rule, m.job_id AS job,
       format('batch %s: %s, the job: %s', m.batch_id, COALESCE(m.state, 'open'), COALESCE(j.state, h.state, 'gone')) AS detail
  FROM claimd.batch_job m
  JOIN claimd.batch b ON b.id = m.batch_id
  LEFT JOIN claimd.job j ON j.id = m.job_id
  LEFT JOIN LATERAL (SELECT state FROM claimd.job_history WHERE id = m.job_id AND retried_at IS NULL LIMIT 1) h ON true
 WHERE CASE WHEN b.over_at IS NOT NULL THEN m.state IS NULL
            WHEN j.id IS NOT NULL THEN m.state IS NOT NULL OR j.flags & 8 = 0
            ELSE m.state IS NULL OR m.state <> h.state END
 LIMIT 100;

-- check: waits_for_nobody inv.S23 a job waits for jobs that will not wake it
SELECT 'waits_for_nobody' AS "check", 'inv.S23' AS rule, w.job_id AS job, w.why AS detail
  FROM (SELECT j.id AS job_id, 'it is kept from its time, and for nothing' AS why
          FROM claimd.job j
         WHERE j.ready_at = timestamptz '2285-12-31 00:00:00+00' AND j.flags & 32 <> 0
           AND NOT EXISTS (SELECT FROM claimd.job_wait t WHERE t.job_id = j.id)
        UNION ALL
        SELECT t.job_id, 'it is not open'
          FROM claimd.job_wait t
         WHERE NOT EXISTS (SELECT FROM claimd.job j WHERE j.id = t.job_id)
        UNION ALL
        SELECT a.job_id, format('job %s is not open, or does not know', a.after_id)
          FROM claimd.job_after a
         WHERE a.state IS NULL AND NOT EXISTS (SELECT FROM claimd.job j WHERE j.id = a.after_id AND j.flags & 16 <> 0)
        UNION ALL
        SELECT t.job_id, 'all before it have ended, and nobody was told'
          FROM claimd.job_wait t
         WHERE NOT EXISTS (SELECT FROM claimd.job_after a WHERE a.job_id = t.job_id AND a.state IS NULL)
           AND NOT EXISTS (SELECT FROM claimd.job_wake k WHERE k.job_id = t.job_id)
           AND NOT (t.if_dead = 'hold'
                    AND EXISTS (SELECT FROM claimd.job_after a WHERE a.job_id = t.job_id AND a.state <> 'completed'))) AS w
 LIMIT 100;

-- check: map_again inv.S25 a row of a map has an open job, but has completed
SELECT 'map_again' AS "check", 'inv.S25' AS rule, k.job_id AS job,
       format('row %s of map %s was completed by job %s', d.key, m.name, d.job_id) AS detail
  FROM claimd.map m
 CROSS JOIN LATERAL (SELECT * FROM claimd.job_key k WHERE k.key > 'map:' || m.name || ':' AND k.key < 'map:' || m.name || chr(59)) AS k -- chr(59) comes after :
  JOIN claimd.job j ON j.id = k.job_id AND j.generation = 0 -- else an operator retried it
  JOIN claimd.map_done d ON d.map_id = m.id AND d.key = substr(k.key, length('map:' || m.name || ':') + 1)
 WHERE d.state = 'completed' AND NOT EXISTS (SELECT FROM claimd.map_ended e WHERE e.unique_key = k.key)
 LIMIT 100;

-- check: map_miscounted inv.S25 a map counts other ends of rows than are recorded
SELECT 'map_miscounted' AS "check", 'inv.S25' AS rule, NULL::bigint AS job,
       format('map %s counts %s completed, %s failed, %s cancelled of %s rows, but %s, %s, %s are recorded', m.name, c.completed, c.failed,
              c.cancelled, m.rows, d.completed, d.failed, d.cancelled) AS detail
  FROM claimd.map m
  JOIN claimd.map_count c ON c.map_id = m.id
 CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE state = 'completed') AS completed, count(*) FILTER (WHERE state = 'discarded') AS failed,
                            count(*) FILTER (WHERE state = 'cancelled') AS cancelled
                       FROM claimd.map_done WHERE map_id = m.id) AS d
 WHERE (c.completed, c.failed, c.cancelled) IS DISTINCT FROM (d.completed, d.failed, d.cancelled)
    OR (m.cancelled_at IS NULL AND c.completed + c.failed + c.cancelled > m.rows)
 LIMIT 100;

-- check: flags inv.S24 the flags of a job say something else than what it has
SELECT 'flags' AS "check", 'inv.S24' AS rule, j.id AS job, format('flags %s, but %s', j.flags, w.why) AS detail
  FROM claimd.job j
 CROSS JOIN LATERAL (
     SELECT CASE WHEN j.flags & 1 <> 0 AND j.unique_key IS NULL THEN 'no unique key'
                 WHEN j.flags & 2 <> 0 AND j.exclusive_key IS NULL THEN 'no exclusive key'
                 WHEN j.flags & 2 = 0 AND j.exclusive_key IS NOT NULL THEN 'an exclusive key'
                 WHEN j.second_key IS NOT NULL AND (j.exclusive_key = j.second_key) IS NOT FALSE THEN 'a second key without a first one'
                 WHEN j.flags & 32 = 0 AND EXISTS (SELECT FROM claimd.job_wait t WHERE t.job_id = j.id) THEN 'it waits for jobs'
                 WHEN j.flags & 64 = 0 AND EXISTS (SELECT FROM claimd.job_edit e WHERE e.job_id = j.id AND e.applied_at IS NULL
                                                                                  AND e.generation = j.generation)
                 THEN 'an edit waits for it' END AS why) AS w
 WHERE w.why IS NOT NULL
 LIMIT 100;

-- check: worker_gone inv.L2 a job still runs under a worker that is gone
SELECT 'worker_gone' AS "check", 'inv.L2' AS rule, j.id AS job,
       CASE WHEN w.worker_id IS NULL THEN format('worker %s left no row', j.worker_id)
            ELSE format('worker %s (%s, pid %s) is %s, last heartbeat %s', w.worker_id, w.host, w.pid,
                        CASE WHEN w.dead THEN 'dead' WHEN w.stopped THEN 'stopped' ELSE 'stale' END, w.beat_at) END AS detail
  FROM claimd.job j
  LEFT JOIN claimd.worker w ON w.worker_id = j.worker_id
 WHERE j.state = 'running'
   AND CASE WHEN w.worker_id IS NULL THEN j.attempted_at
            WHEN w.stopped OR w.dead OR w.stale_at < clock_timestamp() THEN GREATEST(w.beat_at, j.attempted_at)
            ELSE 'infinity' END
       < clock_timestamp() - COALESCE(NULLIF(current_setting('claimd.check_after', true), ''), '60 s')::interval
 LIMIT 100;

-- check: past_deadline inv.L4 a job runs past its deadline
SELECT 'past_deadline' AS "check", 'inv.L4' AS rule, j.id AS job,
       format('runs since %s, its timeout is %s', j.attempted_at, COALESCE(j.timeout, k.timeout, interval '30 minutes')) AS detail
  FROM claimd.job j
  LEFT JOIN claimd.kind k ON k.name = j.kind
 WHERE j.state = 'running'
   AND j.attempted_at + COALESCE(j.timeout, k.timeout, interval '30 minutes')
       < clock_timestamp() - COALESCE(NULLIF(current_setting('claimd.check_after', true), ''), '60 s')::interval
 LIMIT 100;

-- check: crashes inv.L5 a job crashed its runner more often than it may
SELECT 'crashes' AS "check", 'inv.L5' AS rule, j.id AS job, format('%s crashes, allowed: %s', j.crashes, k.max_crashes) AS detail
  FROM (SELECT id, kind, crashes, attempted_at FROM claimd.job
        UNION ALL
        SELECT id, kind, crashes, attempted_at FROM claimd.job_history
         WHERE finalized_at >= COALESCE(NULLIF(current_setting('claimd.check_since', true), ''), '-infinity')::timestamptz) AS j
  JOIN claimd.kind k ON k.name = j.kind AND k.updated_at < j.attempted_at
 WHERE j.crashes > k.max_crashes
 LIMIT 100;

-- check: unfed inv.L1 a due job of a served kind has no hint: the feed does not reach it
-- suspect: the oldest jobs of each lane, which in a backlog wait for their turn. A job is a violation if, time after time, it has no
-- hint in Redis
WITH RECURSIVE served AS MATERIALIZED (
    SELECT DISTINCT q.queue COLLATE "C" AS queue, s.kind
      FROM claimd.live_worker w, unnest(w.queues) AS q(queue), unnest(w.kinds) AS s(kind)
     WHERE NOT EXISTS (SELECT FROM claimd.queue p WHERE p.name = q.queue AND p.paused)
), lane AS (
    SELECT DISTINCT queue, -1::int2 AS priority, 0::int2 AS share FROM served
    UNION ALL
    SELECT l.queue, j.priority, j.share
      FROM lane l
     CROSS JOIN LATERAL (SELECT priority, share FROM claimd.job
                          WHERE queue = l.queue AND (priority, share) > (l.priority, l.share)
                          ORDER BY priority, share LIMIT 1) j
)
SELECT 'unfed' AS "check", 'inv.L1' AS rule, j.id AS job,
       format('kind %s in queue %s, priority %s, due since %s', j.kind, l.queue, l.priority, j.ready_at) AS detail
  FROM (SELECT * FROM lane LIMIT 20000) l -- lanes of the queues in turn, and doctor reports if there are more
 CROSS JOIN LATERAL (
     SELECT h.id, h.kind, h.ready_at, row_number() OVER (ORDER BY h.ready_at, h.id) AS rank
       FROM (SELECT id, kind, ready_at, state FROM claimd.job
              WHERE queue = l.queue AND priority = l.priority AND share = l.share
                AND ready_at < clock_timestamp() - COALESCE(NULLIF(current_setting('claimd.check_after', true), ''), '60 s')::interval
              ORDER BY ready_at, id LIMIT 10000) h
      WHERE h.state = 'available' AND (l.queue, h.kind) IN (SELECT queue, kind FROM served)
      ORDER BY h.ready_at, h.id
      LIMIT 100) j
 ORDER BY j.rank, j.ready_at
 LIMIT 100;

-- check: idle_beside_due inv.L9 a due job waits beside a worker with an idle slot for it
-- warning: as of the workers' last heartbeats. Only jobs that were never claimed and have no limit: the rows of other jobs do not show
-- since when they wait
SELECT 'idle_beside_due' AS "check", 'inv.L9' AS rule, j.id AS job,
       format('kind %s in queue %s, due since %s, and worker %s on %s has had an idle slot since %s', j.kind, j.queue, j.ready_at,
              v.worker_id, v.host, v.spare_since) AS detail
  FROM claimd.live_worker v
  JOIN claimd.job j ON j.queue = ANY (v.queues) AND j.kind = ANY (v.kinds)
 WHERE v.spare_since < clock_timestamp() - COALESCE(NULLIF(current_setting('claimd.check_after', true), ''), '60 s')::interval
   AND j.state = 'available' AND j.fence = 0 AND j.exclusive_key IS NULL
   AND j.ready_at < clock_timestamp() - COALESCE(NULLIF(current_setting('claimd.check_after', true), ''), '60 s')::interval
   AND NOT EXISTS (SELECT FROM claimd.queue q WHERE q.name = j.queue AND (q.paused OR q.limited))
   AND NOT EXISTS (SELECT FROM claimd.kind k WHERE k.name = j.kind AND k.paused)
 LIMIT 100;
