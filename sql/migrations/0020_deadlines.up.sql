-- SPDX-License-Identifier: Apache-2.0
-- A job that has not begun by its expires_at is of no use any more: it is discarded, with the error 'expired'. Those without one cost
-- nothing for it. The guide: docs/guide/enqueueing.md.

CREATE TABLE job_deadline (
    job_id bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT job_deadline_pkey PRIMARY KEY (job_id)
);
CREATE INDEX job_deadline_expires ON job_deadline (expires_at);

-- Discards those of the jobs that have expired. What somebody has locked is left out.
CREATE FUNCTION expire(ids bigint[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    expired bigint[] := ARRAY(SELECT d.job_id FROM job_deadline d WHERE d.job_id = ANY (ids) AND d.expires_at <= clock_timestamp());
    done bigint;
BEGIN
    IF expired = '{}' THEN
        RETURN 0;
    END IF;
    WITH gone AS (
        DELETE FROM job j
         WHERE j.id = ANY (ARRAY(SELECT o.id FROM job o WHERE o.id = ANY (expired) AND o.state = 'available' AND o.attempt = 0
                                    FOR UPDATE SKIP LOCKED))
        RETURNING j.*
    )
    INSERT INTO job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, crashes,
                             generation, priority, share, state, error, queue, kind, args, max_attempts, timeout, tags, metadata,
                             flags, version, unique_key, backoff, exclusive_key, share_key)
    SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.crashes,
           g.generation, g.priority, g.share, 'discarded', 'expired', g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags,
           g.metadata, g.flags, g.version, g.unique_key, g.backoff, g.exclusive_key, g.share_key
      FROM gone g;
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END $$;

-- By the leading scheduler, each second: jobs that have expired, those first that did so first. What has begun by then will not expire.
-- Returns how many.
CREATE FUNCTION expire_jobs(most integer DEFAULT 1000) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    due bigint[] := ARRAY(SELECT d.job_id FROM job_deadline d WHERE d.expires_at <= clock_timestamp() ORDER BY d.expires_at LIMIT most);
    done bigint := expire(due);
BEGIN
    DELETE FROM job_deadline d
     WHERE d.job_id = ANY (due) AND NOT EXISTS (SELECT FROM job j WHERE j.id = d.job_id AND j.state = 'available' AND j.attempt = 0);
    RETURN done;
END $$;

REVOKE ALL ON FUNCTION expire, expire_jobs FROM PUBLIC;
GRANT SELECT ON job_deadline TO claimd_admin, claimd_reader;

-- ---- how it ends ----
-- As in 0007, but for expire().
CREATE OR REPLACE FUNCTION claim_limited(ids bigint[], worker uuid, kinds text[], ahead bigint[])
RETURNS TABLE (id bigint, fence bigint, created_at timestamptz, ready_at timestamptz, attempted_at timestamptz, attempt integer,
               crashes integer, generation integer, max_attempts integer, priority smallint, flags smallint, queue text, kind text,
               args jsonb, timeout interval, tags text[], metadata jsonb, backoff text, key_row tid, place tid)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    c record;
    edited job;
    has_edits boolean;
    chosen bigint[]; -- jobs that may be claimed, in the order in which they are due,
    chosen_keys text[]; -- and their columns
    chosen_limits integer[]; -- places of the key; NULL: it has none
    chosen_turns integer[]; -- among the jobs of the key
    chosen_queues text[];
    has_rates boolean; -- of keys: which, what their buckets hold, and since when
    rated text[] := '{}';
    key_left double precision[] := '{}';
    key_looked_at timestamptz[] := '{}';
    limited text[] := '{}'; -- queues with a limit: how many jobs may start, what their buckets hold (NULL: they have none), since when,
    allowed integer[] := '{}';
    left_over double precision[] := '{}';
    looked_at timestamptz[] := '{}';
    begins integer[] := '{}'; -- and where their places begin in the next one (NULL: any number may run)
    free_places integer[] := '{}';
    found_tokens double precision;
    found_at timestamptz;
    found_places integer[];
    won bigint[]; -- who has all that it needs
    fences bigint[];
    key_rows tid[];
    placed bigint[]; -- who has a place of its queue, in rising order
    places tid[];
BEGIN
    IF EXISTS (SELECT FROM job_deadline d WHERE d.job_id = ANY (ids) AND d.expires_at <= clock_timestamp()) THEN
        PERFORM expire(ids);
    END IF;
    LOOP
        SELECT array_agg(f.id) FILTER (WHERE f.may_start), array_agg(f.key) FILTER (WHERE f.may_start),
               array_agg(f.key_limit) FILTER (WHERE f.may_start), array_agg(f.turn) FILTER (WHERE f.may_start),
               array_agg(f.queue) FILTER (WHERE f.may_start), bool_or(f.flags & 64 <> 0), bool_or(f.key_rate IS NOT NULL)
          INTO chosen, chosen_keys, chosen_limits, chosen_turns, chosen_queues, has_edits, has_rates
          FROM (SELECT t.*, t.may_try AND (t.key IS NULL OR t.turn <= t.key_limit) AS may_start
                  FROM (SELECT l.*, row_number() OVER (PARTITION BY l.key, l.may_try
                                                       ORDER BY l.priority, l.ready_at, l.id)::integer AS turn
                          FROM (SELECT j.id, j.exclusive_key AS key, j.priority, j.ready_at, j.queue, j.flags, m.rate AS key_rate,
                                       CASE WHEN j.exclusive_key IS NOT NULL THEN COALESCE(m.max_running, 1) END AS key_limit,
                                       CASE WHEN ahead[width_bucket(j.id, ahead)] = j.id
                                            THEN NOT COALESCE(k.at_most_once, false)
                                                 AND j.attempt + 1 < COALESCE(j.max_attempts, k.max_attempts, 25)
                                            ELSE j.attempt < COALESCE(j.max_attempts, k.max_attempts, 25) END AS may_try
                                  FROM job j
                                  LEFT JOIN kind k ON k.name = j.kind
                                  LEFT JOIN key_limit m ON m.key = j.exclusive_key
                                 WHERE j.id = ANY (ids) AND j.state = 'available' AND j.scheduled_at <= clock_timestamp()
                                   AND j.kind = ANY (kinds)
                                   FOR NO KEY UPDATE OF j SKIP LOCKED) AS l) AS t
                 ORDER BY t.priority, t.ready_at, t.id) AS f;
        EXIT WHEN has_edits IS NOT TRUE;
        FOR edited IN SELECT j.* FROM job j WHERE j.id = ANY (ids) AND j.flags & 64 <> 0 AND j.state = 'available' ORDER BY j.id
                         FOR NO KEY UPDATE SKIP LOCKED LOOP
            PERFORM apply_patch(edited, take_kept_edits(edited), edited.version);
        END LOOP;
    END LOOP;

    IF has_rates THEN
        FOR c IN SELECT l.key FROM (SELECT DISTINCT u.key FROM unnest(chosen_keys) AS u(key)) AS u JOIN key_limit l ON l.key = u.key
                  WHERE l.rate IS NOT NULL ORDER BY l.key LOOP
            found_at := clock_timestamp();
            SELECT key_tokens(l, found_at) INTO found_tokens FROM key_limit l WHERE l.key = c.key FOR NO KEY UPDATE SKIP LOCKED;
            rated := array_append(rated, c.key);
            key_left := array_append(key_left, COALESCE(found_tokens, 0)); -- none: somebody else is at it
            key_looked_at := array_append(key_looked_at, found_at);
        END LOOP;
        SELECT array_agg(u.id), array_agg(u.key), array_agg(u.key_limit), array_agg(u.queue) INTO chosen, chosen_keys, chosen_limits, chosen_queues
          FROM unnest(chosen, chosen_keys, chosen_limits, chosen_turns, chosen_queues) AS u(id, key, key_limit, turn, queue)
         WHERE u.turn <= COALESCE(key_left[array_position(rated, u.key)], u.turn);
    END IF;

    FOR c IN SELECT q.name, q.max_running, q.rate, u.jobs
               FROM (SELECT u.name, count(*)::integer AS jobs FROM unnest(chosen_queues) AS u(name) GROUP BY u.name) AS u
               JOIN queue q ON q.name = u.name
              WHERE q.limited ORDER BY q.name LOOP
        found_tokens := NULL;
        found_places := NULL;
        IF c.rate IS NOT NULL THEN
            FOR try IN 1..2 LOOP
                found_at := clock_timestamp();
                SELECT LEAST(1 + c.rate, b.tokens + c.rate * GREATEST(0, extract(epoch FROM found_at - b.filled_at))) INTO found_tokens
                  FROM bucket b WHERE b.queue = c.name FOR NO KEY UPDATE SKIP LOCKED;
                EXIT WHEN FOUND OR try = 2;
                PERFORM await_bucket(c.name);
            END LOOP;
            found_tokens := COALESCE(found_tokens, 0); -- none: somebody has been at it for long
            c.jobs := LEAST(c.jobs, floor(found_tokens));
        END IF;
        IF c.max_running IS NOT NULL THEN
            found_places := free_slots(c.name, c.max_running, c.jobs);
            c.jobs := LEAST(c.jobs, cardinality(found_places));
        END IF;
        limited := array_append(limited, c.name);
        allowed := array_append(allowed, c.jobs);
        left_over := array_append(left_over, found_tokens);
        looked_at := array_append(looked_at, found_at);
        begins := array_append(begins, CASE WHEN c.max_running IS NOT NULL THEN cardinality(free_places) END);
        free_places := free_places || found_places;
    END LOOP;
    IF cardinality(limited) > 0 THEN
        SELECT array_agg(u.id), array_agg(u.key), array_agg(u.key_limit), array_agg(u.queue)
          INTO chosen, chosen_keys, chosen_limits, chosen_queues
          FROM (SELECT u.*, row_number() OVER (PARTITION BY u.queue ORDER BY u.at) AS turn
                  FROM unnest(chosen, chosen_keys, chosen_limits, chosen_queues) WITH ORDINALITY AS u(id, key, key_limit, queue, at)
                 ORDER BY u.at) AS u
         WHERE u.turn <= COALESCE(allowed[array_position(limited, u.queue)], u.turn);
    END IF;

    -- Keys with one place in their order, then those with several: whoever waits for another can't be waited for by him. (EXISTS would be
    -- a join, and read all of a table that was empty when it was planned.)
    WITH single AS (
        INSERT INTO exclusive (key, job_id, fence)
        SELECT u.key, u.id, nextval('fence') FROM unnest(chosen, chosen_keys, chosen_limits) AS u(id, key, key_limit)
         WHERE u.key_limit = 1 AND (SELECT e.n FROM exclusive e WHERE e.key = u.key AND e.n > 1 LIMIT 1) IS NULL
         ORDER BY u.key COLLATE "C" ON CONFLICT DO NOTHING
        RETURNING job_id, fence, ctid AS at
    )
    SELECT COALESCE(array_agg(w.job_id), '{}'), COALESCE(array_agg(w.fence), '{}'), COALESCE(array_agg(w.at), '{}')
      INTO won, fences, key_rows
      FROM (SELECT s.job_id, s.fence, s.at FROM single s
            UNION ALL
            SELECT u.id, nextval('fence'), NULL FROM unnest(chosen, chosen_limits) AS u(id, key_limit) WHERE u.key_limit IS NULL) AS w;
    FOR try IN 1..CASE WHEN 1 < ANY (chosen_limits) THEN 5 ELSE 0 END LOOP -- somebody may be faster
        SELECT t.* INTO c FROM take_key_places(chosen, chosen_keys, chosen_limits, won) AS t;
        won := won || c.taken;
        fences := fences || c.fences;
        key_rows := key_rows || c.key_rows;
        EXIT WHEN cardinality(c.taken) = c.offered;
    END LOOP;

    IF has_rates OR cardinality(limited) > 0 THEN
        SELECT array_agg(w.id), array_agg(w.fence), array_agg(w.at) INTO won, fences, key_rows
          FROM (SELECT w.* FROM unnest(won, fences, key_rows) AS w(id, fence, at) ORDER BY w.id) AS w;
        UPDATE key_limit l SET tokens = key_left[w.at] - w.jobs, filled_at = GREATEST(l.filled_at, key_looked_at[w.at])
          FROM (SELECT array_position(rated, u.key) AS at, count(*) AS jobs FROM unnest(chosen, chosen_keys) AS u(id, key)
                 WHERE has_rates AND won[width_bucket(u.id, won)] = u.id GROUP BY 1) AS w
         WHERE l.key = rated[w.at];
        WITH winner AS MATERIALIZED (
            SELECT u.id, u.queue, array_position(limited, u.queue) AS at, row_number() OVER (PARTITION BY u.queue) AS turn
              FROM unnest(chosen, chosen_queues) AS u(id, queue)
             WHERE won[width_bucket(u.id, won)] = u.id
        ), paid AS (
            UPDATE bucket b SET tokens = left_over[w.at] - w.jobs, filled_at = GREATEST(b.filled_at, looked_at[w.at])
              FROM (SELECT w.at, max(w.turn) AS jobs FROM winner w WHERE left_over[w.at] IS NOT NULL GROUP BY w.at) AS w
             WHERE b.queue = limited[w.at]
        ), taken AS (
            UPDATE slot s SET job_id = w.id, fence = fences[width_bucket(w.id, won)]
              FROM winner w
             WHERE s.queue = w.queue AND s.n = free_places[begins[w.at] + w.turn]
            RETURNING s.job_id, s.ctid AS at
        )
        SELECT array_agg(t.job_id), array_agg(t.at) INTO placed, places FROM (SELECT t.* FROM taken t ORDER BY t.job_id) AS t;
    END IF;
    PERFORM keep_waiting(ids, won) WHERE cardinality(ids) > COALESCE(cardinality(won), 0);
    RETURN QUERY
    UPDATE job j
       SET state = 'running', attempt = j.attempt + 1, fence = w.fence, worker_id = worker, attempted_at = clock_timestamp(),
           -- Its end makes its worker try the next one.
           flags = CASE WHEN j.queue = ANY (limited) THEN j.flags | 4 ELSE j.flags & ~4 END
      FROM unnest(won, fences, key_rows) AS w(id, fence, at)
     WHERE j.id = w.id
    RETURNING j.id, j.fence, j.created_at, j.ready_at, j.attempted_at, j.attempt, j.crashes, j.generation, j.max_attempts, j.priority,
              j.flags, j.queue, j.kind, j.args, j.timeout, j.tags, j.metadata, j.backoff, w.at,
              CASE WHEN placed[width_bucket(j.id, placed)] = j.id THEN places[width_bucket(j.id, placed)] END;
END $$;

-- As in 0019, but for job_deadline.
CREATE OR REPLACE FUNCTION job_ended() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET jit = off AS $$
BEGIN
    IF OLD.flags & 1 <> 0 THEN
        DELETE FROM job_key
         WHERE ctid = (SELECT k.ctid FROM job_key k WHERE k.key = OLD.unique_key AND k.job_id = OLD.id FOR UPDATE SKIP LOCKED);
    END IF;
    IF OLD.flags & 32 <> 0 THEN
        IF EXISTS (SELECT FROM job_wait w WHERE w.job_id = OLD.id) THEN
            PERFORM keep_predecessors(OLD.id);
            DELETE FROM job_wait w WHERE w.job_id = OLD.id;
        END IF;
    END IF;
    IF OLD.flags & 2048 <> 0 THEN
        DELETE FROM job_deadline d WHERE d.job_id = OLD.id;
    END IF;
    IF OLD.flags & 64 <> 0 THEN
        DELETE FROM job_live l WHERE l.id = OLD.id;
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER job_ended ON job;
CREATE TRIGGER job_ended AFTER DELETE ON job FOR EACH ROW WHEN (OLD.flags & 2145 <> 0) EXECUTE FUNCTION job_ended();

-- As in 0019, but an operator's retry has no deadline (2048).
CREATE OR REPLACE FUNCTION retry_many(ids bigint[], even_completed boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    wanted bigint[] := ARRAY(SELECT DISTINCT u.id FROM unnest(ids) AS u(id) ORDER BY u.id);
    parked bigint;
    refused bigint;
    found_state text;
BEGIN
    IF ids IS NULL OR EXISTS (SELECT FROM unnest(ids) AS u(id) WHERE u.id IS NULL) OR even_completed IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002',
            MESSAGE = CASE WHEN even_completed IS NULL THEN 'even_completed: must be true or false' ELSE 'id: must not be NULL' END;
    END IF;
    IF EXISTS (SELECT FROM queue q WHERE q.max_open IS NOT NULL) THEN
        -- In the order of the queues, as in enqueue_many().
        PERFORM take_room(w.queue, w.jobs)
           FROM (SELECT h.queue, count(*) AS jobs
                   FROM job_history h
                   JOIN queue q ON q.name = h.queue AND q.max_open IS NOT NULL
                  WHERE h.id = ANY (wanted) AND h.retried_at IS NULL AND (even_completed OR h.state <> 'completed')
                  GROUP BY h.queue
                  ORDER BY h.queue) AS w;
    END IF;
    WITH former AS (
        UPDATE job_history h SET retried_at = clock_timestamp()
         WHERE h.id = ANY (wanted) AND h.retried_at IS NULL AND (even_completed OR h.state <> 'completed')
        RETURNING h.*
    )
    INSERT INTO job (id, fence, created_at, generation, priority, share, queue, kind, args, max_attempts, timeout, tags, metadata,
                     flags, version, unique_key, backoff, exclusive_key, share_key)
    OVERRIDING SYSTEM VALUE
    SELECT f.id, f.fence, f.created_at, f.generation + 1, f.priority, f.share, f.queue, f.kind, f.args, f.max_attempts, f.timeout,
           f.tags, f.metadata, f.flags & ~3012, f.version, f.unique_key, f.backoff, f.exclusive_key, f.share_key
      FROM former f
     ORDER BY f.id;
    -- Its attempts, crashes and generation stay. An edit, which is put on record, and which the feed meets ahead of its cursor.
    FOR parked IN SELECT j.id FROM job j
                   WHERE j.id = ANY (wanted) AND j.state = 'available' AND j.ready_at > clock_timestamp()
                     AND NOT (j.flags & 32 <> 0 AND j.scheduled_at = job_waits())
                   ORDER BY j.id FOR NO KEY UPDATE LOOP
        PERFORM edit(parked, '{"scheduled_at": null}');
    END LOOP;
    SELECT u.id, CASE WHEN j.ready_at = job_waits() AND j.state = 'available' THEN 'waiting' ELSE j.state END INTO refused, found_state
      FROM unnest(wanted) AS u(id)
      LEFT JOIN job j ON j.id = u.id
     WHERE j.id IS NULL OR j.state <> 'available' OR j.ready_at > clock_timestamp()
     ORDER BY u.id
     LIMIT 1;
    IF NOT FOUND THEN
        RETURN cardinality(wanted);
    END IF;
    IF found_state IS NULL THEN
        SELECT h.state INTO found_state FROM job_history h WHERE h.id = refused AND h.retried_at IS NULL;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'CL003',
        MESSAGE = 'job ' || refused || CASE
            WHEN found_state = 'running' THEN ' is running: only a finished, retryable or scheduled job can be retried'
            WHEN found_state = 'waiting'
            THEN ' is waiting for other jobs: only a finished, retryable or scheduled job can be retried'
            WHEN found_state = 'completed' AND NOT even_completed THEN ' is completed: only even_completed => true retries it'
            WHEN found_state IS NOT NULL THEN ' has just changed: try again'
            ELSE ' not found' END;
END $$;
