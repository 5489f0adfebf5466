-- SPDX-License-Identifier: Apache-2.0
-- The highest id of all jobs, 0 without any. Indexes: job_pkey, job_history_id.
SELECT GREATEST(0, (SELECT max(id) FROM claimd.job), (SELECT max(id) FROM claimd.job_history))
