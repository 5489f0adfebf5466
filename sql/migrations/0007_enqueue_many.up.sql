-- SPDX-License-Identifier: Apache-2.0
-- Many jobs by one call.

-- What a job is asked for with: the parameters of enqueue(), by name and type.
CREATE TYPE job_request AS (
    kind text,
    args jsonb,
    queue text,
    priority integer,
    scheduled_at timestamptz,
    max_attempts integer,
    timeout interval,
    unique_key text,
    exclusive_key text,
    share_key text,
    tags text[],
    metadata jsonb
);

CREATE FUNCTION request_keys() RETURNS text[]
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp
RETURN ARRAY(SELECT attname::text FROM pg_attribute
              WHERE attrelid = 'job_request'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum);

-- Raises CL002 for the first element that enqueue() would refuse; else returns. May store jobs on the way: its caller must fail.
CREATE FUNCTION refuse_requests(jobs jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := request_keys();
    request jsonb;
    n bigint;
    field text;
    r job_request;
BEGIN
    FOR request, n IN SELECT e.value, e.ordinality - 1 FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e LOOP
        IF jsonb_typeof(request) <> 'object' THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = format('jobs[%s]: must be an object', n);
        END IF;
        FOR field IN SELECT jsonb_object_keys(request) LOOP
            IF field <> ALL (known) THEN
                RAISE EXCEPTION USING ERRCODE = 'CL002',
                    MESSAGE = format('jobs[%s].%s: unknown, must be one of %s', n, left(field, 64), array_to_string(known, ', '));
            END IF;
            BEGIN
                PERFORM jsonb_populate_record(NULL::job_request, jsonb_build_object(field, request -> field));
            EXCEPTION WHEN data_exception THEN
                RAISE EXCEPTION USING ERRCODE = 'CL002',
                    MESSAGE = format('jobs[%s].%s: must be of type %s: %s', n, field,
                                     (SELECT format_type(atttypid, atttypmod) FROM pg_attribute
                                       WHERE attrelid = 'job_request'::regclass AND attname = field), SQLERRM);
            END;
        END LOOP;
        r := jsonb_populate_record(NULL::job_request, request);
        BEGIN
            PERFORM enqueue(kind => r.kind, args => COALESCE(r.args, '{}'), queue => COALESCE(r.queue, 'default'),
                            priority => COALESCE(r.priority, 4), scheduled_at => r.scheduled_at, max_attempts => r.max_attempts,
                            timeout => r.timeout, unique_key => r.unique_key, exclusive_key => r.exclusive_key,
                            share_key => r.share_key, tags => r.tags, metadata => r.metadata);
        EXCEPTION WHEN SQLSTATE 'CL002' THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = format('jobs[%s].%s', n, SQLERRM);
        END;
    END LOOP;
END $$;

-- An array of objects, each with the parameters of enqueue() as keys; null means the default. All or none. Returns the ids in the
-- order of the array. The table checks the elements, a NULL as kind stands for what it can't check; they are looked at one by one
-- only when something is wrong.
CREATE FUNCTION enqueue_many(jobs jsonb) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := request_keys();
BEGIN
    IF jobs IS NULL OR jsonb_typeof(jobs) <> 'array' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'jobs: must be a JSON array of objects';
    END IF;
    RETURN QUERY
    INSERT INTO job AS j (kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata)
    SELECT CASE WHEN e.request - known = '{}' AND r.unique_key IS NULL AND r.exclusive_key IS NULL THEN r.kind END,
           COALESCE(r.args, '{}'), COALESCE(r.queue, 'default'), COALESCE(r.priority, 4),
           CASE WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
           r.max_attempts, r.timeout,
           CASE WHEN r.share_key IS NULL THEN 0
                ELSE 1 + (hashtextextended(r.share_key, 0) & 9223372036854775807) % 63 END,
           r.tags, r.metadata
      FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e(request, n)
     CROSS JOIN LATERAL jsonb_populate_record(NULL::job_request, e.request) AS r
     ORDER BY e.n
    RETURNING j.id;
EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
    PERFORM refuse_requests(jobs);
    RAISE;
END $$;
REVOKE ALL ON FUNCTION request_keys, refuse_requests, enqueue_many FROM PUBLIC;
GRANT EXECUTE ON FUNCTION enqueue_many TO claimd_admin, claimd_producer;
