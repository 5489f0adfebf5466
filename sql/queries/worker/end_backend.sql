-- SPDX-License-Identifier: Apache-2.0
-- Ends the session of a dead worker, if it is still the same one, and waits until it is gone: an abandoned backend that waits for a
-- row lock would commit its claim after the rows have been read. A row with false: the session is still there.
-- params: uuid
SELECT pg_terminate_backend(a.pid, 3000)
  FROM claimd.worker w
  JOIN pg_catalog.pg_stat_activity a ON a.pid = w.backend_pid AND a.backend_start = w.backend_start
 WHERE w.worker_id = $1 AND a.pid <> pg_backend_pid()
