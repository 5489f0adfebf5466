-- SPDX-License-Identifier: Apache-2.0
-- How a job is doing, for whoever knows its id: producers get it when they make the job, and may read nothing else of it.

-- No row: there is no such job, or its history has been dropped.
CREATE FUNCTION job_status(id bigint)
RETURNS TABLE (state text, attempt integer, result jsonb, error text, finalized_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
    SELECT j.state, j.attempt, j.result, j.error, j.finalized_at FROM jobs j WHERE j.id = job_status.id
$$;

-- The same as soon as the job has ended, or as it is when the time is over. Looks every 5 ms, then ever less often, up to 4 times a
-- second. Holds a snapshot meanwhile, which keeps vacuum from its work: hence the short limit.
CREATE FUNCTION wait(id bigint, timeout interval DEFAULT '30 s')
RETURNS TABLE (state text, attempt integer, result jsonb, error text, finalized_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    until_at timestamptz := clock_timestamp() + wait.timeout;
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
    IF EXISTS (SELECT FROM job j WHERE j.id = wait.id AND j.xmin = mine) THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'job ' || wait.id || ' is of this transaction: commit first';
    END IF;
    LOOP
        SELECT * INTO found_job FROM job_status(wait.id);
        EXIT WHEN found_job IS NULL OR found_job.finalized_at IS NOT NULL OR clock_timestamp() >= until_at;
        PERFORM pg_sleep(LEAST(pause, extract(epoch FROM until_at - clock_timestamp())));
        pause := LEAST(pause * 1.5, 0.25);
    END LOOP;
    IF found_job.state IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'job ' || COALESCE(wait.id::text, 'NULL') || ' not found';
    END IF;
    RETURN QUERY SELECT found_job.state, found_job.attempt, found_job.result, found_job.error, found_job.finalized_at;
END $$;
REVOKE ALL ON FUNCTION job_status, wait FROM PUBLIC;
GRANT EXECUTE ON FUNCTION job_status, wait TO claimd_admin, claimd_producer, claimd_reader;
