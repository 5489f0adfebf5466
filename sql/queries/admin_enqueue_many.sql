-- SPDX-License-Identifier: Apache-2.0
-- Enqueues an array of jobs, all or none; returns how many. $2: adds them to this batch, if not NULL.
-- params: text, int8
SELECT count(CASE WHEN $2 IS NULL THEN e.id ELSE claimd.batch_add($2, e.id) END) FROM claimd.enqueue_many($1::jsonb) AS e(id)
