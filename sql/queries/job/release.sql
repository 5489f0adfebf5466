-- SPDX-License-Identifier: Apache-2.0
-- Makes jobs that wait for others due, or cancels them, if all of those others have ended; looks at no more than $1 jobs. Returns how many
-- could not be changed, and why the last of these.
-- Indexes: job_after_pkey, job_wait_pkey; empties job_wake.
-- params: int4
SELECT failed, why FROM claimd.release_jobs($1)
