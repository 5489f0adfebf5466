-- SPDX-License-Identifier: Apache-2.0
-- Adds jobs to a batch, all or none; how many. In the order of their ids, so that two calls don't lock each other out.
-- params: int8, int8[]
SELECT count(claimd.batch_add($1, j.id)) AS jobs FROM (SELECT DISTINCT unnest($2) AS id ORDER BY id) AS j
