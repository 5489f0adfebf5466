-- SPDX-License-Identifier: Apache-2.0
DROP TRIGGER retake_key ON job;
DROP TRIGGER job_ended ON job;
DROP FUNCTION job_ended(), retake_key(), why_refused(text, jsonb, text, integer, timestamptz, integer, interval, text,
                                                                    text[], jsonb),
    why_not_unique(job_request), request_refusal(job_request), request_key(job_request), ended_badly(bigint), key_holds(job_key),
    take_key(text, text, timestamptz, bigint), meet_holder(job_request, bigint), enqueue_request(job_request), enqueue, enqueue_unique,
    request_of(jsonb), enqueue_many_unique(jsonb);
DROP TABLE job_key;
ALTER TYPE job_request DROP ATTRIBUTE unique_by, DROP ATTRIBUTE unique_for, DROP ATTRIBUTE unique_states, DROP ATTRIBUTE on_conflict;

-- Not overloaded for json: with both, the untyped '{…}' of everybody else would be ambiguous.
CREATE FUNCTION enqueue(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
                        scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL,
                        timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, exclusive_key text DEFAULT NULL,
                        share_key text DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := CASE
        WHEN kind IS NULL OR kind !~ '^[a-z][a-z0-9_]*$' OR octet_length(kind) > 64
        THEN 'kind: must match ^[a-z][a-z0-9_]*$ and have at most 64 octets'
        WHEN queue IS NULL OR queue !~ '^[a-z][a-z0-9_.-]*$' OR octet_length(queue) > 64
        THEN 'queue: must match ^[a-z][a-z0-9_.-]*$ and have at most 64 octets'
        WHEN priority IS NULL OR priority NOT BETWEEN 0 AND 9
        THEN 'priority: must be 0 (first) to 9'
        WHEN args IS NULL
        THEN 'args: must be a JSON value, not NULL'
        WHEN pg_column_size(args) > 2000 AND octet_length(args::text) > 1048576
        THEN 'args: at most 1048576 octets as JSON text'
        WHEN scheduled_at > '2286-01-01 00:00:00+00'
        THEN 'scheduled_at: must lie before the year 2286, so not infinity; the past means now'
        WHEN max_attempts < 1
        THEN 'max_attempts: must be 1 or more'
        WHEN timeout <= interval '0' OR timeout > interval '366 days'
        THEN 'timeout: must be more than 0 and at most 366 days'
        WHEN pg_column_size(tags) > 8192
        THEN 'tags: at most 8192 octets together'
        WHEN pg_column_size(metadata) > 2000 AND octet_length(metadata::text) > 65536
        THEN 'metadata: at most 65536 octets as JSON text'
        WHEN unique_key IS NOT NULL
        THEN 'unique_key: not supported by this version, must be NULL'
        WHEN exclusive_key IS NOT NULL
        THEN 'exclusive_key: not supported by this version, must be NULL'
    END;
    new_id bigint;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    INSERT INTO job (kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata)
    VALUES (kind, args, queue, priority,
            -- Not stored as it is: many a client can't read -infinity, nor years before the first.
            CASE WHEN scheduled_at >= '0001-01-01 00:00:00+00' THEN scheduled_at ELSE clock_timestamp() END, max_attempts, timeout,
            CASE WHEN share_key IS NULL THEN 0
                 ELSE 1 + (hashtextextended(share_key, 0) & 9223372036854775807) % 63 END,
            tags, metadata)
    RETURNING id INTO new_id;
    RETURN new_id;
END $$;
REVOKE ALL ON FUNCTION enqueue FROM PUBLIC;
GRANT EXECUTE ON FUNCTION enqueue TO claimd_admin, claimd_producer;

-- Raises CL002 for the first element that enqueue() would refuse; else returns. May store jobs on the way: its caller must fail.
CREATE OR REPLACE FUNCTION refuse_requests(jobs jsonb) RETURNS void
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
CREATE OR REPLACE FUNCTION enqueue_many(jobs jsonb) RETURNS SETOF bigint
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
