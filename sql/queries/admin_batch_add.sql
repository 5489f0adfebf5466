-- SPDX-License-Identifier: Apache-2.0
-- Adds jobs to a batch, all or none; how many, NULL: there is no such batch. In the order of their ids, so that two calls don't lock each other out.
-- params: int8, int8[]
SELECT CASE WHEN EXISTS (SELECT FROM claimd.batch_status($1))
            THEN (SELECT count(claimd.batch_add($1, j.id)) FROM (SELECT DISTINCT unnest($2) AS id ORDER BY id) AS j) END AS jobs
