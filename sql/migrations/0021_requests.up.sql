-- SPDX-License-Identifier: Apache-2.0
-- What else jobs can be asked for with: a time by which they must begin, a key of each kind or queue, args and time replaced together,
-- jobs after others of their array; and which of an array were made. The guide: docs/guide/enqueueing.md, docs/guide/unique-jobs.md.

ALTER TYPE job_request ADD ATTRIBUTE expires_at timestamptz, ADD ATTRIBUTE after_jobs integer[]; -- positions in its array, from 0

CREATE FUNCTION why_no_expiry(expires_at timestamptz, scheduled_at timestamptz) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN NOT isfinite(expires_at) OR expires_at > '2286-01-01 00:00:00+00'
            THEN 'expires_at: must lie before the year 2286'
            WHEN expires_at <= scheduled_at
            THEN 'expires_at: must be later than scheduled_at' END;
REVOKE ALL ON FUNCTION why_no_expiry FROM PUBLIC;

CREATE OR REPLACE FUNCTION request_refusal(r job_request) RETURNS text
LANGUAGE sql STABLE
RETURN COALESCE(why_refused(r.kind, r.args, r.queue, r.priority, r.scheduled_at, r.max_attempts, r.timeout, r.exclusive_key, r.share_key,
                            r.tags, r.metadata), why_no_backoff(r.backoff), why_not_unique(r),
                why_not_after(COALESCE(r.after, CASE WHEN r.after_jobs IS NOT NULL THEN '{1}'::bigint[] END), r.if_dead),
                why_no_expiry(r.expires_at, r.scheduled_at));

-- Of element n of an array: the elements before it that its job comes after.
CREATE FUNCTION why_not_after_jobs(after_jobs integer[], n bigint) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN array_ndims(after_jobs) > 1 OR cardinality(after_jobs) NOT BETWEEN 1 AND 10000
                 OR array_position(after_jobs, NULL) IS NOT NULL OR 0 > ANY (after_jobs) OR n <= ANY (after_jobs)
            THEN 'after_jobs: must be 1 to 10000 positions, from 0, of elements before this one' END;

CREATE OR REPLACE FUNCTION why_not_unique(r job_request) RETURNS text
LANGUAGE sql STABLE
RETURN CASE
    WHEN (r.on_conflict IN ('error', 'ignore', 'replace_args', 'reschedule', 'replace')) IS NOT TRUE
    THEN 'on_conflict: must be error, ignore, replace_args, reschedule or replace'
    WHEN octet_length(r.unique_key) NOT BETWEEN 1 AND 512
    THEN 'unique_key: must have 1 to 512 octets'
    WHEN r.unique_key IS NOT NULL AND NOT r.unique_by <@ '{kind,queue}'
    THEN 'unique_by: together with unique_key, must be a list of kind and queue'
    WHEN r.unique_key IS NULL AND r.unique_by IS NULL
    THEN CASE WHEN r.unique_for IS NOT NULL THEN 'unique_for: needs unique_key or unique_by'
              WHEN r.unique_states IS NOT NULL THEN 'unique_states: needs unique_key or unique_by' END
    WHEN r.unique_by IS NOT NULL AND NOT parts_are_known(r.unique_by)
    THEN 'unique_by: must be a list of kind, queue, args and args.NAME, at most 32'
    WHEN r.unique_for <= interval '0' OR r.unique_for > interval '366 days'
    THEN 'unique_for: must be more than 0 and at most 366 days'
    WHEN r.unique_states NOT IN ('queued', 'open', 'completed', 'all')
    THEN 'unique_states: must be queued, open, completed or all'
    WHEN r.unique_states IN ('completed', 'all') AND r.unique_for IS NULL
    THEN 'unique_states: ' || r.unique_states || ' needs unique_for'
END;

-- As in 0003, but the key may be one for each kind or queue; as the next one, but args and time may be replaced together.
CREATE OR REPLACE FUNCTION key_of_parts(r job_request) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    key text := (SELECT (jsonb_object_agg(part, CASE part WHEN 'kind' THEN to_jsonb(r.kind)
                                                         WHEN 'queue' THEN to_jsonb(r.queue)
                                                         WHEN 'args' THEN r.args
                                                         ELSE r.args -> substr(part, 6) END)
                         || CASE WHEN r.unique_key IS NULL THEN '{}' ELSE jsonb_build_object('key', r.unique_key) END)::text
                   FROM unnest(r.unique_by) AS part);
BEGIN
    RETURN CASE WHEN octet_length(key) <= 512 THEN key ELSE 'sha256:' || encode(sha256(convert_to(key, 'UTF8')), 'hex') END;
END $$;

CREATE OR REPLACE FUNCTION meet_holder(r job_request, holder job_key) RETURNS boolean
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    found_state text;
BEGIN
    IF r.on_conflict = 'ignore' THEN
        RETURN true;
    END IF;
    IF r.on_conflict <> 'error' THEN
        BEGIN
            PERFORM edit(holder.job_id, CASE r.on_conflict WHEN 'replace_args' THEN jsonb_build_object('args', r.args)
                                                           WHEN 'replace' THEN jsonb_build_object('args', r.args, 'scheduled_at', r.scheduled_at)
                                                           ELSE jsonb_build_object('scheduled_at', r.scheduled_at) END);
            RETURN true;
        EXCEPTION WHEN SQLSTATE 'CL003' THEN
            NULL; -- it doesn't wait (any more)
        END;
    END IF;
    IF NOT key_holds(holder) THEN
        RETURN false;
    END IF;
    SELECT CASE WHEN j.state = 'running' THEN ' and runs' ELSE ' and waits' END INTO found_state FROM job j WHERE j.id = holder.job_id;
    RAISE EXCEPTION USING ERRCODE = 'CL004', DETAIL = holder.job_id::text,
        MESSAGE = format('unique_key: job %s has this key%s%s', holder.job_id, COALESCE(found_state, ' and is over'),
                         CASE WHEN r.on_conflict <> 'error' THEN ': only one that waits can be changed' END);
END $$;

-- As in 0018, but for expires_at; as the next three.
CREATE OR REPLACE FUNCTION enqueue_request(r job_request, OUT id bigint, OUT inserted boolean)
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
                     backoff, exclusive_key, share_key)
    OVERRIDING SYSTEM VALUE
    VALUES (id, r.kind, r.args, r.queue, r.priority,
            CASE WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
            r.max_attempts, r.timeout,
            COALESCE(share_of(r.share_key), 0),
            r.tags, r.metadata, key, CASE WHEN states IN ('queued', 'open') THEN 1 ELSE 0 END
            + CASE WHEN r.exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END + CASE WHEN r.expires_at IS NULL THEN 0 ELSE 2048 END,
            r.backoff, r.exclusive_key, r.share_key);
    inserted := true;
    IF r.expires_at IS NOT NULL THEN
        PERFORM require_program(20); -- an older one would start it late
        INSERT INTO job_deadline (job_id, expires_at) VALUES (id, r.expires_at);
    END IF;
    IF r.kind IS DISTINCT FROM current_setting('claimd.kind', true) THEN
        PERFORM look_at_kind(r.kind);
    END IF;
    IF r.after IS NOT NULL THEN
        PERFORM after(id, r.after, COALESCE(r.if_dead, 'cancel'));
    END IF;
END $$;

DROP FUNCTION enqueue;
CREATE FUNCTION enqueue(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
                        scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL,
                        timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, exclusive_key text DEFAULT NULL,
                        share_key text DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
                        unique_by text[] DEFAULT NULL, unique_for interval DEFAULT NULL, unique_states text DEFAULT NULL,
                        on_conflict text DEFAULT 'error', backoff text DEFAULT NULL, after bigint[] DEFAULT NULL,
                        if_dead text DEFAULT NULL, expires_at timestamptz DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := why_refused(kind, args, queue, priority, scheduled_at, max_attempts, timeout, exclusive_key, share_key, tags,
                               metadata);
    new_id bigint;
BEGIN
    IF unique_key IS NOT NULL OR unique_by IS NOT NULL OR unique_for IS NOT NULL OR unique_states IS NOT NULL
       OR on_conflict IS DISTINCT FROM 'error' OR after IS NOT NULL OR if_dead IS NOT NULL OR expires_at IS NOT NULL THEN
        RETURN (enqueue_request(ROW(kind, args, queue, priority, scheduled_at, max_attempts, timeout, unique_key, exclusive_key,
                                    share_key, tags, metadata, unique_by, unique_for, unique_states, on_conflict, backoff,
                                    after, if_dead, expires_at, NULL))).id;
    END IF;
    wrong := COALESCE(wrong, why_no_backoff(backoff));
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    IF EXISTS (SELECT FROM queue q WHERE q.name = enqueue.queue AND q.max_open IS NOT NULL) THEN
        PERFORM take_room(queue, 1);
    END IF;
    INSERT INTO job (kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata, backoff,
                     exclusive_key, share_key, flags)
    VALUES (kind, args, queue, priority,
            -- Not stored as it is: many a client can't read -infinity, nor years before the first.
            CASE WHEN scheduled_at >= '0001-01-01 00:00:00+00' THEN scheduled_at ELSE clock_timestamp() END, max_attempts, timeout,
            COALESCE(share_of(share_key), 0), tags, metadata, backoff, exclusive_key, share_key,
            CASE WHEN exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END)
    RETURNING id INTO new_id;
    IF kind IS DISTINCT FROM current_setting('claimd.kind', true) THEN
        PERFORM look_at_kind(kind);
    END IF;
    RETURN new_id;
END $$;

DROP FUNCTION enqueue_unique;
CREATE FUNCTION enqueue_unique(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
                               scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL,
                               timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, exclusive_key text DEFAULT NULL,
                               share_key text DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
                               unique_by text[] DEFAULT NULL, unique_for interval DEFAULT NULL, unique_states text DEFAULT NULL,
                               on_conflict text DEFAULT 'ignore', backoff text DEFAULT NULL, after bigint[] DEFAULT NULL,
                               if_dead text DEFAULT NULL, expires_at timestamptz DEFAULT NULL, OUT id bigint, OUT inserted boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF unique_key IS NULL AND unique_by IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'unique_key: must be given, or unique_by';
    END IF;
    SELECT e.id, e.inserted INTO id, inserted
      FROM enqueue_request(ROW(kind, args, queue, priority, scheduled_at, max_attempts, timeout, unique_key, exclusive_key,
                               share_key, tags, metadata, unique_by, unique_for, unique_states, on_conflict, backoff, after,
                               if_dead, expires_at, NULL)) AS e;
END $$;

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
                    MESSAGE = format('jobs[%s].%s: unknown, must be one of %s', n, left(field, 64), array_to_string(known, ', '));
            END IF;
            PERFORM with_value(NULL::job_request, field, request -> field, format('jobs[%s]', n));
        END LOOP;
        wrong := COALESCE(request_refusal(request_of(request)), why_not_after_jobs((request_of(request)).after_jobs, n));
        IF wrong IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = format('jobs[%s].%s', n, wrong);
        END IF;
    END LOOP;
END $$;

DROP FUNCTION enqueue_many_unique;
-- As in 0003, but it says which were made, for producers too; and jobs may come after others of the array.
CREATE FUNCTION enqueue_many_unique(jobs jsonb) RETURNS TABLE (id bigint, inserted boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := request_keys();
    ids bigint[];
    made boolean[];
    one record;
    wanted record;
    holder text;
BEGIN
    IF jobs IS NULL OR jsonb_typeof(jobs) <> 'array' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'jobs: must be a JSON array of objects';
    END IF;
    IF EXISTS (SELECT FROM jsonb_array_elements(jobs) AS e WHERE jsonb_typeof(e) <> 'object' OR e - known <> '{}') THEN
        PERFORM refuse_requests(jobs);
    END IF;
    FOR wanted IN SELECT t.n, t.r
                    FROM (SELECT e.ordinality AS n, request_of(e.value) AS r
                            FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e
                          OFFSET 0) AS t
                   ORDER BY request_key(t.r) COLLATE "C" NULLS FIRST, t.n LOOP
        one := enqueue_request(wanted.r);
        ids[wanted.n] := one.id;
        made[wanted.n] := one.inserted;
    END LOOP;
    FOR wanted IN SELECT e.ordinality AS n, e.value AS request FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e
                   WHERE e.value ? 'after_jobs' LOOP
        one := request_of(wanted.request);
        IF why_not_after_jobs(one.after_jobs, wanted.n - 1) IS NOT NULL THEN
            PERFORM refuse_requests(jobs);
        ELSIF one.after_jobs IS NOT NULL AND made[wanted.n] THEN
            PERFORM after(ids[wanted.n], ARRAY(SELECT ids[u.p + 1] FROM unnest(one.after_jobs) AS u(p)), COALESCE(one.if_dead, 'cancel'));
        END IF;
    END LOOP;
    RETURN QUERY SELECT * FROM unnest(ids, made);
EXCEPTION
    WHEN SQLSTATE 'CL004' THEN
        GET STACKED DIAGNOSTICS holder = PG_EXCEPTION_DETAIL;
        RAISE EXCEPTION USING ERRCODE = 'CL004', DETAIL = holder, MESSAGE = format('jobs[%s].%s', wanted.n - 1, SQLERRM);
    WHEN SQLSTATE 'CL003' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('jobs[%s]: %s', wanted.n - 1, SQLERRM);
    WHEN SQLSTATE 'CL002' OR data_exception OR integrity_constraint_violation THEN
        PERFORM refuse_requests(jobs) WHERE jsonb_typeof(jobs) = 'array';
        RAISE;
END $$;

CREATE OR REPLACE FUNCTION enqueue_many(jobs jsonb) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := request_keys();
BEGIN
    IF jobs IS NULL OR jsonb_typeof(jobs) <> 'array' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'jobs: must be a JSON array of objects';
    END IF;
    IF EXISTS (SELECT FROM jsonb_array_elements(jobs) AS e
                WHERE e ?| '{unique_key,unique_by,unique_for,unique_states,on_conflict,after,if_dead,expires_at,after_jobs}') THEN
        RETURN QUERY SELECT e.id FROM enqueue_many_unique(jobs) AS e;
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM queue q WHERE q.max_open IS NOT NULL) THEN
        -- In the order of the queues: two calls would lock each other out.
        PERFORM take_room(w.name, w.jobs)
           FROM (SELECT q.name, count(*) AS jobs
                   FROM jsonb_array_elements(jobs) AS e
                   JOIN queue q ON q.name = COALESCE(e ->> 'queue', 'default') AND q.max_open IS NOT NULL
                  GROUP BY q.name
                  ORDER BY q.name) AS w;
    END IF;
    PERFORM look_at_kind(u.name)
       FROM (SELECT DISTINCT e ->> 'kind' AS name FROM jsonb_array_elements(jobs) AS e) AS u;
    RETURN QUERY
    INSERT INTO job AS j (kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata, backoff,
                          exclusive_key, share_key, flags)
    SELECT CASE WHEN e.request - known = '{}' AND why_no_labels(r.tags, r.metadata) IS NULL THEN r.kind END,
           COALESCE(r.args, '{}'), COALESCE(r.queue, 'default'), COALESCE(r.priority, 4),
           CASE WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
           r.max_attempts, r.timeout,
           COALESCE(share_of(r.share_key), 0), r.tags, r.metadata, r.backoff, r.exclusive_key, r.share_key,
           CASE WHEN r.exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END
      FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e(request, n)
     CROSS JOIN LATERAL jsonb_populate_record(NULL::job_request, e.request) AS r
     ORDER BY e.n
    RETURNING j.id;
EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
    PERFORM refuse_requests(jobs);
    RAISE;
END $$;

REVOKE ALL ON FUNCTION enqueue, enqueue_unique, enqueue_many_unique, why_not_after_jobs FROM PUBLIC;
GRANT EXECUTE ON FUNCTION enqueue, enqueue_unique, enqueue_many_unique TO claimd_admin, claimd_producer;
