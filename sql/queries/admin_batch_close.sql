-- SPDX-License-Identifier: Apache-2.0
-- Closes a batch; how many of its jobs are open. Raises CL003 where there is none.
-- params: int8
SELECT s.open FROM (SELECT claimd.batch_close($1)) AS closed, claimd.batch_status($1) AS s
