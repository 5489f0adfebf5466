-- SPDX-License-Identifier: Apache-2.0
-- The jobs that run under a dead worker's id. A scan, once per death, since no index may name a column that a claim changes. No
-- row if the worker ended cleanly.
-- params: uuid
SELECT id FROM claimd.job WHERE worker_id = $1 AND state = 'running'
   AND (SELECT w.dead FROM claimd.worker w WHERE w.worker_id = $1)
