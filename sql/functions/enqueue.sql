-- SPDX-License-Identifier: Apache-2.0
-- Enqueueing jobs: one, a unique one, or many.

CREATE OR REPLACE FUNCTION request_keys() RETURNS text[]
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp
RETURN ARRAY(SELECT attname::text FROM pg_attribute
              WHERE attrelid = 'job_request'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum);

-- Returns what is wrong with a request, naming the argument, or NULL if it is valid. Inlined into its callers.
CREATE OR REPLACE FUNCTION request_refusal(r job_request) RETURNS text
LANGUAGE sql STABLE
RETURN CASE
    WHEN r.kind IS NULL OR r.kind !~ '^[a-z][a-z0-9_]*$' OR octet_length(r.kind) > 64
    THEN 'kind: must match ^[a-z][a-z0-9_]*$ and have at most 64 bytes'
    WHEN why_no_queue(r.queue) IS NOT NULL
    THEN why_no_queue(r.queue)
    WHEN r.priority IS NULL OR r.priority NOT BETWEEN 0 AND 9
    THEN 'priority: must be 0 (first) to 9'
    WHEN r.args IS NULL
    THEN 'args: must be a JSON value, not NULL'
    WHEN is_too_long(r.args, 1048576)
    THEN 'args: at most 1048576 bytes as JSON text, or 65536 if long numbers such as 1e9999 are written out in it'
    WHEN r.scheduled_at > '2286-01-01 00:00:00+00'
    THEN 'scheduled_at: must lie before the year 2286, so not infinity; the past means now'
    WHEN r.max_attempts < 1
    THEN 'max_attempts: must be 1 or more'
    WHEN r.timeout <= interval '0' OR r.timeout > interval '366 days'
    THEN 'timeout: must be more than 0 and at most 366 days'
    WHEN pg_column_size(r.tags) > 8192
    THEN 'tags: at most 8192 bytes together'
    WHEN is_too_long(r.metadata, 65536)
    THEN 'metadata: at most 65536 bytes as JSON text'
    WHEN why_no_labels(r.tags, r.metadata) IS NOT NULL
    THEN why_no_labels(r.tags, r.metadata)
    WHEN octet_length(r.exclusive_key) NOT BETWEEN 1 AND 512
    THEN 'exclusive_key: must have 1 to 512 bytes'
    WHEN octet_length(r.second_key) NOT BETWEEN 1 AND 512
    THEN 'second_key: must have 1 to 512 bytes'
    WHEN octet_length(r.share_key) NOT BETWEEN 1 AND 512
    THEN 'share_key: must have 1 to 512 bytes'
    ELSE COALESCE(why_no_backoff(r.backoff), why_no_grace(r.grace), why_not_unique(r),
                  why_not_after(COALESCE(r.after, CASE WHEN r.after_jobs IS NOT NULL THEN '{1}'::bigint[] END), r.if_dead),
                  why_no_expiry(r.expires_at, r.scheduled_at))
END;

-- Inserts the job, or finds the job that stands in its way. If `waits` is false, the caller makes it wait for others, by after_many().
CREATE OR REPLACE FUNCTION enqueue_request(r job_request, waits boolean DEFAULT true, OUT id bigint, OUT inserted boolean)
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := request_refusal(r);
    key text;
    states text;
    holder job_key;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    id := nextval('job_id_seq');
    IF r.unique_key IS NOT NULL OR r.unique_by IS NOT NULL THEN
        key := request_key(r);
        states := COALESCE(r.unique_states, CASE WHEN r.unique_for IS NULL THEN 'open' ELSE 'all' END);
        LOOP -- again only after another transaction has moved the job that was in the way
            holder := take_key(key, states, clock_timestamp() + r.unique_for, id);
            EXIT WHEN holder.job_id = id OR meet_holder(r, holder);
        END LOOP;
        IF holder.job_id <> id THEN
            IF holder.states = 'queued' AND r.on_conflict = 'ignore' THEN -- an edit keeps it locked
                INSERT INTO job_promise (key, request) VALUES (key, to_jsonb(r));
            END IF;
            id := holder.job_id;
            inserted := false;
            RETURN;
        END IF;
    END IF;
    IF EXISTS (SELECT FROM queue q WHERE q.name = r.queue AND q.max_open IS NOT NULL) THEN
        PERFORM take_room(r.queue, 1);
    END IF;
    INSERT INTO job (id, kind, args, queue, priority, share, unique_key, scheduled_at, flags, {given})
    OVERRIDING SYSTEM VALUE
    VALUES (id, r.kind, r.args, r.queue, r.priority, COALESCE(share_of(r.share_key), 0), key,
            -- Not stored as it is: many a client can't read -infinity, nor years before the first.
            CASE WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
            CASE WHEN states IN ('queued', 'open') THEN {flag.unique} ELSE 0 END
            + CASE WHEN r.exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END
            + CASE WHEN r.expires_at IS NULL THEN 0 ELSE {flag.deadline} END,
            {r.given});
    inserted := true;
    IF r.expires_at IS NOT NULL THEN
        PERFORM require_program(19); -- an older one would start it late
        INSERT INTO job_deadline (job_id, expires_at) VALUES (id, r.expires_at);
    END IF;
    IF r.kind IS DISTINCT FROM current_setting('claimd.kind', true) THEN
        PERFORM look_at_kind(r.kind);
    END IF;
    IF waits AND r.after IS NOT NULL THEN
        PERFORM after(id, r.after, COALESCE(r.if_dead, 'cancel'));
    END IF;
END $$;

-- Enqueues a job; returns its id. Not overloaded for json: with both types, an untyped literal such as '{…}' would be ambiguous.
CREATE OR REPLACE FUNCTION enqueue(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
                        scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL,
                        timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, exclusive_key text DEFAULT NULL,
                        share_key text DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
                        unique_by text[] DEFAULT NULL, unique_for interval DEFAULT NULL, unique_states text DEFAULT NULL,
                        on_conflict text DEFAULT 'error', backoff text DEFAULT NULL, after bigint[] DEFAULT NULL,
                        if_dead text DEFAULT NULL, expires_at timestamptz DEFAULT NULL, second_key text DEFAULT NULL, grace interval DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text;
    new_id bigint;
BEGIN
    IF num_nonnulls(unique_key, unique_by, unique_for, unique_states, after, if_dead, expires_at) > 0
       OR on_conflict IS DISTINCT FROM 'error' THEN
        RETURN (enqueue_request(ROW(kind, args, queue, priority, scheduled_at, max_attempts, timeout, unique_key, exclusive_key,
                                    share_key, tags, metadata, unique_by, unique_for, unique_states, on_conflict, backoff,
                                    after, if_dead, expires_at, NULL, second_key, grace))).id;
    END IF;
    -- No record is made of all others: the check gets the parameters inline, which saves a tenth of the time.
    wrong := request_refusal(ROW(kind, args, queue, priority, scheduled_at, max_attempts, timeout, unique_key, exclusive_key,
                                 share_key, tags, metadata, unique_by, unique_for, unique_states, on_conflict, backoff, after,
                                 if_dead, expires_at, NULL, second_key, grace)::job_request);
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    IF EXISTS (SELECT FROM queue q WHERE q.name = enqueue.queue AND q.max_open IS NOT NULL) THEN
        PERFORM take_room(queue, 1);
    END IF;
    INSERT INTO job (kind, args, queue, priority, share, scheduled_at, flags, {given})
    VALUES (kind, args, queue, priority, COALESCE(share_of(share_key), 0),
            CASE WHEN scheduled_at >= '0001-01-01 00:00:00+00' THEN scheduled_at ELSE clock_timestamp() END,
            CASE WHEN exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END, {given})
    RETURNING id INTO new_id;
    IF kind IS DISTINCT FROM current_setting('claimd.kind', true) THEN
        PERFORM look_at_kind(kind);
    END IF;
    RETURN new_id;
END $$;

-- Does the same for a job with a unique key, and returns whether it was inserted: an existing job is no error here.
CREATE OR REPLACE FUNCTION enqueue_unique(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
                               scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL,
                               timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, exclusive_key text DEFAULT NULL,
                               share_key text DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
                               unique_by text[] DEFAULT NULL, unique_for interval DEFAULT NULL, unique_states text DEFAULT NULL,
                               on_conflict text DEFAULT 'ignore', backoff text DEFAULT NULL, after bigint[] DEFAULT NULL,
                               if_dead text DEFAULT NULL, expires_at timestamptz DEFAULT NULL, second_key text DEFAULT NULL,
                               grace interval DEFAULT NULL, OUT id bigint, OUT inserted boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF unique_key IS NULL AND unique_by IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'unique_key: must be given, or unique_by';
    END IF;
    SELECT e.id, e.inserted INTO id, inserted
      FROM enqueue_request(ROW(kind, args, queue, priority, scheduled_at, max_attempts, timeout, unique_key, exclusive_key,
                               share_key, tags, metadata, unique_by, unique_for, unique_states, on_conflict, backoff, after,
                               if_dead, expires_at, NULL, second_key, grace)) AS e;
END $$;

-- Returns the request of an element, with the defaults of enqueue() for missing and null fields.
CREATE OR REPLACE FUNCTION request_of(element jsonb) RETURNS job_request
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    r job_request := jsonb_populate_record(NULL::job_request, element);
BEGIN
    r.args := COALESCE(r.args, '{}');
    r.queue := COALESCE(r.queue, 'default');
    r.priority := COALESCE(r.priority, 4);
    r.on_conflict := COALESCE(r.on_conflict, 'error');
    RETURN r;
END $$;

-- Raises CL002 for the first element that enqueue() would refuse; returns if there is none.
CREATE OR REPLACE FUNCTION refuse_requests(jobs jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := request_keys();
    request jsonb;
    n bigint;
    field text;
    wrong text;
BEGIN
    FOR request, n IN SELECT e.value, e.ordinality - 1 FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e LOOP
        IF jsonb_typeof(request) <> 'object' THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = format('jobs[%s]: must be an object', n);
        END IF;
        FOR field IN SELECT jsonb_object_keys(request) LOOP
            IF field <> ALL (known) THEN
                RAISE EXCEPTION USING ERRCODE = 'CL002',
                    MESSAGE = format('jobs[%s].%s: %s', n, left(field, 64), why_unknown(field, known));
            END IF;
            PERFORM with_value(NULL::job_request, field, request -> field, format('jobs[%s]', n));
        END LOOP;
        wrong := COALESCE(request_refusal(request_of(request)), why_not_after_jobs((request_of(request)).after_jobs, n));
        IF wrong IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = format('jobs[%s].%s', n, wrong);
        END IF;
    END LOOP;
END $$;

-- Enqueues elements one by one, in the order of their keys: two calls that want the same keys in different orders would deadlock. The
-- predecessors follow in the order of their ids, for the same reason; they come after the keys because a single call takes its key first.
CREATE OR REPLACE FUNCTION enqueue_many_unique(jobs jsonb) RETURNS TABLE (id bigint, inserted boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := request_keys();
    ids bigint[];
    made boolean[];
    one record;
    wanted record;
    place text := ''; -- in the array, of what is enqueued
    holder text;
BEGIN
    IF jobs IS NULL OR jsonb_typeof(jobs) <> 'array' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'jobs: must be a JSON array of objects';
    END IF;
    IF NOT EXISTS (SELECT FROM jsonb_array_elements(jobs) AS e WHERE e ?| unique_fields()) THEN
        RETURN QUERY SELECT e.id, true FROM enqueue_many(jobs) AS e(id);
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM jsonb_array_elements(jobs) AS e WHERE jsonb_typeof(e) <> 'object' OR e - known <> '{}') THEN
        PERFORM refuse_requests(jobs);
    END IF;
    FOR wanted IN SELECT t.n, t.r
                    FROM (SELECT e.ordinality AS n, request_of(e.value) AS r
                            FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e
                          OFFSET 0) AS t
                   ORDER BY request_key(t.r) COLLATE "C" NULLS FIRST, t.n LOOP
        place := format('jobs[%s]', wanted.n - 1);
        IF why_not_after_jobs((wanted.r).after_jobs, wanted.n - 1) IS NOT NULL THEN
            PERFORM refuse_requests(jobs);
        END IF;
        one := enqueue_request(wanted.r, false);
        ids[wanted.n] := one.id;
        made[wanted.n] := one.inserted;
    END LOOP;
    place := '';
    PERFORM after_many(jobs, ids, made) WHERE jsonb_path_exists(jobs, '$[*] ? (exists(@.after) || exists(@.after_jobs))');
    RETURN QUERY SELECT * FROM unnest(ids, made);
EXCEPTION
    WHEN SQLSTATE 'CL004' THEN
        GET STACKED DIAGNOSTICS holder = PG_EXCEPTION_DETAIL;
        RAISE EXCEPTION USING ERRCODE = 'CL004', DETAIL = holder, MESSAGE = concat_ws('.', NULLIF(place, ''), SQLERRM);
    WHEN SQLSTATE 'CL003' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = concat_ws(': ', NULLIF(place, ''), SQLERRM);
    WHEN SQLSTATE 'CL002' OR data_exception OR integrity_constraint_violation THEN
        PERFORM refuse_requests(jobs) WHERE jsonb_typeof(jobs) = 'array';
        RAISE;
END $$;

-- Enqueues an array of objects, each with the parameters of enqueue() as keys; null means the default. Enqueues all or none, and
-- returns the ids in the order of the array. The table checks the elements; if something is wrong that the table can't check, NULL is
-- inserted as kind. The elements are examined one by one only after such a failure.
CREATE OR REPLACE FUNCTION enqueue_many(jobs jsonb) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := request_keys();
    may_wait boolean;
    may_expire boolean;
    marks smallint[]; -- the flags {flag.waits} (waits for others) and {flag.awaited} (others wait for it) of each
    ids bigint[];
BEGIN
    IF jobs IS NULL OR jsonb_typeof(jobs) <> 'array' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'jobs: must be a JSON array of objects';
    END IF;
    IF EXISTS (SELECT FROM jsonb_array_elements(jobs) AS e WHERE e ?| unique_fields()) THEN
        RETURN QUERY SELECT e.id FROM enqueue_many_unique(jobs) AS e;
        RETURN;
    END IF;
    SELECT bool_or(e ?| '{after,after_jobs,if_dead}'), bool_or(e ? 'expires_at') INTO may_wait, may_expire
      FROM jsonb_array_elements(jobs) AS e;
    IF EXISTS (SELECT FROM queue q WHERE q.max_open IS NOT NULL) THEN
        PERFORM take_rooms(jobs);
    END IF;
    PERFORM look_at_kind(u.name)
       FROM (SELECT DISTINCT e ->> 'kind' AS name FROM jsonb_array_elements(jobs) AS e) AS u;
    IF may_wait THEN
        marks := waiting_marks(jobs);
    END IF;
    WITH made AS (
        INSERT INTO job AS j (kind, args, queue, priority, share, scheduled_at, flags, {given})
        SELECT CASE WHEN e.request - known = '{}' AND why_no_labels(r.tags, r.metadata) IS NULL
                     AND (NOT may_wait OR why_not_after_any(r, e.n - 1) IS NULL)
                     AND (NOT may_expire OR why_no_expiry(r.expires_at, r.scheduled_at) IS NULL) THEN r.kind END,
               COALESCE(r.args, '{}'), COALESCE(r.queue, 'default'), COALESCE(r.priority, 4), COALESCE(share_of(r.share_key), 0),
               CASE WHEN marks[e.n] & {flag.waits} <> 0 THEN job_waits()
                    WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
               CASE WHEN r.exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END + COALESCE(marks[e.n], 0)
               + CASE WHEN r.expires_at IS NULL THEN 0 ELSE {flag.deadline} END,
               {r.given}
          FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e(request, n)
         CROSS JOIN LATERAL jsonb_populate_record(NULL::job_request, e.request) AS r
         ORDER BY e.n
        RETURNING j.id
    )
    SELECT array_agg(m.id) INTO ids FROM made m;
    IF may_expire THEN
        PERFORM set_deadlines(jobs, ids);
    END IF;
    IF may_wait THEN
        PERFORM after_many(jobs, ids);
    END IF;
    RETURN QUERY SELECT unnest(ids);
EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
    PERFORM refuse_requests(jobs);
    RAISE;
END $$;

REVOKE ALL ON FUNCTION request_keys, request_refusal, enqueue_request, enqueue, enqueue_unique,
    request_of, refuse_requests, enqueue_many_unique, enqueue_many FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION enqueue, enqueue_unique, enqueue_many_unique, enqueue_many TO claimd_admin, claimd_producer;

-- A function of release 0.1.0, replaced by request_refusal().
DROP FUNCTION IF EXISTS why_refused(text, jsonb, text, integer, timestamptz, integer, interval, text, text, text, text[], jsonb);
