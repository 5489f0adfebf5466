-- SPDX-License-Identifier: Apache-2.0
-- The highest id up to $3 of the open ($1) and the finished ($2) jobs, or 0 if there are none. Indexes: job_pkey, job_history_id.
-- params: open bool, finished bool, high int8
SELECT GREATEST(0, CASE WHEN $1 THEN (SELECT max(id) FROM claimd.job WHERE id <= $3) END,
                   CASE WHEN $2 THEN (SELECT max(id) FROM claimd.job_history WHERE id <= $3) END)
