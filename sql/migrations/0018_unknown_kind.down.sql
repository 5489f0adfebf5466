-- SPDX-License-Identifier: Apache-2.0
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
    IF r.after IS NOT NULL THEN
        PERFORM after(id, r.after, COALESCE(r.if_dead, 'cancel'));
    END IF;
END $$;

CREATE OR REPLACE FUNCTION enqueue(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
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
    RETURN new_id;
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

DROP FUNCTION look_at_kind;
