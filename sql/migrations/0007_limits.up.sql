-- SPDX-License-Identifier: Apache-2.0
-- Limits over the fleet: one running job of a key, or so many; so many of a queue; so many of either in a second. Decided by the
-- statement that claims, which is one of its own: job_claim leaves out what has a limit, by `flags`, and what has none pays
-- nothing. The guide: docs/guide/limits.md.

-- Which run holds a key. A row comes and goes in the commits that begin and end the run.
CREATE TABLE exclusive (
    key text COLLATE "C" NOT NULL,
    n smallint NOT NULL DEFAULT 1, -- which of its places
    job_id bigint NOT NULL,
    fence bigint NOT NULL,
    CONSTRAINT exclusive_pkey PRIMARY KEY (key, n)
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

CREATE INDEX exclusive_job ON exclusive (job_id);

-- Without a row: one running job, no rate.
CREATE TABLE key_limit (
    key text COLLATE "C" NOT NULL,
    max_running integer NOT NULL DEFAULT 1,
    rate double precision, -- starts per second; NULL: any
    tokens double precision NOT NULL DEFAULT 1, -- as in `bucket`
    filled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT key_limit_pkey PRIMARY KEY (key),
    CONSTRAINT key_limit_range CHECK (max_running BETWEEN 1 AND 1000),
    CONSTRAINT key_limit_rate_range CHECK (rate > 0 AND rate <= 100000)
) WITH (fillfactor = 50);

-- The leading scheduler looks at these each second.
CREATE INDEX key_limit_rate ON key_limit (key) WHERE rate IS NOT NULL;

CREATE TABLE slot (
    queue text COLLATE "C" NOT NULL,
    n integer NOT NULL,
    job_id bigint NOT NULL DEFAULT 0,
    fence bigint NOT NULL DEFAULT 0, -- 0: free
    CONSTRAINT slot_pkey PRIMARY KEY (queue, n)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

CREATE INDEX slot_fence ON slot (fence) WHERE fence <> 0;

CREATE TABLE bucket (
    queue text COLLATE "C" NOT NULL,
    tokens double precision NOT NULL DEFAULT 1,
    filled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT bucket_pkey PRIMARY KEY (queue)
) WITH (fillfactor = 50);

-- Of queues with max_open: so many more jobs may come before the open ones are counted anew.
CREATE TABLE room (
    queue text COLLATE "C" NOT NULL,
    jobs integer NOT NULL DEFAULT 0,
    CONSTRAINT room_pkey PRIMARY KEY (queue)
) WITH (fillfactor = 50);

-- The flag of jobs with an exclusive key. A program built for an older schema would claim them as if they had none.
CREATE FUNCTION exclusive_flag() RETURNS smallint
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM require_program(2);
    RETURN 2;
END $$;

CREATE FUNCTION why_no_rate(starts integer, per interval) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN starts NOT BETWEEN 1 AND 100000
                THEN 'starts: must be 1 to 100000, or NULL for no limit'
                WHEN (per >= interval '1 s' AND per <= interval '31 days') IS NOT TRUE
                THEN 'per: must be 1 second to 31 days' END
$$;

-- NULL or 1: one at a time, as for every key that nobody has set a limit for.
CREATE FUNCTION limit_key(key text, max_running integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF (octet_length(key) BETWEEN 1 AND 512) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'key: must have 1 to 512 octets';
    ELSIF max_running NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'max_running: must be 1 to 1000, or NULL for 1';
    END IF;
    IF max_running > 1 THEN
        INSERT INTO key_limit AS k (key, max_running) VALUES (limit_key.key, limit_key.max_running)
            ON CONFLICT ON CONSTRAINT key_limit_pkey DO UPDATE SET max_running = excluded.max_running;
    ELSE
        UPDATE key_limit k SET max_running = 1 WHERE k.key = limit_key.key;
        DELETE FROM key_limit k WHERE k.key = limit_key.key AND k.rate IS NULL;
    END IF;
END $$;

-- At most `starts` jobs with the key begin in `per`, on average; what was not used in the last two seconds may be made up for. NULL:
-- no limit any more. How many of them may run at a time is limit_key()'s.
CREATE FUNCTION limit_key_rate(key text, starts integer, per interval DEFAULT '1 s') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := CASE WHEN (octet_length(key) BETWEEN 1 AND 512) IS NOT TRUE THEN 'key: must have 1 to 512 octets'
                       ELSE why_no_rate(starts, per) END;
    per_second double precision := starts / extract(epoch FROM per);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    IF per_second IS NULL THEN
        UPDATE key_limit k SET rate = NULL WHERE k.key = limit_key_rate.key;
        DELETE FROM key_limit k WHERE k.key = limit_key_rate.key AND k.max_running = 1;
    ELSE
        INSERT INTO key_limit AS k (key, rate) VALUES (limit_key_rate.key, per_second)
            ON CONFLICT ON CONSTRAINT key_limit_pkey DO UPDATE SET rate = excluded.rate;
    END IF;
END $$;

-- NULL: no limit any more. Places that are held beyond a lower limit count until their runs have ended.
CREATE FUNCTION limit_queue(queue text, max_running integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := CASE
        WHEN queue IS NULL OR queue !~ '^[a-z][a-z0-9_.-]*$' OR octet_length(queue) > 64
        THEN 'queue: must match ^[a-z][a-z0-9_.-]*$ and have at most 64 octets'
        WHEN max_running NOT BETWEEN 1 AND 10000
        THEN 'max_running: must be 1 to 10000, or NULL for no limit'
    END;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    PERFORM require_program(2); -- an older program would claim on
    INSERT INTO queue AS q (name, max_running, limited)
    VALUES (limit_queue.queue, limit_queue.max_running, limit_queue.max_running IS NOT NULL)
        ON CONFLICT (name) DO UPDATE SET max_running = excluded.max_running, limited = excluded.limited OR q.rate IS NOT NULL;
    INSERT INTO slot (queue, n) SELECT limit_queue.queue, g FROM generate_series(1, limit_queue.max_running) AS g
        ON CONFLICT DO NOTHING;
    DELETE FROM slot s WHERE s.queue = limit_queue.queue AND s.n > COALESCE(limit_queue.max_running, 0) AND s.fence = 0;
END $$;

-- At most `starts` jobs of the queue begin in `per`, on average; what was not used in the last second may be made up for. NULL:
-- no limit any more.
CREATE FUNCTION limit_rate(queue text, starts integer, per interval DEFAULT '1 s') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := CASE
        WHEN queue IS NULL OR queue !~ '^[a-z][a-z0-9_.-]*$' OR octet_length(queue) > 64
        THEN 'queue: must match ^[a-z][a-z0-9_.-]*$ and have at most 64 octets'
        ELSE why_no_rate(starts, per)
    END;
    per_second double precision := starts / extract(epoch FROM per);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    PERFORM require_program(2); -- an older program would claim on
    INSERT INTO queue AS q (name, rate, limited) VALUES (limit_rate.queue, per_second, per_second IS NOT NULL)
        ON CONFLICT (name) DO UPDATE SET rate = excluded.rate, limited = excluded.limited OR q.max_running IS NOT NULL;
    DELETE FROM bucket b WHERE b.queue = limit_rate.queue AND per_second IS NULL;
    INSERT INTO bucket (queue) SELECT limit_rate.queue WHERE per_second IS NOT NULL ON CONFLICT DO NOTHING;
END $$;

-- So many jobs of the queue that have not ended, waiting or running; who would enqueue one more is refused. NULL: no limit any more.
CREATE FUNCTION limit_open(queue text, max_open integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := CASE
        WHEN queue IS NULL OR queue !~ '^[a-z][a-z0-9_.-]*$' OR octet_length(queue) > 64
        THEN 'queue: must match ^[a-z][a-z0-9_.-]*$ and have at most 64 octets'
        WHEN max_open NOT BETWEEN 1 AND 10000000
        THEN 'max_open: must be 1 to 10000000, or NULL for no limit'
    END;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    INSERT INTO queue AS q (name, max_open) VALUES (limit_open.queue, limit_open.max_open)
        ON CONFLICT (name) DO UPDATE SET max_open = excluded.max_open;
    DELETE FROM room r WHERE r.queue = limit_open.queue AND limit_open.max_open IS NULL;
    INSERT INTO room AS r (queue) SELECT limit_open.queue WHERE limit_open.max_open IS NOT NULL
        ON CONFLICT ON CONSTRAINT room_pkey DO UPDATE SET jobs = 0;
END $$;

-- Room for so many more jobs in a queue with max_open, else CL005. Exact, since one enqueuer waits for the transaction of the other.
-- Jobs that end make room, so what a count has found can be given away before the next one.
CREATE FUNCTION take_room(queue text, wanted bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
    most integer;
    found_open bigint;
    found_room bigint := (SELECT r.jobs FROM room r WHERE r.queue = take_room.queue FOR NO KEY UPDATE);
BEGIN
    IF found_room < wanted THEN
        SELECT q.max_open INTO most FROM queue q WHERE q.name = take_room.queue;
        SELECT count(*) INTO found_open FROM (SELECT FROM job j WHERE j.queue = take_room.queue LIMIT most + 1) AS j;
        found_room := most - found_open;
        IF found_room < wanted THEN
            RAISE EXCEPTION USING ERRCODE = 'CL005', DETAIL = found_open::text,
                MESSAGE = format('queue: %s has %s%s of at most %s open jobs: no room for %s more', queue,
                                 CASE WHEN found_open > most THEN 'more than ' ELSE '' END, LEAST(found_open, most), most, wanted);
        END IF;
    END IF;
    UPDATE room r SET jobs = found_room - wanted WHERE r.queue = take_room.queue;
END $$;

-- ---- taking and freeing ----
-- Locks up to `most` free places of a queue, so that never more than its limit are taken: where a limit was lowered, those that
-- are held beyond it count. Places that somebody is taking or giving back are left out.
CREATE FUNCTION free_slots(queue text, max_running integer, most integer) RETURNS integer[]
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    last integer := max_running;
BEGIN
    IF EXISTS (SELECT FROM slot s WHERE s.queue = free_slots.queue AND s.n > max_running AND s.fence <> 0) THEN
        SELECT max(g) INTO last FROM generate_series(0, max_running) AS g
         WHERE g + (SELECT count(*) FROM slot s WHERE s.queue = free_slots.queue AND s.n > g AND s.fence <> 0) <= max_running;
    END IF;
    RETURN ARRAY(SELECT s.n FROM slot s WHERE s.queue = free_slots.queue AND s.n <= last AND s.fence = 0
                  ORDER BY s.n LIMIT most FOR NO KEY UPDATE SKIP LOCKED);
END $$;

-- How many jobs of a key with a rate may start now: its bucket holds two seconds' worth and one, since the leading scheduler looks at
-- it once a second. Of one without a rate: any number.
CREATE FUNCTION key_tokens(l key_limit, at timestamptz) RETURNS double precision
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN (l).rate IS NULL THEN 'Infinity'
            ELSE LEAST(1 + 2 * (l).rate, (l).tokens + (l).rate * GREATEST(0, extract(epoch FROM at - (l).filled_at))) END;

-- How many more jobs of this key may start.
CREATE FUNCTION key_places(wanted text) RETURNS integer
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN COALESCE((SELECT CASE WHEN key_tokens(l, statement_timestamp()) < l.max_running
                                 THEN LEAST(floor(key_tokens(l, statement_timestamp()))::integer,
                                            l.max_running - (SELECT count(*)::integer FROM exclusive e WHERE e.key = wanted))
                                 ELSE l.max_running - (SELECT count(*)::integer FROM exclusive e WHERE e.key = wanted) END
                       FROM key_limit l WHERE l.key = wanted),
                    1 - (SELECT count(*)::integer FROM exclusive e WHERE e.key = wanted));
END $$;

-- Takes a place of a key that has several, if one is free. Where the limit was lowered, places that are held beyond it count.
CREATE FUNCTION take_key_place(wanted text, places integer, new_id bigint, new_fence bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    FOR try IN 1..5 LOOP -- somebody may be faster
        INSERT INTO exclusive (key, n, job_id, fence) SELECT wanted, g, new_id, new_fence FROM generate_series(1, places) AS g
         WHERE NOT EXISTS (SELECT FROM exclusive e WHERE e.key = wanted AND e.n = g)
           AND g + (SELECT count(*) FROM exclusive e WHERE e.key = wanted AND e.n > g) <= places
         ORDER BY g LIMIT 1 ON CONFLICT DO NOTHING;
        IF FOUND THEN
            RETURN true;
        END IF;
        EXIT WHEN key_places(wanted) < 1;
    END LOOP;
    RETURN false;
END $$;

-- The jobs that come next of each key, as many as it is named times: due, available, of a queue and a kind that aren't paused. Index:
-- job_exclusive, one look per priority. Not in SQL: a function that sets something is planned anew at each call.
CREATE FUNCTION next_of_keys(keys text[])
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT n.* FROM (SELECT u.key, count(*) AS places FROM unnest(keys) AS u(key)
                      WHERE NOT EXISTS (SELECT FROM key_limit l WHERE l.key = u.key AND key_tokens(l, statement_timestamp()) < 1)
                      GROUP BY u.key) AS k
     CROSS JOIN LATERAL (
        SELECT f.* FROM generate_series(0, CASE WHEN EXISTS (SELECT FROM job j WHERE j.exclusive_key = k.key) THEN 9 ELSE -1 END) AS p
         CROSS JOIN LATERAL (
            SELECT j.id, j.queue, j.kind, j.priority, j.ready_at FROM job j
             WHERE j.exclusive_key = k.key AND j.priority = p AND j.ready_at <= statement_timestamp() AND j.state = 'available'
               AND NOT EXISTS (SELECT FROM queue q WHERE q.name = j.queue AND q.paused)
               AND NOT EXISTS (SELECT FROM kind t WHERE t.name = j.kind AND t.paused)
             ORDER BY j.ready_at, j.id LIMIT k.places) AS f
         ORDER BY f.priority, f.ready_at, f.id LIMIT k.places) AS n;
END $$;

-- Frees what these runs (job and fence of each: a fence belongs to one run) have held, where they run no more: called for jobs
-- whose `flags` have 2 or 4, after the statements that end them, in their transaction. Returns the jobs that this makes claimable:
-- push their hints.
CREATE FUNCTION free_ended(ids bigint[], fences bigint[])
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    freed text[];
BEGIN
    UPDATE slot s SET job_id = 0, fence = 0
     WHERE s.fence = ANY (fences) AND s.fence <> 0
       AND NOT EXISTS (SELECT FROM job j WHERE j.id = s.job_id AND j.fence = s.fence AND j.state = 'running');
    WITH gone AS (
        DELETE FROM exclusive e
         WHERE e.job_id = ANY (ids) AND e.fence = ANY (fences)
           AND NOT EXISTS (SELECT FROM job j WHERE j.id = e.job_id AND j.fence = e.fence AND j.state = 'running')
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
        SELECT s.queue, s.n, s.fence FROM slot s
         WHERE s.fence <> 0 AND NOT EXISTS (SELECT FROM job j WHERE j.id = s.job_id AND j.fence = s.fence AND j.state = 'running')
           FOR UPDATE OF s SKIP LOCKED
    )
    UPDATE slot s SET job_id = 0, fence = 0 FROM leaked l WHERE s.queue = l.queue AND s.n = l.n AND s.fence = l.fence;
    -- Held when their limit was lowered.
    DELETE FROM slot s WHERE s.fence = 0 AND NOT EXISTS (SELECT FROM queue q WHERE q.name = s.queue AND q.max_running >= s.n);
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
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT n.* FROM next_of_keys(ARRAY(
        SELECT k.key FROM (SELECT DISTINCT j.exclusive_key AS key FROM job j WHERE j.id = ANY (ids) AND j.state = 'available') AS k
         CROSS JOIN LATERAL generate_series(1, key_places(k.key)))) AS n;
END $$;

-- What may start by now of keys with a rate, `most` jobs at most. For the leading scheduler, each second: whoever was refused for the
-- rate has dropped the hint.
CREATE FUNCTION next_of_rates(most integer)
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT n.* FROM next_of_keys(ARRAY(
        SELECT l.key FROM key_limit l CROSS JOIN LATERAL generate_series(1, key_places(l.key))
         WHERE l.rate IS NOT NULL AND EXISTS (SELECT FROM job j WHERE j.exclusive_key = l.key))) AS n
     LIMIT most;
END $$;

-- Claims those of the jobs that job_claim leaves out, within their limits, and after the edits that waited for this attempt (flag
-- 64); `ahead`: those of them that no runner waits for. In this order, so that it neither deadlocks nor leaks: lock the jobs, lock
-- free places of their queues, draw fences, take the keys in their order, change only who has won. What somebody has locked is left
-- out, but whoever is ending the run that holds a key is waited for: then it is ours.
CREATE FUNCTION claim_limited(ids bigint[], worker uuid, kinds text[], ahead bigint[])
RETURNS SETOF job
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    c record;
    seen text[] := '{}'; -- queues whose places are locked,
    open_queues text[] := '{}'; -- and these places: queue,
    open_places integer[] := '{}'; -- and number; NULL once it is given away
    at integer;
    rated text[] := '{}'; -- queues with a rate, what their buckets hold, and since when
    left_over double precision[] := '{}';
    looked_at timestamptz[] := '{}';
    rated_keys text[] := '{}'; -- the same of keys
    key_left double precision[] := '{}';
    key_looked_at timestamptz[] := '{}';
    found_tokens double precision;
    found_at timestamptz;
    drawn bigint;
    chosen bigint[] := '{}'; -- columns of the jobs that may have what their queues allow
    chosen_keys text[] := '{}';
    chosen_limits integer[] := '{}';
    chosen_queues text[] := '{}';
    chosen_places integer[] := '{}';
    won integer[] := '{}'; -- which of them have their keys too
    fences bigint[] := '{}';
    edited job;
BEGIN
    FOR edited IN SELECT j.* FROM job j WHERE j.id = ANY (ids) AND j.flags & 64 <> 0 AND j.state = 'available' ORDER BY j.id
                     FOR NO KEY UPDATE SKIP LOCKED LOOP
        PERFORM apply_patch(edited, take_kept_edits(edited), edited.version);
    END LOOP;
    FOR c IN SELECT j.id, j.exclusive_key AS key, COALESCE(l.max_running, 1) AS key_limit, l.rate AS key_rate, j.queue,
                    q.max_running, q.rate
               FROM job j
               LEFT JOIN kind k ON k.name = j.kind
               LEFT JOIN queue q ON q.name = j.queue
               LEFT JOIN key_limit l ON l.key = j.exclusive_key
              WHERE j.id = ANY (ids) AND j.state = 'available' AND j.scheduled_at <= clock_timestamp() AND j.kind = ANY (kinds)
                AND CASE WHEN j.id = ANY (ahead)
                         THEN NOT COALESCE(k.at_most_once, false) AND j.attempt + 1 < COALESCE(j.max_attempts, k.max_attempts, 25)
                         ELSE j.attempt < COALESCE(j.max_attempts, k.max_attempts, 25) END
              ORDER BY j.priority, j.ready_at, j.id
                FOR NO KEY UPDATE OF j SKIP LOCKED LOOP
        CONTINUE WHEN c.key IS NOT NULL AND cardinality(array_positions(chosen_keys, c.key)) >= c.key_limit;
        IF c.key_rate IS NOT NULL THEN
            IF c.key <> ALL (rated_keys) THEN
                found_at := clock_timestamp();
                SELECT key_tokens(l, found_at) INTO found_tokens FROM key_limit l WHERE l.key = c.key FOR NO KEY UPDATE SKIP LOCKED;
                rated_keys := array_append(rated_keys, c.key);
                key_left := array_append(key_left, found_tokens); -- NULL: somebody else is at it
                key_looked_at := array_append(key_looked_at, found_at);
            END IF;
            CONTINUE WHEN (key_left[array_position(rated_keys, c.key)] >= 1) IS NOT TRUE;
        END IF;
        IF c.rate IS NOT NULL THEN
            IF c.queue <> ALL (rated) THEN
                found_at := clock_timestamp();
                SELECT LEAST(1 + c.rate, b.tokens + c.rate * GREATEST(0, extract(epoch FROM found_at - b.filled_at))) INTO found_tokens
                  FROM bucket b WHERE b.queue = c.queue FOR NO KEY UPDATE SKIP LOCKED;
                rated := array_append(rated, c.queue);
                left_over := array_append(left_over, found_tokens); -- NULL: somebody else is at it
                looked_at := array_append(looked_at, found_at);
            END IF;
            at := array_position(rated, c.queue);
            CONTINUE WHEN (left_over[at] >= 1) IS NOT TRUE;
        END IF;
        at := NULL;
        IF c.max_running IS NOT NULL THEN
            IF c.queue <> ALL (seen) THEN
                seen := seen || c.queue;
                open_places := open_places || free_slots(c.queue, c.max_running, cardinality(ids));
                open_queues := open_queues || array_fill(c.queue, ARRAY[cardinality(open_places) - cardinality(open_queues)]);
            END IF;
            at := array_position(open_queues, c.queue);
            CONTINUE WHEN at IS NULL;
            open_queues[at] := NULL;
        END IF;
        chosen_places := array_append(chosen_places, open_places[at]);
        IF c.rate IS NOT NULL THEN
            at := array_position(rated, c.queue);
            left_over[at] := left_over[at] - 1;
        END IF;
        IF c.key_rate IS NOT NULL THEN
            at := array_position(rated_keys, c.key);
            key_left[at] := key_left[at] - 1;
        END IF;
        chosen := chosen || c.id;
        chosen_keys := array_append(chosen_keys, c.key);
        chosen_limits := chosen_limits || c.key_limit;
        chosen_queues := chosen_queues || c.queue;
    END LOOP;
    -- Keys with one place in their order, then those with several: whoever waits for another can't be waited for by him.
    WITH taken AS (
        INSERT INTO exclusive (key, job_id, fence)
        SELECT u.key, chosen[u.at], nextval('fence') FROM unnest(chosen_keys) WITH ORDINALITY AS u(key, at)
         WHERE u.key IS NOT NULL AND chosen_limits[u.at] = 1 AND NOT EXISTS (SELECT FROM exclusive e WHERE e.key = u.key AND e.n > 1)
         ORDER BY u.key COLLATE "C" ON CONFLICT DO NOTHING
        RETURNING job_id, fence
    ), free AS (
        SELECT u.at, nextval('fence') AS fence FROM unnest(chosen_keys) WITH ORDINALITY AS u(key, at) WHERE u.key IS NULL
    )
    SELECT COALESCE(array_agg(w.at), '{}'), COALESCE(array_agg(w.fence), '{}') INTO won, fences
      FROM (SELECT array_position(chosen, t.job_id) AS at, t.fence FROM taken t UNION ALL SELECT f.at::integer, f.fence FROM free f) AS w;
    FOR at IN SELECT u.at FROM unnest(chosen_keys) WITH ORDINALITY AS u(key, at)
               WHERE u.key IS NOT NULL AND chosen_limits[u.at] > 1 ORDER BY u.key COLLATE "C" LOOP
        drawn := nextval('fence');
        IF take_key_place(chosen_keys[at], chosen_limits[at], chosen[at], drawn) THEN
            won := won || at;
            fences := fences || drawn;
        END IF;
    END LOOP;
    FOR at IN SELECT u.at FROM generate_series(1, CASE WHEN cardinality(rated) + cardinality(rated_keys) > 0
                                                       THEN cardinality(chosen) ELSE 0 END) AS u(at)
               WHERE u.at <> ALL (won) LOOP -- their tokens are for others
        IF chosen_queues[at] = ANY (rated) THEN
            left_over[array_position(rated, chosen_queues[at])] := left_over[array_position(rated, chosen_queues[at])] + 1;
        END IF;
        IF chosen_keys[at] = ANY (rated_keys) THEN
            key_left[array_position(rated_keys, chosen_keys[at])] := key_left[array_position(rated_keys, chosen_keys[at])] + 1;
        END IF;
    END LOOP;
    UPDATE slot s SET job_id = chosen[w.at], fence = w.fence
      FROM unnest(won, fences) AS w(at, fence)
     WHERE s.queue = chosen_queues[w.at] AND s.n = chosen_places[w.at];
    FOR at IN 1..cardinality(rated) LOOP
        UPDATE bucket b SET tokens = left_over[at], filled_at = GREATEST(b.filled_at, looked_at[at])
         WHERE b.queue = rated[at] AND left_over[at] IS NOT NULL;
    END LOOP;
    FOR at IN 1..cardinality(rated_keys) LOOP
        UPDATE key_limit l SET tokens = key_left[at], filled_at = GREATEST(l.filled_at, key_looked_at[at])
         WHERE l.key = rated_keys[at] AND key_left[at] IS NOT NULL;
    END LOOP;
    RETURN QUERY
    UPDATE job j
       SET state = 'running', attempt = j.attempt + 1, fence = w.fence, worker_id = worker, attempted_at = clock_timestamp(),
           -- Its end makes its worker try the next one.
           flags = CASE WHEN EXISTS (SELECT FROM queue q WHERE q.name = j.queue AND q.limited) THEN j.flags | 4 ELSE j.flags & ~4 END
      FROM unnest(won, fences) AS w(at, fence)
     WHERE j.id = chosen[w.at]
    RETURNING j.*;
END $$;

REVOKE ALL ON FUNCTION exclusive_flag, why_no_rate, limit_key, limit_key_rate, limit_queue, limit_rate, limit_open, take_room,
    free_slots, key_tokens, key_places, take_key_place, next_of_keys, free_ended, free_leaked, next_free, next_of_rates, claim_limited FROM PUBLIC;
GRANT EXECUTE ON FUNCTION limit_key, limit_key_rate, limit_queue, limit_rate, limit_open TO claimd_admin;
GRANT EXECUTE ON FUNCTION key_tokens TO claimd_admin, claimd_reader;
GRANT EXECUTE ON FUNCTION key_places, free_ended, free_leaked, next_free, claim_limited TO claimd_worker;
GRANT SELECT ON exclusive, key_limit, slot, bucket, room TO claimd_admin, claimd_reader;
GRANT SELECT ON exclusive TO claimd_worker;
