-- SPDX-License-Identifier: Apache-2.0
-- Closes a batch; how many of its jobs are open. NULL: there is no such batch.
-- params: int8
SELECT CASE WHEN EXISTS (SELECT FROM claimd.batch_status($1))
            THEN (SELECT s.open FROM (SELECT claimd.batch_close($1)) AS closed, claimd.batch_status($1) AS s) END AS open
