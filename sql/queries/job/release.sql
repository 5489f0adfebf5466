-- SPDX-License-Identifier: Apache-2.0
-- Jobs that wait for others become due, or are cancelled, where all of those have ended; at most $1 are looked at. How many could not be
-- changed, and why the last one.
-- Index: job_after_pkey, job_wait_pkey; empties job_wake.
-- params: int4
SELECT failed, why FROM claimd.release_jobs($1)
