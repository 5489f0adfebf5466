-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION job_status, may_be_gone, wait, complete_in_tx, delete_job, retry_many, retry, edit, patched_values, take_kept_edits, apply_patch, refuse_patch,
    ask_worker;
DROP TABLE job_edit;

-- Cancels a job that is not running; a second time is no error.
CREATE OR REPLACE FUNCTION cancel(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    found_state text;
BEGIN
    IF id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'id: must not be NULL';
    END IF;
    WITH gone AS (
        DELETE FROM job j WHERE j.id = cancel.id AND j.state = 'available' RETURNING j.*
    )
    INSERT INTO job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, crashes,
                             generation, priority, share, state, queue, kind, args, max_attempts, timeout, tags, metadata)
    SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.crashes,
           g.generation, g.priority, g.share, 'cancelled', g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags, g.metadata
      FROM gone g;
    IF FOUND THEN
        RETURN 'cancelled';
    END IF;
    SELECT j.state INTO found_state FROM job j WHERE j.id = cancel.id;
    IF NOT FOUND THEN
        SELECT h.state INTO found_state FROM job_history h WHERE h.id = cancel.id ORDER BY h.finalized_at DESC LIMIT 1;
    END IF;
    IF found_state = 'cancelled' THEN
        RETURN 'cancelled';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'CL003',
        MESSAGE = 'job ' || id || CASE found_state
            WHEN 'running' THEN ' is running: only a job that is not running can be cancelled'
            WHEN 'available' THEN ' has just changed: try again'
            ELSE COALESCE(' is ' || found_state || ' already', ' not found') END;
END $$;
