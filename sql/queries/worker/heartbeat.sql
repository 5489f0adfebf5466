-- SPDX-License-Identifier: Apache-2.0
-- Stores one heartbeat and returns what the worker must know, in one statement: a row 'heartbeat' if it was confirmed (not on a row that
-- is dead, stopped or gone), a row 'paused' for each of its queues that is paused, a row 'weight' for each of them that has one (as
-- its id), a row 'kind' for each kind that is stopped, served here or not, a row 'asked' for an operator's request to it, and a row
-- 'cancel' for each job that runs under its id and whose cancel was requested (index: job_live_cancel). From $8 on, the parameters
-- are what doctor needs; $13 is the host's wall clock, in µs since 1970. For the survey (inv.L9): $14, the fewest idle slots since
-- the last heartbeat, and $15, the wait of the oldest claimed job, in µs. $16: the files that the worker does not serve, and why.
-- params: uuid, int8, bool, bool, int4, int8[], text[], int4, int4, int4, int8, text, int8, int4, int8, text[]
WITH me AS (
    UPDATE claimd.worker
       SET beat_at = clock_timestamp(), stale_at = clock_timestamp() + $2 * interval '1 microsecond', quiet = $3,
           lost_pops = lost_pops + $4::integer, running = $5, held_fences = $6, kinds = $7, backend_pid = pg_backend_pid(),
           lock_nodes = $8, lock_nodes_voting = $9, uncommitted = $10, uncommitted_us = $11, trouble = $12,
           clock_ahead_us = (extract(epoch FROM clock_timestamp()) * 1000000)::int8 - $13,
           spare_since = CASE WHEN $14 > 0 THEN COALESCE(spare_since, beat_at) END, spare_least = $14,
           ready_oldest = $15 * interval '1 microsecond', refused = $16,
           backend_start = CASE WHEN backend_pid = pg_backend_pid() THEN backend_start
                                ELSE COALESCE((SELECT a.backend_start FROM pg_catalog.pg_stat_activity a
                                                WHERE a.pid = pg_backend_pid()), 'epoch') END
     WHERE worker_id = $1 AND NOT dead AND NOT stopped
    RETURNING queues, asked
)
SELECT 'heartbeat' AS what, '' AS name, 0::bigint AS id, 0::bigint AS fence FROM me
UNION ALL
SELECT 'paused', q.name, 0, 0 FROM me, claimd.queue q WHERE q.paused AND q.name = ANY (me.queues)
UNION ALL
SELECT 'weight', q.name, q.weight, 0 FROM me, claimd.queue q WHERE q.weight IS NOT NULL AND q.name = ANY (me.queues)
UNION ALL
SELECT 'kind', k.name, 0, 0 FROM me, claimd.stopped_kind k
UNION ALL
SELECT 'asked', asked, 0, 0 FROM me WHERE asked <> ''
UNION ALL
SELECT 'cancel', '', l.id, l.fence
  FROM claimd.job_live l
 WHERE l.cancel_requested
   AND (SELECT true FROM claimd.job j WHERE j.id = l.id AND j.fence = l.fence AND j.state = 'running' AND j.worker_id = $1)
