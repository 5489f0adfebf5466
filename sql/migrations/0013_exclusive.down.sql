-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION claim_limited(bigint[], uuid, text[], bigint[]), free_ended(bigint[], bigint[]), free_leaked(), next_free(bigint[]),
    next_of_keys(text[]);
DROP VIEW jobs;
DROP TABLE exclusive;
ALTER TABLE job DROP COLUMN exclusive_key;
ALTER TABLE job_history DROP COLUMN exclusive_key;

CREATE VIEW jobs AS
SELECT id, kind, queue, args, priority, share,
       CASE WHEN state = 'running' THEN 'running'
            WHEN ready_at <= statement_timestamp() THEN 'available'
            WHEN attempt > 0 THEN 'retryable'
            ELSE 'scheduled' END AS state,
       created_at, scheduled_at, ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000') AS worker_id,
       NULLIF(attempted_at, 'epoch') AS attempted_at, max_attempts, timeout, tags, metadata,
       NULL::timestamptz AS finalized_at, NULL::jsonb AS result, NULL::text AS error, flags, version, unique_key, backoff
  FROM job
UNION ALL
SELECT id, kind, queue, args, priority, share, state, created_at, scheduled_at, ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000'),
       NULLIF(attempted_at, 'epoch'), max_attempts, timeout, tags, metadata,
       finalized_at, result, error, flags, version, unique_key, backoff
  FROM job_history
 WHERE retried_at IS NULL;
GRANT SELECT ON jobs TO claimd_admin, claimd_reader;

-- What is wrong with a job, naming the argument; NULL: nothing. Its callers get it inline.
CREATE OR REPLACE FUNCTION why_refused(kind text, args jsonb, queue text, priority integer, scheduled_at timestamptz, max_attempts integer,
                            timeout interval, exclusive_key text, tags text[], metadata jsonb) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE
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
        WHEN exclusive_key IS NOT NULL
        THEN 'exclusive_key: not supported by this version, must be NULL'
    END
$$;

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
    INSERT INTO job (id, kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata, unique_key, flags,
                     backoff)
    OVERRIDING SYSTEM VALUE
    VALUES (id, r.kind, r.args, r.queue, r.priority,
            CASE WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
            r.max_attempts, r.timeout,
            CASE WHEN r.share_key IS NULL THEN 0
                 ELSE 1 + (hashtextextended(r.share_key, 0) & 9223372036854775807) % 63 END,
            r.tags, r.metadata, key, CASE WHEN states IN ('queued', 'open') THEN 1 ELSE 0 END,
            r.backoff);
    inserted := true;
END $$;

CREATE OR REPLACE FUNCTION enqueue(kind text, args jsonb DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 4,
                        scheduled_at timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL,
                        timeout interval DEFAULT NULL, unique_key text DEFAULT NULL, exclusive_key text DEFAULT NULL,
                        share_key text DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
                        unique_by text[] DEFAULT NULL, unique_for interval DEFAULT NULL, unique_states text DEFAULT NULL,
                        on_conflict text DEFAULT 'error', backoff text DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := why_refused(kind, args, queue, priority, scheduled_at, max_attempts, timeout, exclusive_key, tags, metadata);
    new_id bigint;
BEGIN
    IF unique_key IS NOT NULL OR unique_by IS NOT NULL OR unique_for IS NOT NULL OR unique_states IS NOT NULL
       OR on_conflict IS DISTINCT FROM 'error' THEN
        RETURN (enqueue_request(ROW(kind, args, queue, priority, scheduled_at, max_attempts, timeout, unique_key, exclusive_key,
                                    share_key, tags, metadata, unique_by, unique_for, unique_states, on_conflict, backoff))).id;
    END IF;
    wrong := COALESCE(wrong, why_no_backoff(backoff));
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    INSERT INTO job (kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata, backoff)
    VALUES (kind, args, queue, priority,
            -- Not stored as it is: many a client can't read -infinity, nor years before the first.
            CASE WHEN scheduled_at >= '0001-01-01 00:00:00+00' THEN scheduled_at ELSE clock_timestamp() END, max_attempts, timeout,
            CASE WHEN share_key IS NULL THEN 0
                 ELSE 1 + (hashtextextended(share_key, 0) & 9223372036854775807) % 63 END,
            tags, metadata, backoff)
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
                WHERE e ?| '{unique_key,unique_by,unique_for,unique_states,on_conflict}') THEN
        RETURN QUERY SELECT * FROM enqueue_many_unique(jobs);
        RETURN;
    END IF;
    RETURN QUERY
    INSERT INTO job AS j (kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata, backoff)
    SELECT CASE WHEN e.request - known = '{}' AND r.exclusive_key IS NULL THEN r.kind END,
           COALESCE(r.args, '{}'), COALESCE(r.queue, 'default'), COALESCE(r.priority, 4),
           CASE WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
           r.max_attempts, r.timeout,
           CASE WHEN r.share_key IS NULL THEN 0
                ELSE 1 + (hashtextextended(r.share_key, 0) & 9223372036854775807) % 63 END,
           r.tags, r.metadata, r.backoff
      FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e(request, n)
     CROSS JOIN LATERAL jsonb_populate_record(NULL::job_request, e.request) AS r
     ORDER BY e.n
    RETURNING j.id;
EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
    PERFORM refuse_requests(jobs);
    RAISE;
END $$;

-- A job that does not run is cancelled at once; one that runs is asked to end, and 'cancelling'. A second time is no error.
CREATE OR REPLACE FUNCTION cancel(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    found_state text;
    run_fence bigint;
BEGIN
    IF id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'id: must not be NULL';
    END IF;
    FOR try IN 1..10 LOOP -- it may come from one state into the other meanwhile
        WITH gone AS (
            DELETE FROM job j WHERE j.id = cancel.id AND j.state = 'available' RETURNING j.*
        ), unwatched AS (
            DELETE FROM job_live l USING gone g WHERE l.id = g.id
        )
        INSERT INTO job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, crashes,
                                 generation, priority, share, state, queue, kind, args, max_attempts, timeout, tags, metadata,
                                 flags, version, unique_key, backoff)
        SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.crashes,
               g.generation, g.priority, g.share, 'cancelled', g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags,
               g.metadata, g.flags, g.version, g.unique_key, g.backoff
          FROM gone g;
        IF FOUND THEN
            RETURN 'cancelled';
        END IF;
        -- The lock keeps its end from coming between: what is written here would be left behind.
        SELECT j.fence INTO run_fence FROM job j WHERE j.id = cancel.id AND j.state = 'running' FOR NO KEY UPDATE;
        IF FOUND THEN
            INSERT INTO job_live AS l (id, fence, cancel_requested) VALUES (cancel.id, run_fence, true)
                ON CONFLICT ON CONSTRAINT job_live_pkey DO UPDATE SET fence = excluded.fence, cancel_requested = true;
            PERFORM pg_notify('claimd_cancel', cancel.id::text);
            RETURN 'cancelling';
        END IF;
        EXIT WHEN NOT EXISTS (SELECT FROM job j WHERE j.id = cancel.id);
    END LOOP;
    SELECT j.state INTO found_state FROM job j WHERE j.id = cancel.id;
    IF NOT FOUND THEN
        SELECT h.state INTO found_state FROM job_history h WHERE h.id = cancel.id ORDER BY h.finalized_at DESC LIMIT 1;
    END IF;
    IF found_state = 'cancelled' THEN
        RETURN 'cancelled';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'CL003',
        MESSAGE = 'job ' || id || CASE
            WHEN found_state IN ('available', 'running') THEN ' has just changed: try again'
            ELSE COALESCE(' is ' || found_state || ' already', ' not found') END;
END $$;

-- Makes a finished job available again, now and with all its attempts, as the next generation. It keeps its fence, which its next
-- claim replaces: a fence never goes back. Completed ones only if that is said. Of two calls at once one waits and is then refused.
-- The history may have been small when this was planned.
CREATE OR REPLACE FUNCTION retry(id bigint, even_completed boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    found_state text;
BEGIN
    IF id IS NULL OR even_completed IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002',
            MESSAGE = CASE WHEN id IS NULL THEN 'id: must not be NULL' ELSE 'even_completed: must be true or false' END;
    END IF;
    WITH former AS (
        UPDATE job_history h SET retried_at = clock_timestamp()
         WHERE h.id = retry.id AND h.retried_at IS NULL AND (even_completed OR h.state <> 'completed')
        RETURNING h.*
    )
    INSERT INTO job (id, fence, created_at, generation, priority, share, queue, kind, args, max_attempts, timeout, tags, metadata,
                     flags, version, unique_key, backoff)
    OVERRIDING SYSTEM VALUE
    SELECT f.id, f.fence, f.created_at, f.generation + 1, f.priority, f.share, f.queue, f.kind, f.args, f.max_attempts, f.timeout,
           f.tags, f.metadata, f.flags, f.version, f.unique_key, f.backoff
      FROM former f;
    IF FOUND THEN
        RETURN id;
    END IF;
    SELECT j.state INTO found_state FROM job j WHERE j.id = retry.id;
    IF NOT FOUND THEN
        SELECT h.state INTO found_state FROM job_history h WHERE h.id = retry.id AND h.retried_at IS NULL;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'CL003',
        MESSAGE = 'job ' || id || CASE
            WHEN found_state IN ('available', 'running') THEN ' is ' || found_state || ': only a finished job can be retried'
            WHEN found_state = 'completed' AND NOT even_completed THEN ' is completed: only even_completed => true retries it'
            WHEN found_state IS NOT NULL THEN ' has just changed: try again'
            ELSE ' not found' END;
END $$;

-- SPDX-License-Identifier: Apache-2.0
-- Completes a running job in the transaction of its handler, so that what the handler wrote and the completion are one commit or none
-- (guarantee G4). CL001 when the claim is not the job's newest any more: the caller must roll back. A transaction whose commit has an
-- unknown outcome must not be repeated with the same fence: that is refused as well. Until the transaction ends it has the job's row.
CREATE OR REPLACE FUNCTION complete_in_tx(id bigint, fence bigint, result jsonb DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := CASE
        WHEN id IS NULL THEN 'id: must not be NULL'
        WHEN fence IS NULL OR fence <= 0 THEN 'fence: must be that of a claim'
        WHEN octet_length(result::text) > 65536 THEN 'result: at most 65536 octets as JSON text'
    END;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    WITH gone AS (
        DELETE FROM job j WHERE j.id = complete_in_tx.id AND j.state = 'running' AND j.fence = complete_in_tx.fence RETURNING j.*
    ), unwatched AS (
        DELETE FROM job_live l USING gone g WHERE l.id = g.id
    )
    INSERT INTO job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, generation, priority, share,
                             queue, kind, args, max_attempts, timeout, tags, metadata, flags, version, unique_key, backoff,
                             crashes, state, result)
    SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.generation, g.priority,
           g.share, g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags, g.metadata, g.flags, g.version, g.unique_key, g.backoff,
           g.crashes, 'completed', complete_in_tx.result
      FROM gone g;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'CL001',
            MESSAGE = format('job %s does not run under fence %s (any more): roll back', id, fence);
    END IF;
END $$;
DROP FUNCTION exclusive_flag();
