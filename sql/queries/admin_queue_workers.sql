-- SPDX-License-Identifier: Apache-2.0
-- Live workers of a queue.
-- params: name text queue
-- shows: host text, pid number, running number, slots number, quiet bool, worker_id text wide
SELECT host, pid, running, slots, quiet, worker_id
  FROM claimd.worker
 WHERE NOT dead AND NOT stopped AND stale_at > clock_timestamp() AND $1 = ANY (queues)
 ORDER BY host, pid
