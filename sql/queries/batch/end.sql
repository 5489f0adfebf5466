-- SPDX-License-Identifier: Apache-2.0
-- Ends at most $1 batches that are closed and have no open job, and enqueues the jobs that follow them; batches that others have
-- locked are left for the next time. Returns one row each: batch, follow-up job (0: none), why the jobs could not be enqueued, and
-- the job for the outcome (0: none). Index: batch_open.
-- params: int4
SELECT batch_id, COALESCE(job_id, 0) AS job_id, why, COALESCE(outcome_job_id, 0) AS outcome_job_id FROM claimd.end_batches($1)
