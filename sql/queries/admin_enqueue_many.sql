-- SPDX-License-Identifier: Apache-2.0
-- An array of jobs, all or none; how many.
-- params: text
SELECT count(*) FROM claimd.enqueue_many($1::jsonb)
