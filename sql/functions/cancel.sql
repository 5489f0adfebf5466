-- SPDX-License-Identifier: Apache-2.0
-- Cancelling open jobs, and deleting finished ones.

-- Cancels a job. A job that does not run is cancelled at once; a running one is asked to stop, and the result is 'cancelling'.
-- Repeating the call is no error.
CREATE OR REPLACE FUNCTION cancel(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    found_state text;
    run_fence bigint;
BEGIN
    IF id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'id: must not be NULL';
    END IF;
    PERFORM check_job_owners(ARRAY[id]);
    FOR try IN 1..10 LOOP -- it may come from one state into the other meanwhile
        WITH gone AS (
            DELETE FROM job j WHERE j.id = cancel.id AND j.state = 'available' RETURNING j.*
        ), unwatched AS (
            DELETE FROM job_live l USING gone g WHERE l.id = g.id
        )
        INSERT INTO job_history ({carried}, crashes, state)
        SELECT {g.carried}, g.crashes, 'cancelled' FROM gone g;
        IF FOUND THEN
            RETURN 'cancelled';
        END IF;
        -- The lock keeps its end from coming between: what is written here would be left behind.
        SELECT j.fence INTO run_fence FROM job j WHERE j.id = cancel.id AND j.state = 'running' FOR NO KEY UPDATE;
        IF FOUND THEN
            -- Its end takes away what is written here, though its worker may not have heard of it by then.
            UPDATE job j SET flags = j.flags | {flag.asked} WHERE j.id = cancel.id AND j.flags & {flag.asked} = 0;
            INSERT INTO job_live AS l (id, fence, cancel_requested) VALUES (cancel.id, run_fence, true)
                ON CONFLICT ON CONSTRAINT job_live_pkey DO UPDATE SET fence = excluded.fence, cancel_requested = true;
            PERFORM pg_notify('claimd_cancel', cancel.id::text) WHERE may_notify();
            RETURN 'cancelling';
        END IF;
        EXIT WHEN NOT EXISTS (SELECT FROM job j WHERE j.id = cancel.id);
    END LOOP;
    SELECT j.state INTO found_state FROM job j WHERE j.id = cancel.id;
    IF NOT FOUND THEN
        SELECT h.state INTO found_state FROM job_history h WHERE h.id = cancel.id ORDER BY h.finalized_at DESC LIMIT 1;
    END IF;
    IF found_state = 'cancelled' THEN
        RETURN 'cancelled';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'CL003',
        MESSAGE = 'job ' || id || CASE
            WHEN found_state IN ('available', 'running') THEN ' has just changed: try again'
            ELSE COALESCE(' is ' || found_state || ' already', ' not found') END;
END $$;

-- Deletes a finished job: all its generations, failed attempts and edits. Returns its last state.
CREATE OR REPLACE FUNCTION delete_job(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    found_state text;
BEGIN
    IF id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'id: must not be NULL';
    END IF;
    DELETE FROM job_history h WHERE h.id = delete_job.id AND h.retried_at IS NULL RETURNING h.state INTO found_state;
    IF found_state IS NULL THEN
        SELECT j.state INTO found_state FROM job j WHERE j.id = delete_job.id;
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = 'job ' || id || COALESCE(' is ' || found_state || ': only a finished job can be deleted', ' not found');
    END IF;
    DELETE FROM job_history h WHERE h.id = delete_job.id;
    DELETE FROM job_attempt a WHERE a.job_id = delete_job.id;
    DELETE FROM job_edit e WHERE e.job_id = delete_job.id;
    DELETE FROM job_waited w WHERE w.job_id = delete_job.id;
    RETURN found_state;
END $$;

REVOKE ALL ON FUNCTION cancel, delete_job FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION cancel TO claimd_admin, claimd_producer;
GRANT EXECUTE ON FUNCTION delete_job TO claimd_admin;
