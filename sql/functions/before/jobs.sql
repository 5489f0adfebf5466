-- SPDX-License-Identifier: Apache-2.0
-- How a job is doing.

-- The scheduled_at of a job that waits for others (0008): no claim takes it, no feed reads it.
CREATE OR REPLACE FUNCTION job_waits() RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN timestamptz '2285-12-31 00:00:00+00';

-- The state of an open job, in the words of people. {flag.waits} tells one that waits for others from one that somebody wants that late.
CREATE OR REPLACE FUNCTION open_state(state text, ready_at timestamptz, attempt integer, flags smallint) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN state = 'running' THEN 'running'
            WHEN ready_at <= statement_timestamp() THEN 'available'
            WHEN flags & {flag.waits} <> 0 AND ready_at = job_waits() THEN 'waiting'
            WHEN attempt > 0 THEN 'retryable'
            ELSE 'scheduled' END;

-- Nothing is there of a job of this id, but it may have been: it was given out, and there are kinds of which nothing is kept.
CREATE OR REPLACE FUNCTION may_be_gone(id bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM retention r WHERE r.days = 0) AND may_be_gone.id BETWEEN 1 AND (SELECT last_value FROM job_id_seq);
END $$;

-- No row: there is no such job, or its history has been dropped. State 'gone': where kinds keep no completed jobs, nobody can tell that
-- from a job that was completed.
CREATE OR REPLACE FUNCTION job_status(id bigint)
RETURNS TABLE (state text, attempt integer, result jsonb, error text, finalized_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
BEGIN
    PERFORM check_job_owners(ARRAY[job_status.id], reads => true);
    RETURN QUERY SELECT j.state, j.attempt, j.result, j.error, j.finalized_at FROM jobs j WHERE j.id = job_status.id;
    IF NOT FOUND AND may_be_gone(job_status.id) THEN
        state := 'gone';
        RETURN NEXT;
    END IF;
END $$;

-- The same as soon as the job has ended, or as it is when the time is over. Looks every 5 ms, then ever less often, up to 4 times a
-- second. Holds a snapshot meanwhile, which keeps vacuum from its work: hence the short limit.
CREATE OR REPLACE FUNCTION wait(id bigint, timeout interval DEFAULT '30 s')
RETURNS TABLE (state text, attempt integer, result jsonb, error text, finalized_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    until_at timestamptz;
    pause float8 := 0.005;
    mine xid := pg_current_xact_id_if_assigned()::xid;
    found_job record;
BEGIN
    IF wait.timeout IS NULL OR wait.timeout < interval '0' OR wait.timeout > interval '60 s' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'timeout: must be 0 to 60 s';
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'only a READ COMMITTED transaction can see how the job goes on';
    END IF;
    until_at := clock_timestamp() + wait.timeout;
    IF EXISTS (SELECT FROM job j WHERE j.id = wait.id AND j.xmin = mine) THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'job ' || wait.id || ' is of this transaction: commit first';
    END IF;
    LOOP
        SELECT * INTO found_job FROM job_status(wait.id);
        EXIT WHEN found_job IS NULL OR found_job.finalized_at IS NOT NULL OR found_job.state = 'gone' OR clock_timestamp() >= until_at;
        PERFORM pg_sleep(LEAST(pause, extract(epoch FROM until_at - clock_timestamp())));
        pause := LEAST(pause * 1.5, 0.25);
    END LOOP;
    IF found_job.state IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'job ' || COALESCE(wait.id::text, 'NULL') || ' not found';
    END IF;
    RETURN QUERY SELECT found_job.state, found_job.attempt, found_job.result, found_job.error, found_job.finalized_at;
END $$;

REVOKE ALL ON FUNCTION job_waits, open_state, may_be_gone, job_status, wait FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION job_waits, open_state, job_status, wait TO claimd_admin, claimd_producer, claimd_reader;
GRANT EXECUTE ON FUNCTION may_be_gone TO claimd_admin, claimd_reader;
