-- SPDX-License-Identifier: Apache-2.0
-- The end of a job: completion in its handler's own transaction, and what follows from any end.

-- Completes a running job in the transaction of its handler, so that the handler's writes and the completion commit together or not
-- at all (guarantee G4). Raises CL001 if the claim is no longer the job's newest: the caller must roll back. A transaction whose
-- commit has an unknown outcome must not be repeated with the same fence; if it has committed, the repetition is refused as well. The
-- job's row is locked until the transaction ends.
CREATE OR REPLACE FUNCTION complete_in_tx(id bigint, fence bigint, result jsonb DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := CASE
        WHEN id IS NULL THEN 'id: must not be NULL'
        WHEN fence IS NULL OR fence <= 0 THEN 'fence: must be that of a claim'
        WHEN octet_length(result::text) > 65536 THEN 'result: at most 65536 bytes as JSON text'
    END;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    WITH gone AS (
        DELETE FROM job j WHERE j.id = complete_in_tx.id AND j.state = 'running' AND j.fence = complete_in_tx.fence RETURNING j.*
    ), unwatched AS (
        DELETE FROM job_live l USING gone g WHERE l.id = g.id
    )
    INSERT INTO job_history ({carried}, crashes, state, result)
    SELECT {g.carried}, g.crashes, 'completed', complete_in_tx.result FROM gone g;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'CL001',
            MESSAGE = format('job %s does not run under fence %s (any more): roll back', id, fence);
    END IF;
END $$;

-- Does what the end of a job requires besides, according to job.flags. (Keys and places of limits are freed by free_ended().) One
-- trigger does it all, because each trigger costs every job a check. Every end of a job deletes its row, so this holds for programs
-- of every release. It never waits: a producer may hold the row of a key for long. It keeps generic plans, because planning each
-- statement again would cost more than all its work.
CREATE OR REPLACE FUNCTION job_ended() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET jit = off AS $$
BEGIN
    IF OLD.flags & {flag.unique} <> 0 THEN
        DELETE FROM job_key
         WHERE ctid = (SELECT k.ctid FROM job_key k WHERE k.key = OLD.unique_key AND k.job_id = OLD.id FOR UPDATE SKIP LOCKED);
    END IF;
    IF OLD.flags & {flag.waits} <> 0 THEN
        IF EXISTS (SELECT FROM job_wait w WHERE w.job_id = OLD.id) THEN
            PERFORM keep_predecessors(OLD.id);
            DELETE FROM job_wait w WHERE w.job_id = OLD.id;
            DELETE FROM job_after a WHERE a.job_id = OLD.id;
        END IF;
    END IF;
    IF OLD.flags & {flag.deadline} <> 0 THEN
        DELETE FROM job_deadline d WHERE d.job_id = OLD.id;
    END IF;
    IF OLD.flags & {flag.asked} <> 0 THEN
        DELETE FROM job_live l WHERE l.id = OLD.id;
    END IF;
    RETURN NULL;
END $$;

-- Records the end of a job in its batch, in its map and for the jobs that wait for it, when the job enters the history, whose row has the final
-- state. To look the state up from the other trigger would require a plan over all days for each job.
CREATE OR REPLACE FUNCTION job_in_history() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET jit = off AS $$
BEGIN
    IF NEW.flags & {flag.batch} <> 0 THEN
        UPDATE batch_job m SET state = NEW.state WHERE m.job_id = NEW.id;
    END IF;
    IF NEW.flags & {flag.awaited} <> 0 THEN
        WITH told AS (
            UPDATE job_after a SET state = NEW.state WHERE a.after_id = NEW.id AND a.state IS NULL RETURNING a.job_id
        )
        INSERT INTO job_wake SELECT job_id FROM told;
        IF FOUND AND (SELECT hungry FROM cluster) AND may_notify() THEN -- as in job_inserted()
            PERFORM pg_notify('claimd', 'ended');
        END IF;
    END IF;
    IF NEW.flags & {flag.map} <> 0 THEN
        INSERT INTO map_ended (job_id, ended_at, attempts, unique_key, state, result, error)
        VALUES (NEW.id, NEW.finalized_at, NEW.attempt, NEW.unique_key, NEW.state, NEW.result, NEW.error);
    END IF;
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION complete_in_tx, job_ended, job_in_history FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION complete_in_tx TO claimd_admin;
