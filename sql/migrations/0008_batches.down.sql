-- SPDX-License-Identifier: Apache-2.0
-- Jobs that wait are due from now on.
UPDATE job j SET scheduled_at = GREATEST(w.scheduled_at, clock_timestamp()) FROM job_wait w
 WHERE j.id = w.job_id AND j.state = 'available' AND j.scheduled_at = job_waits();
DROP TRIGGER job_ended ON job;
DROP TRIGGER job_again ON job;
DROP TRIGGER job_in_history ON job_history;
DROP FUNCTION job_ended, job_in_history, job_again, after, wait_for, release_jobs, batch_status, batch_open, batch_add, batch_close, batch_cancel,
    refuse_batch, end_batches, repair_batches, repair_waits;
DROP VIEW batches;
DROP TABLE job_wake, job_after_turn, job_after, job_wait, batch_job, batch;
