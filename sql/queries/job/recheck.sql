-- SPDX-License-Identifier: Apache-2.0
-- The open jobs among these ids, as they are now. For ids that a claim did not get, and for runs that a finish did not find. $2: the
-- worker whose runs are looked for. `is_queue_full`: if a claim within limits did not get the job, that was because of its queue.
-- `is_locked`: if it did not, that was because another session had locked the row. This is so if nothing else refuses the job: it has
-- only edits that its claim must apply, a deadline, or the limit of a kind whose key it did not get. For a job whose keys have free
-- places, the statement tries to lock the row.
-- params: int8[], uuid
SELECT id, state = 'running' AS is_running, fence, scheduled_at <= clock_timestamp() AS is_due, queue, kind, priority, ready_at,
       attempt, max_attempts, worker_id = $2 AS is_mine,
       flags & {flags_of_limited} <> 0 OR queue = ANY (ARRAY(SELECT name FROM claimd.queue WHERE limited))
       OR kind = ANY (ARRAY(SELECT name FROM claimd.kind WHERE limited)) AS is_limited,
       queue = ANY (ARRAY(SELECT name FROM claimd.queue WHERE limited))
       AND (exclusive_key IS NULL OR claimd.key_places(exclusive_key, id) > 0)
       AND (second_key IS NULL OR claimd.key_places(second_key, id) > 0) AS is_queue_full,
       CASE WHEN queue = ANY (ARRAY(SELECT name FROM claimd.queue WHERE limited)) THEN false
            WHEN flags & {flag.key} = 0 THEN true
            WHEN claimd.key_places(exclusive_key, id) > 0 AND (second_key IS NULL OR claimd.key_places(second_key, id) > 0)
            THEN (SELECT o.id FROM claimd.job o WHERE o.id = job.id FOR NO KEY UPDATE SKIP LOCKED) IS NULL
            ELSE false END AS is_locked
  FROM claimd.job
 WHERE id = ANY ($1)
