-- SPDX-License-Identifier: Apache-2.0
-- The state of jobs.

-- Returns the scheduled_at of a job that waits for others (0008): no claim takes such a job, and no feed reads it.
CREATE OR REPLACE FUNCTION job_waits() RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN timestamptz '2285-12-31 00:00:00+00';

-- Returns the state of an open job as users know it. The flags distinguish a job that waits for others, or for its turn in its map, from
-- a job that was scheduled for that late a time.
CREATE OR REPLACE FUNCTION open_state(state text, ready_at timestamptz, attempt integer, flags smallint) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN state = 'running' THEN 'running'
            WHEN ready_at <= statement_timestamp() THEN 'available'
            WHEN flags & {flag.waits|map} <> 0 AND ready_at = job_waits() THEN 'waiting'
            WHEN attempt > 0 THEN 'retryable'
            ELSE 'scheduled' END;

-- True if a job of this id may have existed although nothing of it is left: the id was issued, and some kinds keep no completed jobs.
CREATE OR REPLACE FUNCTION may_be_gone(id bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM retention r WHERE r.days = 0) AND may_be_gone.id BETWEEN 1 AND (SELECT last_value FROM job_id_seq);
END $$;

-- Returns the state of a job. No row: there is no such job, or its history has been dropped. State 'gone': the same, or the job has
-- completed, which can't be distinguished because some kinds keep no completed jobs.
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

-- Returns the same as soon as the job has ended, or its current state when the time is over. Looks after 5 ms at first, then at
-- intervals that grow up to a quarter of a second. Holds a snapshot meanwhile, which keeps vacuum from its work: hence the short limit.
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
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'job ' || wait.id || ' was made in this transaction: commit first';
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
