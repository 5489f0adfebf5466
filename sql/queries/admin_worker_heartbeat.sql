-- SPDX-License-Identifier: Apache-2.0
-- The row of one worker, by its id or host: of several, a running one with the newest heartbeat. For health checks.
-- params: text
SELECT worker_id, host, pid,
       CASE WHEN dead THEN 'dead' WHEN stopped THEN 'stopped' WHEN stale_at < clock_timestamp() THEN 'stale'
            WHEN quiet THEN 'quiet' ELSE 'live' END AS state,
       round(extract(epoch FROM clock_timestamp() - beat_at), 1) AS beat_age_s
  FROM claimd.worker
 WHERE host = $1 OR worker_id::text = $1
 ORDER BY stopped OR dead, beat_at DESC
 LIMIT 1
