-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION enqueue, enqueue_unique, enqueue_many_unique;
CREATE OR REPLACE FUNCTION request_refusal(r job_request) RETURNS text
LANGUAGE sql STABLE
RETURN COALESCE(why_refused(r.kind, r.args, r.queue, r.priority, r.scheduled_at, r.max_attempts, r.timeout, r.exclusive_key, r.share_key,
                            r.tags, r.metadata), why_no_backoff(r.backoff), why_not_unique(r), why_not_after(r.after, r.if_dead));

CREATE OR REPLACE FUNCTION why_not_unique(r job_request) RETURNS text
LANGUAGE sql STABLE
RETURN CASE
    WHEN (r.on_conflict IN ('error', 'ignore', 'replace_args', 'reschedule')) IS NOT TRUE
    THEN 'on_conflict: must be error, ignore, replace_args or reschedule'
    WHEN octet_length(r.unique_key) NOT BETWEEN 1 AND 512
    THEN 'unique_key: must have 1 to 512 octets'
    WHEN r.unique_key IS NOT NULL AND r.unique_by IS NOT NULL
    THEN 'unique_by: not together with unique_key'
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

CREATE OR REPLACE FUNCTION key_of_parts(r job_request) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    key text := (SELECT jsonb_object_agg(part, CASE part WHEN 'kind' THEN to_jsonb(r.kind)
                                                         WHEN 'queue' THEN to_jsonb(r.queue)
                                                         WHEN 'args' THEN r.args
                                                         ELSE r.args -> substr(part, 6) END)::text
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
        wrong := request_refusal(request_of(request));
        IF wrong IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = format('jobs[%s].%s', n, wrong);
        END IF;
    END LOOP;
END $$;

ALTER TYPE job_request DROP ATTRIBUTE expires_at, DROP ATTRIBUTE after_jobs;
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
            + CASE WHEN r.exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END,
            r.backoff, r.exclusive_key, r.share_key);
    inserted := true;
    IF r.kind IS DISTINCT FROM current_setting('claimd.kind', true) THEN
        PERFORM look_at_kind(r.kind);
    END IF;
    IF r.after IS NOT NULL THEN
        PERFORM after(id, r.after, COALESCE(r.if_dead, 'cancel'));
    END IF;
END $$;

CREATE FUNCTION enqueue(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
                        scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL,
                        timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, exclusive_key text DEFAULT NULL,
                        share_key text DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
                        unique_by text[] DEFAULT NULL, unique_for interval DEFAULT NULL, unique_states text DEFAULT NULL,
                        on_conflict text DEFAULT 'error', backoff text DEFAULT NULL, after bigint[] DEFAULT NULL,
                        if_dead text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := why_refused(kind, args, queue, priority, scheduled_at, max_attempts, timeout, exclusive_key, share_key, tags,
                               metadata);
    new_id bigint;
BEGIN
    IF unique_key IS NOT NULL OR unique_by IS NOT NULL OR unique_for IS NOT NULL OR unique_states IS NOT NULL
       OR on_conflict IS DISTINCT FROM 'error' OR after IS NOT NULL OR if_dead IS NOT NULL THEN
        RETURN (enqueue_request(ROW(kind, args, queue, priority, scheduled_at, max_attempts, timeout, unique_key, exclusive_key,
                                    share_key, tags, metadata, unique_by, unique_for, unique_states, on_conflict, backoff,
                                    after, if_dead))).id;
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

CREATE FUNCTION enqueue_unique(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
                               scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL,
                               timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, exclusive_key text DEFAULT NULL,
                               share_key text DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
                               unique_by text[] DEFAULT NULL, unique_for interval DEFAULT NULL, unique_states text DEFAULT NULL,
                               on_conflict text DEFAULT 'ignore', backoff text DEFAULT NULL, after bigint[] DEFAULT NULL,
                               if_dead text DEFAULT NULL, OUT id bigint, OUT inserted boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF unique_key IS NULL AND unique_by IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'unique_key: must be given, or unique_by';
    END IF;
    SELECT e.id, e.inserted INTO id, inserted
      FROM enqueue_request(ROW(kind, args, queue, priority, scheduled_at, max_attempts, timeout, unique_key, exclusive_key,
                               share_key, tags, metadata, unique_by, unique_for, unique_states, on_conflict, backoff, after,
                               if_dead)) AS e;
END $$;

CREATE FUNCTION enqueue_many_unique(jobs jsonb) RETURNS SETOF bigint
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := request_keys();
    ids bigint[] := array_fill(NULL::bigint, ARRAY[jsonb_array_length(jobs)]);
    wanted record;
    holder text;
BEGIN
    IF EXISTS (SELECT FROM jsonb_array_elements(jobs) AS e WHERE jsonb_typeof(e) <> 'object' OR e - known <> '{}') THEN
        PERFORM refuse_requests(jobs);
    END IF;
    FOR wanted IN SELECT t.n, t.r
                    FROM (SELECT e.ordinality AS n, request_of(e.value) AS r
                            FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e
                          OFFSET 0) AS t
                   ORDER BY request_key(t.r) COLLATE "C" NULLS FIRST, t.n LOOP
        ids[wanted.n] := (enqueue_request(wanted.r)).id;
    END LOOP;
    RETURN QUERY SELECT unnest(ids);
EXCEPTION
    WHEN SQLSTATE 'CL004' THEN
        GET STACKED DIAGNOSTICS holder = PG_EXCEPTION_DETAIL;
        RAISE EXCEPTION USING ERRCODE = 'CL004', DETAIL = holder, MESSAGE = format('jobs[%s].%s', wanted.n - 1, SQLERRM);
    WHEN SQLSTATE 'CL003' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('jobs[%s]: %s', wanted.n - 1, SQLERRM);
    WHEN SQLSTATE 'CL002' OR data_exception OR integrity_constraint_violation THEN
        PERFORM refuse_requests(jobs);
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
                WHERE e ?| '{unique_key,unique_by,unique_for,unique_states,on_conflict,after,if_dead}') THEN
        RETURN QUERY SELECT * FROM enqueue_many_unique(jobs);
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

DROP FUNCTION why_not_after_jobs, why_no_expiry;
REVOKE ALL ON FUNCTION enqueue, enqueue_unique, enqueue_many_unique FROM PUBLIC;
GRANT EXECUTE ON FUNCTION enqueue, enqueue_unique TO claimd_admin, claimd_producer;
