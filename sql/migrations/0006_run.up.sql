-- SPDX-License-Identifier: Apache-2.0
-- What can be said to a running job, and what it says of itself. No release so far writes job_live: it is empty.

ALTER TABLE job_live
    ADD COLUMN percent smallint, -- of `progress`, its text
    ADD COLUMN changed_at timestamptz, -- when it last said something of itself
    ADD CONSTRAINT job_live_percent_range CHECK (percent BETWEEN 0 AND 100),
    ADD CONSTRAINT job_live_progress_size CHECK (length(progress) <= 200),
    ADD CONSTRAINT job_live_checkpoint_size
        CHECK (pg_column_size(checkpoint) <= 2000 OR octet_length(checkpoint::text) <= 65536);
-- For the workers' beats: they ask for nothing else, and it is nearly always empty.
CREATE INDEX job_live_cancel ON job_live (id) WHERE cancel_requested;

-- A job that does not run is cancelled at once; one that runs is asked to end, and 'cancelling'. A second time is no error.
CREATE OR REPLACE FUNCTION cancel(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    found_state text;
    run_fence bigint;
BEGIN
    IF id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'id: must not be NULL';
    END IF;
    FOR try IN 1..10 LOOP -- it may come from one state into the other meanwhile
        WITH gone AS (
            DELETE FROM job j WHERE j.id = cancel.id AND j.state = 'available' RETURNING j.*
        ), unwatched AS (
            DELETE FROM job_live l USING gone g WHERE l.id = g.id
        )
        INSERT INTO job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, crashes,
                                 generation, priority, share, state, queue, kind, args, max_attempts, timeout, tags, metadata,
                                 flags, version, unique_key, backoff)
        SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.crashes,
               g.generation, g.priority, g.share, 'cancelled', g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags,
               g.metadata, g.flags, g.version, g.unique_key, g.backoff
          FROM gone g;
        IF FOUND THEN
            RETURN 'cancelled';
        END IF;
        -- The lock keeps its end from coming between: what is written here would be left behind.
        SELECT j.fence INTO run_fence FROM job j WHERE j.id = cancel.id AND j.state = 'running' FOR NO KEY UPDATE;
        IF FOUND THEN
            INSERT INTO job_live AS l (id, fence, cancel_requested) VALUES (cancel.id, run_fence, true)
                ON CONFLICT ON CONSTRAINT job_live_pkey DO UPDATE SET fence = excluded.fence, cancel_requested = true;
            PERFORM pg_notify('claimd_cancel', cancel.id::text);
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
