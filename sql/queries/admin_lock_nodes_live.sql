-- SPDX-License-Identifier: Apache-2.0
-- Daemons that are live as far as PostgreSQL knows: their heartbeats are fresh.
SELECT 'claimd-worker' AS program, host, pid, round(extract(epoch FROM clock_timestamp() - beat_at), 1) AS beat_age_s
  FROM claimd.worker
 WHERE NOT dead AND NOT stopped AND stale_at > clock_timestamp()
UNION ALL
SELECT 'claimd-scheduler', host, pid, round(extract(epoch FROM clock_timestamp() - beat_at), 1)
  FROM claimd.scheduler
 WHERE stale_at > clock_timestamp()
 ORDER BY 1, 2, 3
