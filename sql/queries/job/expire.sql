-- SPDX-License-Identifier: Apache-2.0
-- Discards at most $1 jobs that have not started by their deadline; returns how many. Index: job_deadline_expires.
-- params: int4
SELECT claimd.expire_jobs($1)
