-- SPDX-License-Identifier: Apache-2.0
-- Asks a worker, by its id, or all live workers of a host, to be quiet, to resume or to drain. $3: only returns which workers
-- these are. No row if there is none.
-- params: worker text, what text, dry_run bool
-- shows: host text, pid number, worker_id text
-- tables: asked
-- none: no live worker has the host or id '{worker}'
-- preview: {rows} workers will be asked to {what}.
-- method: POST
SELECT w.host, w.pid, w.worker_id
  FROM (SELECT host, pid, worker_id FROM claimd.worker
         WHERE (host = $1 OR worker_id::text = $1) AND NOT dead AND NOT stopped AND stale_at > clock_timestamp()
         ORDER BY worker_id) w
 CROSS JOIN LATERAL (SELECT CASE WHEN $3 IS NOT TRUE THEN claimd.ask_worker(w.worker_id, replace($2, 'be ', ''))::text END) AS asked
 ORDER BY w.host, w.pid
