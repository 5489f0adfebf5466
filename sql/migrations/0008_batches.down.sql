-- SPDX-License-Identifier: Apache-2.0
-- Jobs that wait are due from now on.
UPDATE job j SET scheduled_at = GREATEST(w.scheduled_at, clock_timestamp()) FROM job_wait w
 WHERE j.id = w.job_id AND j.state = 'available' AND j.scheduled_at = job_waits();
DROP TRIGGER job_ended ON job;
DROP TRIGGER job_again ON job;
DROP TRIGGER job_in_history ON job_history;
DROP FUNCTION job_ended, job_in_history, job_again, after, wait_for, release_jobs, batch_status, batch_open, batch_add, batch_close, batch_cancel,
    batch_of, follow_up_of, refuse_batch, end_batches, repair_batches, repair_waits;
DROP VIEW batches;
DROP VIEW own_jobs;
DROP VIEW jobs;
DROP TABLE job_wake, job_after_turn, job_after, job_wait, batch_job, batch;

-- Both tables with the states that people know.
CREATE VIEW jobs AS
SELECT id, kind, queue, args, priority, share,
       CASE WHEN state = 'running' THEN 'running'
            WHEN ready_at <= statement_timestamp() THEN 'available'
            WHEN attempt > 0 THEN 'retryable'
            ELSE 'scheduled' END AS state,
       created_at, scheduled_at, ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000') AS worker_id,
       NULLIF(attempted_at, 'epoch') AS attempted_at, max_attempts, timeout, tags, metadata,
       NULL::timestamptz AS finalized_at, NULL::jsonb AS result, NULL::text AS error
  FROM job
UNION ALL
SELECT id, kind, queue, args, priority, share, state, created_at, scheduled_at, ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000'),
       NULLIF(attempted_at, 'epoch'), max_attempts, timeout, tags, metadata,
       finalized_at, result, error
  FROM job_history;

GRANT SELECT ON jobs TO claimd_admin, claimd_reader;
