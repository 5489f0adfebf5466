-- SPDX-License-Identifier: Apache-2.0
-- New jobs: one, one that is unique, and many.

CREATE OR REPLACE FUNCTION request_keys() RETURNS text[]
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp
RETURN ARRAY(SELECT attname::text FROM pg_attribute
              WHERE attrelid = 'job_request'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum);

-- What is wrong with a job, naming the argument; NULL: nothing. Its callers get it inline.
CREATE OR REPLACE FUNCTION why_refused(kind text, args jsonb, queue text, priority integer, scheduled_at timestamptz, max_attempts integer,
                            timeout interval, exclusive_key text, second_key text, share_key text, tags text[], metadata jsonb)
RETURNS text
LANGUAGE sql STABLE
RETURN CASE
    WHEN kind IS NULL OR kind !~ '^[a-z][a-z0-9_]*$' OR octet_length(kind) > 64
    THEN 'kind: must match ^[a-z][a-z0-9_]*$ and have at most 64 octets'
    WHEN why_no_queue(queue) IS NOT NULL
    THEN why_no_queue(queue)
    WHEN priority IS NULL OR priority NOT BETWEEN 0 AND 9
    THEN 'priority: must be 0 (first) to 9'
    WHEN args IS NULL
    THEN 'args: must be a JSON value, not NULL'
    WHEN is_too_long(args, 1048576)
    THEN 'args: at most 1048576 octets as JSON text, or 65536 if long numbers such as 1e9999 are written out in it'
    WHEN scheduled_at > '2286-01-01 00:00:00+00'
    THEN 'scheduled_at: must lie before the year 2286, so not infinity; the past means now'
    WHEN max_attempts < 1
    THEN 'max_attempts: must be 1 or more'
    WHEN timeout <= interval '0' OR timeout > interval '366 days'
    THEN 'timeout: must be more than 0 and at most 366 days'
    WHEN pg_column_size(tags) > 8192
    THEN 'tags: at most 8192 octets together'
    WHEN is_too_long(metadata, 65536)
    THEN 'metadata: at most 65536 octets as JSON text'
    WHEN why_no_labels(tags, metadata) IS NOT NULL
    THEN why_no_labels(tags, metadata)
    WHEN octet_length(exclusive_key) NOT BETWEEN 1 AND 512
    THEN 'exclusive_key: must have 1 to 512 octets'
    WHEN octet_length(second_key) NOT BETWEEN 1 AND 512
    THEN 'second_key: must have 1 to 512 octets'
    WHEN octet_length(share_key) NOT BETWEEN 1 AND 512
    THEN 'share_key: must have 1 to 512 octets'
END;

CREATE OR REPLACE FUNCTION request_refusal(r job_request) RETURNS text
LANGUAGE sql STABLE
RETURN COALESCE(why_refused(r.kind, r.args, r.queue, r.priority, r.scheduled_at, r.max_attempts, r.timeout, r.exclusive_key, r.second_key,
                            r.share_key, r.tags, r.metadata), why_no_backoff(r.backoff), why_no_grace(r.grace), why_not_unique(r),
                why_not_after(COALESCE(r.after, CASE WHEN r.after_jobs IS NOT NULL THEN '{1}'::bigint[] END), r.if_dead),
                why_no_expiry(r.expires_at, r.scheduled_at));

-- Stores it, or finds the job that stands in its way. NOT waits: the caller lets it wait for others, with after_many().
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
    INSERT INTO job (id, kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata, unique_key, flags,
                     backoff, exclusive_key, share_key, second_key, grace)
    OVERRIDING SYSTEM VALUE
    VALUES (id, r.kind, r.args, r.queue, r.priority,
            CASE WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
            r.max_attempts, r.timeout, COALESCE(share_of(r.share_key), 0), r.tags, r.metadata, key, CASE WHEN states IN ('queued', 'open') THEN {flag.unique} ELSE 0 END
            + CASE WHEN r.exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END + CASE WHEN r.expires_at IS NULL THEN 0 ELSE {flag.deadline} END,
            r.backoff, r.exclusive_key, r.share_key, r.second_key, r.grace);
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

-- Not overloaded for json: with both, the untyped '{…}' of everybody else would be ambiguous.
CREATE OR REPLACE FUNCTION enqueue(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
                        scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL,
                        timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, exclusive_key text DEFAULT NULL,
                        share_key text DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
                        unique_by text[] DEFAULT NULL, unique_for interval DEFAULT NULL, unique_states text DEFAULT NULL,
                        on_conflict text DEFAULT 'error', backoff text DEFAULT NULL, after bigint[] DEFAULT NULL,
                        if_dead text DEFAULT NULL, expires_at timestamptz DEFAULT NULL, second_key text DEFAULT NULL, grace interval DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := why_refused(kind, args, queue, priority, scheduled_at, max_attempts, timeout, exclusive_key, second_key, share_key,
                              tags, metadata);
    new_id bigint;
BEGIN
    IF unique_key IS NOT NULL OR unique_by IS NOT NULL OR unique_for IS NOT NULL OR unique_states IS NOT NULL
       OR on_conflict IS DISTINCT FROM 'error' OR after IS NOT NULL OR if_dead IS NOT NULL OR expires_at IS NOT NULL THEN
        RETURN (enqueue_request(ROW(kind, args, queue, priority, scheduled_at, max_attempts, timeout, unique_key, exclusive_key,
                                    share_key, tags, metadata, unique_by, unique_for, unique_states, on_conflict, backoff,
                                    after, if_dead, expires_at, NULL, second_key, grace))).id;
    END IF;
    wrong := COALESCE(wrong, why_no_backoff(backoff), why_no_grace(grace));
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    IF EXISTS (SELECT FROM queue q WHERE q.name = enqueue.queue AND q.max_open IS NOT NULL) THEN
        PERFORM take_room(queue, 1);
    END IF;
    INSERT INTO job (kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata, backoff,
                     exclusive_key, share_key, second_key, grace, flags)
    VALUES (kind, args, queue, priority,
            -- Not stored as it is: many a client can't read -infinity, nor years before the first.
            CASE WHEN scheduled_at >= '0001-01-01 00:00:00+00' THEN scheduled_at ELSE clock_timestamp() END, max_attempts, timeout,
            COALESCE(share_of(share_key), 0), tags, metadata, backoff, exclusive_key, share_key, second_key, grace,
            CASE WHEN exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END)
    RETURNING id INTO new_id;
    IF kind IS DISTINCT FROM current_setting('claimd.kind', true) THEN
        PERFORM look_at_kind(kind);
    END IF;
    RETURN new_id;
END $$;

-- The same, and whether it made the job; for whom a job that is there already is no error.
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

-- The element with the defaults of enqueue() for what is left out or null.
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

-- Raises CL002 for the first element that enqueue() would refuse; else returns.
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

-- Those with keys one by one, in the order of the keys: two calls that want the same ones in another order would lock each other out.
-- Then their predecessors, for the same reason in the order of ids, as a single call has its key before them.
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

-- An array of objects, each with the parameters of enqueue() as keys; null means the default. All or none. Returns the ids in the
-- order of the array. The table checks the elements, a NULL as kind stands for what it can't check; they are looked at one by one
-- only when something is wrong.
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
        INSERT INTO job AS j (kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata, backoff,
                              exclusive_key, share_key, second_key, grace, flags)
        SELECT CASE WHEN e.request - known = '{}' AND why_no_labels(r.tags, r.metadata) IS NULL
                     AND (NOT may_wait OR why_not_after_any(r, e.n - 1) IS NULL)
                     AND (NOT may_expire OR why_no_expiry(r.expires_at, r.scheduled_at) IS NULL) THEN r.kind END,
               COALESCE(r.args, '{}'), COALESCE(r.queue, 'default'), COALESCE(r.priority, 4),
               CASE WHEN marks[e.n] & {flag.waits} <> 0 THEN job_waits()
                    WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
               r.max_attempts, r.timeout, COALESCE(share_of(r.share_key), 0), r.tags, r.metadata, r.backoff, r.exclusive_key,
               r.share_key, r.second_key, r.grace,
               CASE WHEN r.exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END + COALESCE(marks[e.n], 0)
               + CASE WHEN r.expires_at IS NULL THEN 0 ELSE {flag.deadline} END
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

REVOKE ALL ON FUNCTION request_keys, why_refused, request_refusal, enqueue_request, enqueue, enqueue_unique,
    request_of, refuse_requests, enqueue_many_unique, enqueue_many FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION enqueue, enqueue_unique, enqueue_many_unique, enqueue_many TO claimd_admin, claimd_producer;
