-- SPDX-License-Identifier: Apache-2.0
-- Limits over the fleet, first of all: at most one running job of each exclusive key. Decided by the statement that claims, which
-- is one of its own: job_claim leaves out what has a limit, by `flags`, and what has none pays nothing.

ALTER TABLE job
    ADD COLUMN exclusive_key text COLLATE "C",
    -- 2 among the flags says that the key is there: claims and ends of runs look at nothing else.
    ADD CONSTRAINT job_exclusive_key_form
        CHECK (exclusive_key IS NULL OR (octet_length(exclusive_key) BETWEEN 1 AND 512 AND flags & 2 <> 0)) NOT VALID;
ALTER TABLE job_history ADD COLUMN exclusive_key text COLLATE "C";

-- Which run holds a key. A row comes and goes in the commits that begin and end the run.
CREATE TABLE exclusive (
    key text COLLATE "C" NOT NULL,
    n smallint NOT NULL DEFAULT 1, -- which of its places
    job_id bigint NOT NULL,
    fence bigint NOT NULL,
    CONSTRAINT exclusive_pkey PRIMARY KEY (key, n)
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
CREATE INDEX exclusive_job ON exclusive (job_id);
GRANT SELECT ON exclusive TO claimd_admin, claimd_reader;

-- The flag of jobs with an exclusive key. A program built for an older schema would claim them as if they had none.
CREATE FUNCTION exclusive_flag() RETURNS smallint
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM require_program(13);
    RETURN 2;
END $$;

-- The job that comes next of each key: due, available, of a queue that isn't paused. Index: job_exclusive, one look per priority.
CREATE FUNCTION next_of_keys(keys text[])
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT n.* FROM (SELECT DISTINCT u.key FROM unnest(keys) AS u(key)) AS k
     CROSS JOIN LATERAL (
        SELECT f.* FROM generate_series(0, 9) AS p
         CROSS JOIN LATERAL (
            SELECT j.id, j.queue, j.kind, j.priority, j.ready_at FROM job j
             WHERE j.exclusive_key = k.key AND j.priority = p AND j.ready_at <= statement_timestamp() AND j.state = 'available'
               AND NOT EXISTS (SELECT FROM queue q WHERE q.name = j.queue AND q.paused)
             ORDER BY j.ready_at, j.id LIMIT 1) AS f
         ORDER BY f.priority LIMIT 1) AS n
$$;

-- Frees what these runs ($1 and $2 go together: job, fence) have held, where they run no more: called for jobs whose `flags` have
-- 2 or 4, after the statements that end them, in their transaction. Returns the jobs that this makes claimable: push their hints.
CREATE FUNCTION free_ended(ids bigint[], fences bigint[])
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    freed text[];
BEGIN
    WITH gone AS (
        DELETE FROM exclusive e USING unnest(ids, fences) AS r(id, fence)
         WHERE e.job_id = r.id AND e.fence = r.fence
           AND NOT EXISTS (SELECT FROM job j WHERE j.id = r.id AND j.fence = r.fence AND j.state = 'running')
        RETURNING e.key
    )
    SELECT array_agg(g.key) INTO freed FROM gone g;
    IF freed IS NOT NULL THEN
        RETURN QUERY SELECT n.* FROM next_of_keys(freed) AS n;
    END IF;
END $$;

-- The same for whatever is held by no run at all, whoever forgot it; rows that somebody has locked are left for the next time.
CREATE FUNCTION free_leaked()
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
    freed text[];
BEGIN
    WITH leaked AS MATERIALIZED (
        SELECT e.key, e.n, e.fence FROM exclusive e
         WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = e.job_id AND j.fence = e.fence AND j.state = 'running')
           FOR UPDATE OF e SKIP LOCKED
    ), gone AS (
        DELETE FROM exclusive e USING leaked l WHERE e.key = l.key AND e.n = l.n AND e.fence = l.fence RETURNING e.key
    )
    SELECT array_agg(g.key) INTO freed FROM gone g;
    IF freed IS NOT NULL THEN
        RETURN QUERY SELECT n.* FROM next_of_keys(freed) AS n;
    END IF;
END $$;

-- Whoever was refused for a limit asks this once nobody can find their locks held any more: what of the same keys is claimable by
-- now? Its hint may have been dropped meanwhile, because of those locks.
CREATE FUNCTION next_free(ids bigint[])
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT n.* FROM next_of_keys(ARRAY(SELECT j.exclusive_key FROM job j
                                        WHERE j.id = ANY (ids) AND j.state = 'available'
                                          AND NOT EXISTS (SELECT FROM exclusive e WHERE e.key = j.exclusive_key))) AS n
$$;

-- Claims those of the jobs that job_claim leaves out, within their limits; `ahead`: those of them that no runner waits for. In
-- this order, so that it neither deadlocks nor leaks: lock the jobs, draw fences, take the keys in their order, change only who has
-- won. A job that somebody has locked is left out. Whoever is ending the run that holds a key is waited for: then it is ours.
CREATE FUNCTION claim_limited(ids bigint[], worker uuid, kinds text[], ahead bigint[])
RETURNS SETOF job
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    c record;
    taken text; -- the last key that was looked at: of the sorted ones no other may have it
    drawn bigint;
    won bigint[] := '{}';
    fences bigint[] := '{}';
BEGIN
    FOR c IN SELECT j.id, j.exclusive_key AS key
               FROM job j
               LEFT JOIN kind k ON k.name = j.kind
              WHERE j.id = ANY (ids) AND j.state = 'available' AND j.scheduled_at <= clock_timestamp() AND j.kind = ANY (kinds)
                AND CASE WHEN j.id = ANY (ahead)
                         THEN NOT COALESCE(k.at_most_once, false) AND j.attempt + 1 < COALESCE(j.max_attempts, k.max_attempts, 25)
                         ELSE j.attempt < COALESCE(j.max_attempts, k.max_attempts, 25) END
              ORDER BY j.exclusive_key, j.priority, j.ready_at, j.id
                FOR NO KEY UPDATE OF j SKIP LOCKED LOOP
        CONTINUE WHEN c.key = taken;
        taken := c.key;
        drawn := nextval('fence');
        IF c.key IS NOT NULL THEN
            INSERT INTO exclusive (key, job_id, fence) VALUES (c.key, c.id, drawn) ON CONFLICT DO NOTHING;
            CONTINUE WHEN NOT FOUND;
        END IF;
        won := won || c.id;
        fences := fences || drawn;
    END LOOP;
    RETURN QUERY
    UPDATE job j
       SET state = 'running', attempt = j.attempt + 1, fence = w.fence, worker_id = worker, attempted_at = clock_timestamp()
      FROM unnest(won, fences) AS w(id, fence)
     WHERE j.id = w.id
    RETURNING j.*;
END $$;

REVOKE ALL ON FUNCTION exclusive_flag, next_of_keys, free_ended, free_leaked, next_free, claim_limited FROM PUBLIC;
GRANT EXECUTE ON FUNCTION free_ended, free_leaked, next_free, claim_limited TO claimd_worker;

CREATE OR REPLACE VIEW jobs AS
SELECT id, kind, queue, args, priority, share,
       CASE WHEN state = 'running' THEN 'running'
            WHEN ready_at <= statement_timestamp() THEN 'available'
            WHEN attempt > 0 THEN 'retryable'
            ELSE 'scheduled' END AS state,
       created_at, scheduled_at, ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000') AS worker_id,
       NULLIF(attempted_at, 'epoch') AS attempted_at, max_attempts, timeout, tags, metadata,
       NULL::timestamptz AS finalized_at, NULL::jsonb AS result, NULL::text AS error, flags, version, unique_key, backoff, exclusive_key
  FROM job
UNION ALL
SELECT id, kind, queue, args, priority, share, state, created_at, scheduled_at, ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000'),
       NULLIF(attempted_at, 'epoch'), max_attempts, timeout, tags, metadata,
       finalized_at, result, error, flags, version, unique_key, backoff, exclusive_key
  FROM job_history
 WHERE retried_at IS NULL;

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
        WHEN octet_length(exclusive_key) NOT BETWEEN 1 AND 512
        THEN 'exclusive_key: must have 1 to 512 octets'
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
                     backoff, exclusive_key)
    OVERRIDING SYSTEM VALUE
    VALUES (id, r.kind, r.args, r.queue, r.priority,
            CASE WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
            r.max_attempts, r.timeout,
            CASE WHEN r.share_key IS NULL THEN 0
                 ELSE 1 + (hashtextextended(r.share_key, 0) & 9223372036854775807) % 63 END,
            r.tags, r.metadata, key, CASE WHEN states IN ('queued', 'open') THEN 1 ELSE 0 END
            + CASE WHEN r.exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END,
            r.backoff, r.exclusive_key);
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
    INSERT INTO job (kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata, backoff,
                     exclusive_key, flags)
    VALUES (kind, args, queue, priority,
            -- Not stored as it is: many a client can't read -infinity, nor years before the first.
            CASE WHEN scheduled_at >= '0001-01-01 00:00:00+00' THEN scheduled_at ELSE clock_timestamp() END, max_attempts, timeout,
            CASE WHEN share_key IS NULL THEN 0
                 ELSE 1 + (hashtextextended(share_key, 0) & 9223372036854775807) % 63 END,
            tags, metadata, backoff, exclusive_key,
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
                WHERE e ?| '{unique_key,unique_by,unique_for,unique_states,on_conflict}') THEN
        RETURN QUERY SELECT * FROM enqueue_many_unique(jobs);
        RETURN;
    END IF;
    RETURN QUERY
    INSERT INTO job AS j (kind, args, queue, priority, scheduled_at, max_attempts, timeout, share, tags, metadata, backoff,
                          exclusive_key, flags)
    SELECT CASE WHEN e.request - known = '{}' THEN r.kind END,
           COALESCE(r.args, '{}'), COALESCE(r.queue, 'default'), COALESCE(r.priority, 4),
           CASE WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
           r.max_attempts, r.timeout,
           CASE WHEN r.share_key IS NULL THEN 0
                ELSE 1 + (hashtextextended(r.share_key, 0) & 9223372036854775807) % 63 END,
           r.tags, r.metadata, r.backoff, r.exclusive_key,
           CASE WHEN r.exclusive_key IS NULL THEN 0 ELSE exclusive_flag() END
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
                                 flags, version, unique_key, backoff, exclusive_key)
        SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.crashes,
               g.generation, g.priority, g.share, 'cancelled', g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags,
               g.metadata, g.flags, g.version, g.unique_key, g.backoff, g.exclusive_key
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
                     flags, version, unique_key, backoff, exclusive_key)
    OVERRIDING SYSTEM VALUE
    SELECT f.id, f.fence, f.created_at, f.generation + 1, f.priority, f.share, f.queue, f.kind, f.args, f.max_attempts, f.timeout,
           f.tags, f.metadata, f.flags, f.version, f.unique_key, f.backoff, f.exclusive_key
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
                             queue, kind, args, max_attempts, timeout, tags, metadata, flags, version, unique_key, backoff, exclusive_key,
                             crashes, state, result)
    SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.generation, g.priority,
           g.share, g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags, g.metadata, g.flags, g.version, g.unique_key, g.backoff, g.exclusive_key,
           g.crashes, 'completed', complete_in_tx.result
      FROM gone g;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'CL001',
            MESSAGE = format('job %s does not run under fence %s (any more): roll back', id, fence);
    END IF;
END $$;

-- ---- part: alone ----
DROP INDEX CONCURRENTLY IF EXISTS job_exclusive;
-- ---- part: alone ----
CREATE INDEX CONCURRENTLY job_exclusive ON job (exclusive_key, priority, ready_at, id) WHERE exclusive_key IS NOT NULL;
-- ---- part: alone ----
ALTER TABLE job VALIDATE CONSTRAINT job_exclusive_key_form;
