-- SPDX-License-Identifier: Apache-2.0
-- Closes a batch; returns how many of its jobs are open. No row if there is no such batch.
-- params: batch int8 id
-- shows: jobs number
-- tables: batch
-- none: batch {batch} not found
-- says: batch {batch}: {jobs} open jobs; none can be added
-- method: POST
SELECT (SELECT s.open FROM (SELECT claimd.batch_close($1)) AS closed, claimd.batch_status($1) AS s) AS jobs
 WHERE EXISTS (SELECT FROM claimd.batch_status($1))
