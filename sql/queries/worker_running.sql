-- SPDX-License-Identifier: Apache-2.0
-- What runs under a worker's id. A scan, once per death: no index may name a column that a claim changes.
-- params: uuid
SELECT id FROM claimd.job WHERE worker_id = $1 AND state = 'running'
