-- SPDX-License-Identifier: Apache-2.0
-- What operators say to queues, kinds, workers and finished jobs.
ALTER TABLE kind ADD COLUMN paused boolean NOT NULL DEFAULT false;
ALTER TABLE worker ADD COLUMN asked text NOT NULL DEFAULT '', -- 'quiet' or 'drain': it is told with the answer to its next beat
    ADD CONSTRAINT worker_asked CHECK (asked IN ('', 'quiet', 'drain')) NOT VALID;

-- Nothing of a paused queue is fed, and none of its hints is popped; what runs goes on. True: it was not paused before.
CREATE FUNCTION pause_queue(queue text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF queue IS NULL OR queue !~ '^[a-z][a-z0-9_.-]*$' OR octet_length(queue) > 64 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'queue: must match ^[a-z][a-z0-9_.-]*$ and have at most 64 octets';
    END IF;
    INSERT INTO queue AS q (name, paused) VALUES (pause_queue.queue, true)
        ON CONFLICT (name) DO UPDATE SET paused = true WHERE NOT q.paused;
    RETURN FOUND;
END $$;

-- True: it was paused.
CREATE FUNCTION resume_queue(queue text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF queue IS NULL OR queue !~ '^[a-z][a-z0-9_.-]*$' OR octet_length(queue) > 64 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'queue: must match ^[a-z][a-z0-9_.-]*$ and have at most 64 octets';
    END IF;
    UPDATE queue q SET paused = false WHERE q.name = resume_queue.queue AND q.paused;
    RETURN FOUND;
END $$;

-- Workers withdraw a paused kind with their next beat: it is not claimed, and as nobody serves it, not fed either.
-- Older workers would go on with it.
CREATE FUNCTION pause_kind(kind text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM require_program(9);
    UPDATE kind k SET paused = true WHERE k.name = pause_kind.kind AND NOT k.paused;
    IF FOUND THEN
        RETURN true;
    END IF;
    IF NOT EXISTS (SELECT FROM kind k WHERE k.name = pause_kind.kind) THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'kind: must be one that a worker has announced (claimctl kinds list)';
    END IF;
    RETURN false;
END $$;

CREATE FUNCTION resume_kind(kind text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    UPDATE kind k SET paused = false WHERE k.name = resume_kind.kind AND k.paused;
    IF FOUND THEN
        RETURN true;
    END IF;
    IF NOT EXISTS (SELECT FROM kind k WHERE k.name = resume_kind.kind) THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'kind: must be one that a worker has announced (claimctl kinds list)';
    END IF;
    RETURN false;
END $$;

-- Asks a worker to take nothing new ('quiet'), or to end what runs and then itself ('drain').
CREATE FUNCTION ask_worker(worker_id uuid, what text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    why text;
BEGIN
    IF what IS NULL OR what NOT IN ('quiet', 'drain') THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'what: must be quiet or drain';
    END IF;
    SELECT CASE WHEN w.dead OR w.stopped THEN format('worker %s has ended', w.worker_id)
                WHEN w.stale_at < clock_timestamp() THEN format('worker %s is silent: it would not hear', w.worker_id)
                WHEN w.built_for < 9 THEN format('worker %s is of an older release: send it SIGUSR1 or SIGTERM', w.worker_id)
           ELSE '' END
      INTO why
      FROM worker w
     WHERE w.worker_id = ask_worker.worker_id
       FOR UPDATE;
    IF why IS DISTINCT FROM '' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = COALESCE(why, format('worker %s not found', COALESCE(ask_worker.worker_id::text, 'NULL')));
    END IF;
    -- A drain is the last word.
    UPDATE worker w SET asked = what WHERE w.worker_id = ask_worker.worker_id AND w.asked <> 'drain';
END $$;

-- Forgets a finished job: all its generations and failed attempts. Returns its state.
CREATE FUNCTION delete_job(id bigint) RETURNS text
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
    RETURN found_state;
END $$;

REVOKE ALL ON FUNCTION pause_queue, resume_queue, pause_kind, resume_kind, ask_worker, delete_job FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pause_queue, resume_queue, pause_kind, resume_kind, ask_worker, delete_job TO claimd_admin;

-- ---- part: alone ----
ALTER TABLE worker VALIDATE CONSTRAINT worker_asked;
