-- SPDX-License-Identifier: Apache-2.0
-- The highest id of all jobs, or 0 if there are none. Indexes: job_pkey, job_history_id.
SELECT GREATEST(0, (SELECT max(id) FROM claimd.job), (SELECT max(id) FROM claimd.job_history))
