-- SPDX-License-Identifier: Apache-2.0
-- Jobs that are discarded if they do not start by their deadline.

CREATE OR REPLACE FUNCTION why_no_expiry(expires_at timestamptz, scheduled_at timestamptz) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN NOT isfinite(expires_at) OR expires_at > '2286-01-01 00:00:00+00'
            THEN 'expires_at: must lie before the year 2286'
            WHEN expires_at <= scheduled_at
            THEN 'expires_at: must be later than scheduled_at' END;

-- Stores the deadlines of the jobs that enqueue_many() has inserted for an array.
CREATE OR REPLACE FUNCTION set_deadlines(jobs jsonb, ids bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM require_program(19); -- an older one would start them late
    INSERT INTO job_deadline (job_id, expires_at)
    SELECT ids[e.n], (e.request ->> 'expires_at')::timestamptz FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e(request, n)
     WHERE e.request ->> 'expires_at' IS NOT NULL;
END $$;

-- Discards those of the jobs that have expired, except rows that are locked. Returns how many.
CREATE OR REPLACE FUNCTION expire(ids bigint[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    expired bigint[] := ARRAY(SELECT d.job_id FROM job_deadline d WHERE d.job_id = ANY (ids) AND d.expires_at <= clock_timestamp());
    done bigint;
BEGIN
    IF expired = '{}' THEN
        RETURN 0;
    END IF;
    WITH gone AS (
        DELETE FROM job j
         WHERE j.id = ANY (ARRAY(SELECT o.id FROM job o WHERE o.id = ANY (expired) AND o.state = 'available' AND o.attempt = 0
                                    FOR UPDATE SKIP LOCKED))
        RETURNING j.*
    )
    INSERT INTO job_history ({carried}, crashes, state, error)
    SELECT {g.carried}, g.crashes, 'discarded', 'expired' FROM gone g;
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END $$;

-- Called by the leading scheduler each second: discards expired jobs, the earliest deadlines first. A job that has started by then no
-- longer expires. Returns how many were discarded.
CREATE OR REPLACE FUNCTION expire_jobs(most integer DEFAULT 1000) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    due bigint[] := ARRAY(SELECT d.job_id FROM job_deadline d WHERE d.expires_at <= clock_timestamp() ORDER BY d.expires_at LIMIT most);
    done bigint := expire(due);
BEGIN
    DELETE FROM job_deadline d
     WHERE d.job_id = ANY (due) AND NOT EXISTS (SELECT FROM job j WHERE j.id = d.job_id AND j.state = 'available' AND j.attempt = 0);
    RETURN done;
END $$;

REVOKE ALL ON FUNCTION why_no_expiry, set_deadlines, expire, expire_jobs FROM PUBLIC, {roles};
