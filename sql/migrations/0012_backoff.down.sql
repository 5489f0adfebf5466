-- SPDX-License-Identifier: Apache-2.0
REVOKE INSERT (backoff) ON job FROM claimd_admin, claimd_producer;
ALTER TABLE job DROP CONSTRAINT job_backoff_valid;
ALTER TABLE kind DROP COLUMN backoff;
DROP FUNCTION enqueue, enqueue_unique;
CREATE OR REPLACE FUNCTION request_refusal(r job_request) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN COALESCE(why_refused(r.kind, r.args, r.queue, r.priority, r.scheduled_at, r.max_attempts, r.timeout, r.exclusive_key,
                                r.tags, r.metadata), why_not_unique(r));
END $$;

CREATE OR REPLACE FUNCTION enqueue_request(r job_request, OUT id bigint, OUT inserted boolean)
LANGUAGE plpgsql AS $$
DECLARE
    wrong text := request_refusal(r);
    key text;
    states text;
    holder bigint;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    id := nextval('job_id_seq');
    IF r.unique_key IS NOT NULL OR r.unique_by IS NOT NULL THEN
        key := request_key(r);
        states := COALESCE(r.unique_states, CASE WHEN r.unique_for IS NULL THEN 'open' ELSE 'all' END);
        holder := take_key(key, states, clock_timestamp() + r.unique_for, id);
        IF holder <> id THEN
            PERFORM meet_holder(r, holder);
            id := holder;
            inserted := false;
            RETURN;
        END IF;
    END IF;
    INSERT INTO job (id, kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata, unique_key, flags)
    OVERRIDING SYSTEM VALUE
    VALUES (id, r.kind, r.args, r.queue, r.priority,
            CASE WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
            r.max_attempts, r.timeout,
            CASE WHEN r.share_key IS NULL THEN 0
                 ELSE 1 + (hashtextextended(r.share_key, 0) & 9223372036854775807) % 63 END,
            r.tags, r.metadata, key, CASE WHEN states IN ('queued', 'open') THEN 1 ELSE 0 END);
    inserted := true;
END $$;

CREATE FUNCTION enqueue(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
                        scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL,
                        timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, exclusive_key text DEFAULT NULL,
                        share_key text DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
                        unique_by text[] DEFAULT NULL, unique_for interval DEFAULT NULL, unique_states text DEFAULT NULL,
                        on_conflict text DEFAULT 'error') RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := why_refused(kind, args, queue, priority, scheduled_at, max_attempts, timeout, exclusive_key, tags, metadata);
    new_id bigint;
BEGIN
    IF unique_key IS NOT NULL OR unique_by IS NOT NULL OR unique_for IS NOT NULL OR unique_states IS NOT NULL
       OR on_conflict IS DISTINCT FROM 'error' THEN
        RETURN (enqueue_request(ROW(kind, args, queue, priority, scheduled_at, max_attempts, timeout, unique_key, exclusive_key,
                                    share_key, tags, metadata, unique_by, unique_for, unique_states, on_conflict))).id;
    END IF;
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

CREATE FUNCTION enqueue_unique(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
                               scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL,
                               timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, exclusive_key text DEFAULT NULL,
                               share_key text DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
                               unique_by text[] DEFAULT NULL, unique_for interval DEFAULT NULL, unique_states text DEFAULT NULL,
                               on_conflict text DEFAULT 'ignore', OUT id bigint, OUT inserted boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF unique_key IS NULL AND unique_by IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'unique_key: must be given, or unique_by';
    END IF;
    SELECT e.id, e.inserted INTO id, inserted
      FROM enqueue_request(ROW(kind, args, queue, priority, scheduled_at, max_attempts, timeout, unique_key, exclusive_key,
                               share_key, tags, metadata, unique_by, unique_for, unique_states, on_conflict)) AS e;
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
                WHERE e ?| '{unique_key,unique_by,unique_for,unique_states,on_conflict}') THEN
        RETURN QUERY SELECT * FROM enqueue_many_unique(jobs);
        RETURN;
    END IF;
    RETURN QUERY
    INSERT INTO job AS j (kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata)
    SELECT CASE WHEN e.request - known = '{}' AND r.exclusive_key IS NULL THEN r.kind END,
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
REVOKE ALL ON FUNCTION enqueue, enqueue_unique FROM PUBLIC;
GRANT EXECUTE ON FUNCTION enqueue, enqueue_unique TO claimd_admin, claimd_producer;

ALTER TYPE job_request DROP ATTRIBUTE backoff;
DROP FUNCTION why_no_backoff, backoff_is_valid;
