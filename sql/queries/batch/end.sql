-- SPDX-License-Identifier: Apache-2.0
-- Ends at most $1 batches that are closed and have no open job, and makes what follows them; those that others have locked are left for the
-- next time. One row each: batch, follow-up job (0: none), why it could not be made, and the job for its outcome (0: none). Index: batch_open.
-- params: int4
SELECT batch_id, COALESCE(job_id, 0) AS job_id, why, COALESCE(outcome_job_id, 0) AS outcome_job_id FROM claimd.end_batches($1)
