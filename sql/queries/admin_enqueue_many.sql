-- SPDX-License-Identifier: Apache-2.0
-- An array of jobs, all or none; how many. $2: into this batch; NULL: into none.
-- params: text, int8
SELECT count(CASE WHEN $2 IS NULL THEN e.id ELSE claimd.batch_add($2, e.id) END) FROM claimd.enqueue_many($1::jsonb) AS e(id)
