-- SPDX-License-Identifier: Apache-2.0
-- Jobs that are running as far as PostgreSQL knows, under workers that are gone; the oldest first.
SELECT j.id, COALESCE(w.host, '?') AS host, COALESCE(w.pid, 0) AS pid
  FROM claimd.job j
  LEFT JOIN claimd.worker w ON w.worker_id = j.worker_id
 WHERE j.state = 'running'
 ORDER BY j.attempted_at
 LIMIT 100
