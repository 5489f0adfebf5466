-- SPDX-License-Identifier: Apache-2.0
-- Limits over the fleet: one running job of a key, or so many; so many of a queue; so many of either in a second. Decided by the
-- statement that claims, which is one of its own: job_claim leaves out what has a limit, by `flags`, and what has none pays
-- nothing. The guide: docs/guide/limits.md.

-- Which run holds a key. A row comes and goes in the commits that begin and end the run. What a run holds is found by where it stands:
-- no index to keep up, and places change without touching one (HOT).
CREATE TABLE exclusive (
    key text COLLATE "C" NOT NULL,
    n smallint NOT NULL DEFAULT 1, -- which of its places
    job_id bigint NOT NULL,
    fence bigint NOT NULL,
    CONSTRAINT exclusive_pkey PRIMARY KEY (key, n)
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- Without a row: one running job, no rate.
CREATE TABLE key_limit (
    key text COLLATE "C" NOT NULL,
    max_running integer NOT NULL DEFAULT 1,
    rate double precision, -- starts per second; NULL: any
    tokens double precision NOT NULL DEFAULT 1, -- as in `bucket`
    filled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- True: a claim has made the row, of the key's group, as which it is again with the next full pass.
    is_grouped boolean NOT NULL DEFAULT false,
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

CREATE TABLE bucket (
    queue text COLLATE "C" NOT NULL,
    tokens double precision NOT NULL DEFAULT 1,
    filled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT bucket_pkey PRIMARY KEY (queue)
) WITH (fillfactor = 50);

-- Jobs that were refused for their key, and whose hints were dropped: when a place of the key is free, the first of them gets its hint
-- again. What was never refused has its own. A row too many harms nobody: it is looked at when it is its turn. A job with two keys has a
-- row under each: a key has a line for each other key that its jobs need, so one look says of a whole line whether it can go on.
CREATE TABLE key_waiting (
    job_id bigint NOT NULL,
    ready_at timestamptz NOT NULL,
    priority smallint NOT NULL,
    key text COLLATE "C" NOT NULL,
    other_key text COLLATE "C" NOT NULL DEFAULT '', -- '': it needs no other
    CONSTRAINT key_waiting_pkey PRIMARY KEY (key, other_key, priority, ready_at, job_id)
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- NULL: as if nothing had been said, so one at a time, or what a pattern says. What is said of a key itself stands in place of its
-- pattern's, whole.
CREATE FUNCTION limit_key(key text, max_running integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    begins text := prefix_of(key);
BEGIN
    IF (octet_length(key) BETWEEN 1 AND 512) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'key: must have 1 to 512 octets';
    ELSIF max_running NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'max_running: must be 1 to 1000, or NULL for 1';
    END IF;
    IF begins IS NOT NULL THEN
        INSERT INTO key_group AS g (prefix, max_running) VALUES (begins, limit_key.max_running)
            ON CONFLICT ON CONSTRAINT key_group_pkey DO UPDATE SET max_running = excluded.max_running;
        PERFORM group_is_set(begins);
    ELSIF max_running > 1 OR (max_running = 1 AND (group_of(key)).prefix IS NOT NULL) THEN
        INSERT INTO key_limit AS k (key, max_running) VALUES (limit_key.key, limit_key.max_running)
            ON CONFLICT ON CONSTRAINT key_limit_pkey
            DO UPDATE SET max_running = excluded.max_running, rate = CASE WHEN k.is_grouped THEN NULL ELSE k.rate END, is_grouped = false;
    ELSE
        UPDATE key_limit k SET max_running = 1 WHERE k.key = limit_key.key AND NOT k.is_grouped;
        DELETE FROM key_limit k WHERE k.key = limit_key.key AND NOT k.is_grouped AND k.rate IS NULL;
    END IF;
END $$;

-- At most `starts` jobs with the key, or with each key of the pattern, begin in `per`, on average; what was not used in the last two
-- seconds may be made up for. NULL: as if nothing had been said. How many of them may run at a time is limit_key()'s.
CREATE FUNCTION limit_key_rate(key text, starts integer, per interval DEFAULT '1 s') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := CASE WHEN (octet_length(key) BETWEEN 1 AND 512) IS NOT TRUE THEN 'key: must have 1 to 512 octets'
                       ELSE why_no_rate(starts, per) END;
    begins text := prefix_of(key);
    per_second double precision := starts / NULLIF(extract(epoch FROM per), 0);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    IF begins IS NOT NULL THEN
        INSERT INTO key_group AS g (prefix, rate) VALUES (begins, per_second)
            ON CONFLICT ON CONSTRAINT key_group_pkey DO UPDATE SET rate = excluded.rate;
        PERFORM group_is_set(begins);
    ELSIF per_second IS NULL THEN
        UPDATE key_limit k SET rate = NULL WHERE k.key = limit_key_rate.key AND NOT k.is_grouped;
        DELETE FROM key_limit k WHERE k.key = limit_key_rate.key AND NOT k.is_grouped AND k.max_running = 1;
    ELSE
        INSERT INTO key_limit AS k (key, rate) VALUES (limit_key_rate.key, per_second)
            ON CONFLICT ON CONSTRAINT key_limit_pkey
            DO UPDATE SET rate = excluded.rate, max_running = CASE WHEN k.is_grouped THEN 1 ELSE k.max_running END, is_grouped = false;
    END IF;
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

-- Waits for another claim that has taken tokens: for as long as a worker that is refused would leave the queue alone.
CREATE FUNCTION await_bucket(queue text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET lock_timeout = '20ms' AS $$
BEGIN
    PERFORM FROM bucket b WHERE b.queue = await_bucket.queue FOR NO KEY UPDATE;
EXCEPTION WHEN lock_not_available THEN
    NULL;
END $$;

-- How many jobs of a key with a rate may start now: its bucket holds two seconds' worth and one, since the leading scheduler looks at
-- it once a second. Of one without a rate: any number.
CREATE FUNCTION key_tokens(l key_limit, at timestamptz) RETURNS double precision
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN (l).rate IS NULL THEN 'Infinity'
            ELSE LEAST(1 + 2 * (l).rate, (l).tokens + (l).rate * GREATEST(0, extract(epoch FROM at - (l).filled_at))) END;

-- How many more jobs of this key may start; `job`: for this one.
CREATE FUNCTION key_places(wanted text, job bigint DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN COALESCE((SELECT CASE WHEN key_tokens(l, statement_timestamp()) < l.max_running
                                 THEN LEAST(floor(key_tokens(l, statement_timestamp()))::integer,
                                            l.max_running - (SELECT count(*)::integer FROM exclusive e WHERE e.key = wanted))
                                 ELSE l.max_running - (SELECT count(*)::integer FROM exclusive e WHERE e.key = wanted) END
                       FROM key_limit l WHERE l.key = wanted),
                    1 - (SELECT count(*)::integer FROM exclusive e WHERE e.key = wanted)) - is_kept(wanted, job);
END $$;

-- The jobs that come next of each key, as many as it is named times: due, available, of a queue and a kind that aren't paused. Index:
-- job_exclusive, one look per priority; of those with two keys only what waits. Most keys have no other job: they are left out first.
-- Not in SQL: a function that sets something is planned anew at each call.
CREATE FUNCTION next_of_keys(keys text[])
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    asked_for text[] := ARRAY(SELECT u.key FROM unnest(keys) AS u(key)
                               WHERE (SELECT true FROM job j WHERE j.exclusive_key = u.key AND j.second_key IS NULL LIMIT 1)
                                  OR (SELECT true FROM key_waiting w WHERE w.key = u.key AND w.other_key > '' LIMIT 1));
BEGIN
    IF cardinality(asked_for) = 0 THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT n.* FROM (SELECT u.key, count(*) AS places FROM unnest(asked_for) AS u(key)
                      WHERE NOT EXISTS (SELECT FROM key_limit l WHERE l.key = u.key AND key_tokens(l, statement_timestamp()) < 1)
                      GROUP BY u.key) AS k
     CROSS JOIN LATERAL (
        SELECT f.* FROM generate_series((SELECT min(j.priority)::integer FROM job j WHERE j.exclusive_key = k.key AND j.second_key IS NULL),
                                        (SELECT max(j.priority)::integer FROM job j WHERE j.exclusive_key = k.key AND j.second_key IS NULL)) AS p
         CROSS JOIN LATERAL (
            SELECT j.id, j.queue, j.kind, j.priority, j.ready_at FROM job j
             WHERE j.exclusive_key = k.key AND j.second_key IS NULL AND j.priority = p AND j.ready_at <= statement_timestamp() AND j.state = 'available'
               AND NOT EXISTS (SELECT FROM queue q WHERE q.name = j.queue AND q.paused)
               AND NOT EXISTS (SELECT FROM kind t WHERE t.name = j.kind AND t.paused)
             ORDER BY j.ready_at, j.id LIMIT k.places) AS f
        UNION ALL
        SELECT l.id, l.queue, l.kind, l.priority, l.ready_at FROM first_of_lines(k.key, k.places, 1000) AS l
         WHERE (SELECT true FROM key_waiting w WHERE w.key = k.key AND w.other_key > '' LIMIT 1)
         ORDER BY 4, 5, 1 LIMIT k.places) AS n;
END $$;

-- By the claim that refuses them: those of the jobs with a key that have not won. What it has left out because somebody had locked it
-- waits, too.
CREATE FUNCTION keep_waiting(ids bigint[], won bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO key_waiting (key, other_key, priority, ready_at, job_id)
    SELECT k.key, COALESCE(k.other_key, ''), j.priority, j.ready_at, j.id
      FROM job j
     CROSS JOIN LATERAL (VALUES (j.exclusive_key, j.second_key), (j.second_key, j.exclusive_key)) AS k(key, other_key)
     WHERE j.id = ANY (ids) AND j.id <> ALL (COALESCE(won, '{}')) AND k.key IS NOT NULL AND j.state = 'available'
     ORDER BY 1, 2, 3, 4, 5 ON CONFLICT DO NOTHING;
END $$;

-- Those that come next of each key, as many as it is named times, of those that wait; they wait no more.
CREATE FUNCTION next_waiting(keys text[])
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    asked_for text[] := keys;
    last_lines text[]; -- of each: NULL: nobody waits
    have_lines text[]; -- those for which jobs with two keys wait
    taken bigint[];
    taken_keys text[];
BEGIN
    LOOP
        last_lines := ARRAY(SELECT (SELECT w.other_key FROM key_waiting w WHERE w.key = u.key ORDER BY w.other_key DESC LIMIT 1)
                              FROM unnest(asked_for) AS u(key));
        EXIT WHEN cardinality(array_remove(last_lines, NULL)) = 0;
        SELECT array_agg(u.key) FILTER (WHERE u.line = ''), array_agg(u.key) FILTER (WHERE u.line > '') INTO asked_for, have_lines
          FROM unnest(asked_for, last_lines) AS u(key, line);
        IF have_lines IS NOT NULL THEN
            RETURN QUERY SELECT n.* FROM next_of_lines(have_lines) AS n;
        END IF;
        WITH gone AS (
            DELETE FROM key_waiting
             WHERE ctid = ANY (ARRAY(
                SELECT n.at FROM (SELECT u.key, count(*) AS places FROM unnest(asked_for) AS u(key)
                                   WHERE NOT EXISTS (SELECT FROM key_limit l
                                                      WHERE l.key = u.key AND key_tokens(l, statement_timestamp()) < 1)
                                   GROUP BY u.key) AS k
                 CROSS JOIN LATERAL (SELECT w.ctid AS at FROM key_waiting w WHERE w.key = k.key AND w.other_key = ''
                                      ORDER BY w.priority, w.ready_at, w.job_id LIMIT k.places FOR UPDATE SKIP LOCKED) AS n))
            RETURNING job_id, key
        )
        SELECT array_agg(g.job_id), array_agg(g.key) INTO taken, taken_keys FROM gone g;
        RETURN QUERY
        SELECT j.id, j.queue, j.kind, j.priority, j.ready_at FROM unnest(taken, taken_keys) AS t(id, key)
          JOIN job j ON j.id = t.id AND j.exclusive_key = t.key
         WHERE j.state = 'available' AND j.ready_at <= statement_timestamp()
           AND NOT EXISTS (SELECT FROM queue q WHERE q.name = j.queue AND q.paused)
           AND NOT EXISTS (SELECT FROM kind k WHERE k.name = j.kind AND k.paused);
        -- In place of those that don't wait any more.
        asked_for := ARRAY(SELECT t.key FROM unnest(taken, taken_keys) AS t(id, key)
                            WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = t.id AND j.exclusive_key = t.key AND j.state = 'available'));
    END LOOP;
END $$;

-- With each full pass, which pushes the hints of all that wait.
CREATE FUNCTION forget_waiting() RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM key_waiting
     WHERE ctid = ANY (ARRAY(SELECT w.ctid FROM key_waiting w
                              WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = w.job_id AND j.state = 'available')
                                FOR UPDATE SKIP LOCKED));
    PERFORM tidy_groups();
    PERFORM give_up_places();
END $$;

-- Frees what these runs have held, where they run no more: called for jobs whose `flags` have 2 or 4, after the statements that end
-- them, in their transaction. `key_rows`, `places`: where claim_limited() said that it is, as rows of `exclusive` and `slot`; NULL: the
-- run holds no such thing, (0,0): nobody knows. What is not found there is looked for by its fence, which belongs to one run. Returns
-- the jobs that this makes claimable: push their hints.
CREATE FUNCTION free_ended(ids bigint[], fences bigint[], key_rows tid[], places tid[])
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    held bigint := cardinality(array_remove(places, NULL));
    found bigint;
    freed text[] := '{}';
    freed_late text[];
BEGIN
    IF held > 0 THEN
        UPDATE slot s SET job_id = 0, fence = 0 FROM unnest(ids, fences, places) AS r(id, fence, at)
         WHERE s.ctid = r.at AND s.fence = r.fence
           AND NOT EXISTS (SELECT FROM job j WHERE j.id = r.id AND j.fence = r.fence AND j.state = 'running');
        GET DIAGNOSTICS found = ROW_COUNT;
        IF found < held THEN
            UPDATE slot s SET job_id = 0, fence = 0
             WHERE s.fence = ANY (fences) AND s.fence <> 0
               AND NOT EXISTS (SELECT FROM job j WHERE j.id = s.job_id AND j.fence = s.fence AND j.state = 'running');
        END IF;
    END IF;
    held := cardinality(array_remove(key_rows, NULL));
    IF held > 0 THEN
        WITH gone AS (
            DELETE FROM exclusive e USING unnest(ids, fences, key_rows) AS r(id, fence, at)
             WHERE e.ctid = r.at AND e.fence = r.fence
               AND NOT EXISTS (SELECT FROM job j WHERE j.id = r.id AND j.fence = r.fence AND j.state = 'running')
            RETURNING e.key
        )
        SELECT COALESCE(array_agg(g.key), '{}') INTO freed FROM gone g;
        IF cardinality(freed) < held THEN
            WITH gone AS (
                DELETE FROM exclusive e
                 WHERE e.fence = ANY (fences)
                   AND NOT EXISTS (SELECT FROM job j WHERE j.id = e.job_id AND j.fence = e.fence AND j.state = 'running')
                RETURNING e.key
            )
            SELECT array_agg(g.key) INTO freed_late FROM gone g;
            freed := freed || freed_late;
        END IF;
        RETURN QUERY SELECT n.* FROM next_waiting(freed) AS n;
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
    PERFORM forget_waiting();
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
    SELECT j.id, j.queue, j.kind, j.priority, j.ready_at FROM job j -- it may wait in no line any more
     WHERE j.id = ANY (ids) AND j.second_key IS NOT NULL AND may_start(j)
    UNION
    SELECT n.* FROM next_of_keys(ARRAY(
        SELECT k.key FROM (SELECT DISTINCT u.key FROM job j CROSS JOIN LATERAL (VALUES (j.exclusive_key), (j.second_key)) AS u(key)
                            WHERE j.id = ANY (ids) AND j.state = 'available' AND u.key IS NOT NULL) AS k
          LEFT JOIN key_limit l ON l.key = k.key
         CROSS JOIN LATERAL generate_series(1, CASE WHEN l.key IS NULL THEN 1
                                                    ELSE LEAST(l.max_running, floor(key_tokens(l, statement_timestamp())))::integer END
                                               - (SELECT count(*)::integer FROM exclusive e WHERE e.key = k.key)
                                               - is_kept(k.key, NULL)))) AS n;
END $$;

-- Claims those of the jobs that job_claim leaves out, within their limits, and after the edits that waited for this attempt (flag
-- 64); `ahead`, in rising order: those of them that no runner waits for. In this order, so that it neither deadlocks nor leaks: lock
-- the jobs, lock tokens and free places, take the keys in their order, change only who has won. What somebody has locked is left out,
-- but whoever is ending the run that holds a key is waited for: then it is ours. `key_row`, `place`, `second_row`: for free_ended().
CREATE FUNCTION claim_limited(ids bigint[], worker uuid, kinds text[], ahead bigint[])
RETURNS TABLE (id bigint, fence bigint, created_at timestamptz, ready_at timestamptz, attempted_at timestamptz, attempt integer,
               crashes integer, generation integer, max_attempts integer, priority smallint, flags smallint, queue text, kind text,
               args jsonb, timeout interval, tags text[], metadata jsonb, backoff text, grace interval, key_row tid, place tid,
               second_row tid)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    c record;
    edited job;
    there_are record; -- jobs among them that begin too late, limits by pattern, places that are kept, limits of kinds
    has_edits boolean;
    chosen bigint[]; -- jobs that may be claimed, in the order in which they are due,
    chosen_keys text[]; -- and their columns
    chosen_limits integer[]; -- places of the key; NULL: it has none
    chosen_turns integer[]; -- among the jobs of the key
    chosen_queues text[];
    has_two boolean; -- some of them have two keys, or a place is kept for one that has
    second_keys text[];
    twofold bigint[]; -- who has two
    chosen_fences bigint[]; -- theirs
    have_places bigint[] := '{}'; -- of keys with several
    second_rows tid[];
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
    SELECT EXISTS (SELECT FROM job_deadline d WHERE d.job_id = ANY (ids) AND d.expires_at <= clock_timestamp()) AS expired,
           EXISTS (SELECT FROM key_group) AS groups, EXISTS (SELECT FROM key_reserved) AS kept,
           EXISTS (SELECT FROM kind k WHERE k.limited) OR EXISTS (SELECT FROM job j WHERE j.id = ANY (ids) AND j.flags & 4096 <> 0) AS kinds
      INTO there_are;
    IF there_are.expired THEN
        PERFORM expire(ids);
    END IF;
    IF there_are.kinds THEN
        PERFORM key_kinds(ids);
    END IF;
    IF there_are.groups THEN
        PERFORM group_keys(ids);
    END IF;
    LOOP
        SELECT array_agg(f.id) FILTER (WHERE f.may_start), array_agg(f.key) FILTER (WHERE f.may_start),
               array_agg(f.key_limit) FILTER (WHERE f.may_start), array_agg(f.turn) FILTER (WHERE f.may_start),
               array_agg(f.queue) FILTER (WHERE f.may_start), bool_or(f.flags & 64 <> 0), bool_or(f.key_rate IS NOT NULL),
               bool_or(f.second_key IS NOT NULL) FILTER (WHERE f.may_start)
          INTO chosen, chosen_keys, chosen_limits, chosen_turns, chosen_queues, has_edits, has_rates, has_two
          FROM (SELECT t.*, t.may_try AND (t.key IS NULL OR t.turn <= t.key_limit OR t.second_key IS NOT NULL) AS may_start
                  FROM (SELECT l.*, row_number() OVER (PARTITION BY l.only_key, l.may_try
                                                       ORDER BY l.priority, l.ready_at, l.id)::integer AS turn
                          FROM (SELECT j.id, j.exclusive_key AS key, j.second_key, j.priority, j.ready_at, j.queue, j.flags,
                                       CASE WHEN j.second_key IS NULL THEN j.exclusive_key END AS only_key, m.rate AS key_rate,
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

    has_two := (has_two OR there_are.kept) AND chosen IS NOT NULL;
    IF has_two THEN
        second_keys := ARRAY(SELECT j.second_key FROM unnest(chosen) WITH ORDINALITY AS u(id, at) JOIN job j ON j.id = u.id ORDER BY u.at);
        has_rates := has_rates OR EXISTS (SELECT FROM key_limit l WHERE l.key = ANY (second_keys) AND l.rate IS NOT NULL);
    END IF;
    IF has_rates THEN
        FOR c IN SELECT l.key FROM (SELECT DISTINCT u.key FROM unnest(chosen_keys || second_keys) AS u(key)) AS u JOIN key_limit l ON l.key = u.key
                  WHERE l.rate IS NOT NULL ORDER BY l.key LOOP
            found_at := clock_timestamp();
            SELECT key_tokens(l, found_at) INTO found_tokens FROM key_limit l WHERE l.key = c.key FOR NO KEY UPDATE SKIP LOCKED;
            rated := array_append(rated, c.key);
            key_left := array_append(key_left, COALESCE(found_tokens, 0)); -- none: somebody else is at it
            key_looked_at := array_append(key_looked_at, found_at);
        END LOOP;
    END IF;
    IF has_two THEN
        SELECT array_agg(u.id), array_agg(u.key), array_agg(u.key_limit), array_agg(u.queue) INTO chosen, chosen_keys, chosen_limits, chosen_queues
          FROM unnest(chosen, chosen_keys, chosen_limits, chosen_queues, fit_keys(chosen, chosen_keys, second_keys, rated, key_left))
               AS u(id, key, key_limit, queue, fits) WHERE u.fits;
    ELSIF has_rates THEN
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

    -- The second key of a job is taken as if it were of one more job, under the same fence.
    IF has_two THEN
        SELECT array_agg(j.id) AS jobs, array_agg(j.second_key) AS keys, array_agg(COALESCE(l.max_running, 1)) AS limits,
               array_agg(nextval('fence')) AS fences INTO c
          FROM job j LEFT JOIN key_limit l ON l.key = j.second_key WHERE j.id = ANY (chosen) AND j.second_key IS NOT NULL;
        twofold := c.jobs;
        chosen_fences := ARRAY(SELECT c.fences[array_position(twofold, u.id)] FROM unnest(chosen) WITH ORDINALITY AS u(id, at) ORDER BY u.at)
                         || c.fences;
        chosen := chosen || twofold;
        chosen_keys := chosen_keys || c.keys;
        chosen_limits := chosen_limits || c.limits;
    END IF;
    -- Keys with one place in their order, then those with several: whoever waits for another can't be waited for by him. (EXISTS would be
    -- a join, and read all of a table that was empty when it was planned.)
    WITH single AS (
        INSERT INTO exclusive (key, job_id, fence)
        SELECT u.key, u.id, COALESCE(u.fence, nextval('fence'))
          FROM unnest(chosen, chosen_keys, chosen_limits, chosen_fences) AS u(id, key, key_limit, fence)
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
        SELECT t.* INTO c FROM take_key_places(chosen, chosen_keys, chosen_limits, chosen_fences, have_places) AS t;
        have_places := have_places || c.taken;
        won := won || c.taken;
        fences := fences || c.fences;
        key_rows := key_rows || c.key_rows;
        EXIT WHEN cardinality(c.taken) = c.offered;
    END LOOP;
    IF has_two THEN
        SELECT b.* INTO won, fences, key_rows, second_rows FROM both_or_none(won, fences, key_rows, twofold) AS b;
        PERFORM leave_lines(won);
    END IF;

    IF has_rates OR cardinality(limited) > 0 THEN
        SELECT array_agg(w.id), array_agg(w.fence), array_agg(w.at), array_agg(w.second_at) INTO won, fences, key_rows, second_rows
          FROM (SELECT w.* FROM unnest(won, fences, key_rows, second_rows) AS w(id, fence, at, second_at) ORDER BY w.id) AS w;
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
    IF has_two THEN
        PERFORM keep_places(ids, won);
    END IF;
    RETURN QUERY
    UPDATE job j
       SET state = 'running', attempt = j.attempt + 1, fence = w.fence, worker_id = worker, attempted_at = clock_timestamp(),
           -- Its end makes its worker try the next one.
           flags = CASE WHEN j.queue = ANY (limited) THEN j.flags | 4 ELSE j.flags & ~4 END
      FROM unnest(won, fences, key_rows, second_rows) AS w(id, fence, at, second_at)
     WHERE j.id = w.id
    RETURNING j.id, j.fence, j.created_at, j.ready_at, j.attempted_at, j.attempt, j.crashes, j.generation, j.max_attempts, j.priority,
              j.flags, j.queue, j.kind, j.args, j.timeout, j.tags, j.metadata, j.backoff, j.grace, w.at,
              CASE WHEN placed[width_bucket(j.id, placed)] = j.id THEN places[width_bucket(j.id, placed)] END, w.second_at;
END $$;

REVOKE ALL ON FUNCTION limit_key, limit_key_rate, free_slots, await_bucket, key_tokens, key_places, next_of_keys,
    keep_waiting, next_waiting, forget_waiting, free_ended, free_leaked, next_free, claim_limited FROM PUBLIC;
GRANT EXECUTE ON FUNCTION limit_key, limit_key_rate TO claimd_admin;
GRANT EXECUTE ON FUNCTION key_tokens TO claimd_admin, claimd_reader;
GRANT EXECUTE ON FUNCTION key_places, free_ended, free_leaked, next_free, claim_limited TO claimd_worker;
GRANT SELECT ON exclusive, key_limit, slot, bucket, key_waiting TO claimd_admin, claimd_reader;
GRANT SELECT ON exclusive TO claimd_worker;

-- ---- down ----
DROP FUNCTION claim_limited, next_free, free_leaked, free_ended, forget_waiting, next_waiting, keep_waiting, next_of_keys, key_places,
    key_tokens, await_bucket, free_slots, limit_key_rate, limit_key;
DROP TABLE key_waiting, bucket, slot, key_limit, exclusive;
