-- SPDX-License-Identifier: Apache-2.0
-- Asks a worker, by its id, or all that live on a host, to be quiet, to resume or to drain; $3: only says which. No row: there is none.
-- params: text, text, bool
SELECT w.host, w.pid, w.worker_id
  FROM (SELECT host, pid, worker_id FROM claimd.worker
         WHERE (host = $1 OR worker_id::text = $1) AND NOT dead AND NOT stopped AND stale_at > clock_timestamp()
         ORDER BY worker_id) w
 CROSS JOIN LATERAL (SELECT CASE WHEN NOT $3 THEN claimd.ask_worker(w.worker_id, $2)::text END) AS asked
 ORDER BY w.host, w.pid
