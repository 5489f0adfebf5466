-- SPDX-License-Identifier: Apache-2.0
-- Adds jobs to a batch, all or none; returns how many. No row if there is no such batch. In the order of their ids, so
-- that two calls do not deadlock.
-- params: batch int8 id, ids int8[]
-- shows: jobs number
-- tables: batch
-- none: batch {batch} not found
-- says: batch {batch}: {jobs} jobs are in it
-- method: POST
SELECT (SELECT count(claimd.batch_add($1, j.id)) FROM (SELECT DISTINCT unnest($2) AS id ORDER BY id) AS j) AS jobs
 WHERE EXISTS (SELECT FROM claimd.batch_status($1))
