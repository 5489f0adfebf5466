-- SPDX-License-Identifier: Apache-2.0
-- Limits for all keys that begin alike: with one for customer:*, each key that begins with customer: has its own. Limited keys without
-- a pattern cost nothing more. The guide: docs/guide/limits.md.

CREATE TABLE key_group (
    prefix text COLLATE "C" NOT NULL,
    max_running integer, -- of each of its keys; NULL: one
    rate double precision, -- starts per second of each; NULL: any
    CONSTRAINT key_group_pkey PRIMARY KEY (prefix),
    CONSTRAINT key_group_prefix CHECK (prefix ~ '[:/]$' AND octet_length(prefix) <= 511),
    CONSTRAINT key_group_range CHECK (max_running BETWEEN 1 AND 1000),
    CONSTRAINT key_group_rate_range CHECK (rate > 0 AND rate <= 100000)
);

-- True: a claim has made the row, of the key's group, as which it is again with the next full pass. (PostgreSQL lets no table change
-- whose rows a function with a parsed body takes, from 15.20 on.)
DROP FUNCTION key_tokens;
ALTER TABLE key_limit ADD COLUMN is_grouped boolean NOT NULL DEFAULT false;
CREATE FUNCTION key_tokens(l key_limit, at timestamptz) RETURNS double precision
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN (l).rate IS NULL THEN 'Infinity'
            ELSE LEAST(1 + 2 * (l).rate, (l).tokens + (l).rate * GREATEST(0, extract(epoch FROM at - (l).filled_at))) END;

-- Of those that a key begins with the longest.
CREATE FUNCTION group_of(key text) RETURNS key_group
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT g.* FROM key_group g WHERE starts_with(group_of.key, g.prefix) ORDER BY length(g.prefix) DESC LIMIT 1
$$;

-- By the claim, before it looks at limits: rows for those of the jobs' keys that are in a group and have none. A bucket starts full. In
-- the order of the keys: of two claims with the same new ones one waits for the other's commit.
CREATE FUNCTION group_keys(ids bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    INSERT INTO key_limit (key, max_running, rate, tokens, is_grouped)
    SELECT k.key, COALESCE(g.max_running, 1), g.rate, COALESCE(1 + 2 * g.rate, 1), true
      FROM (SELECT DISTINCT j.exclusive_key AS key FROM job j
             WHERE j.id = ANY (ids) AND j.exclusive_key IS NOT NULL
               AND (SELECT l.max_running FROM key_limit l WHERE l.key = j.exclusive_key) IS NULL) AS k
     CROSS JOIN LATERAL (SELECT * FROM key_group o WHERE starts_with(k.key, o.prefix) ORDER BY length(o.prefix) DESC LIMIT 1) AS g
     WHERE g.max_running > 1 OR g.rate IS NOT NULL
     ORDER BY k.key COLLATE "C"
        ON CONFLICT DO NOTHING;
END $$;

-- Rows that claims have made become what their groups say now.
CREATE FUNCTION follow_groups(prefix text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    UPDATE key_limit l SET max_running = COALESCE(n.max_running, 1), rate = n.rate
      FROM (SELECT k.key, g.max_running, g.rate
              FROM key_limit k
              LEFT JOIN LATERAL (SELECT * FROM key_group o WHERE starts_with(k.key, o.prefix) ORDER BY length(o.prefix) DESC LIMIT 1) AS g
                ON true
             WHERE k.is_grouped AND starts_with(k.key, follow_groups.prefix)
               AND (k.max_running, k.rate) IS DISTINCT FROM (COALESCE(g.max_running, 1), g.rate)) AS n
     WHERE l.key = n.key AND l.is_grouped;
END $$;

-- Of keys that nobody uses the rows go, once their bucket is full: as which one without a row starts.
CREATE FUNCTION tidy_groups() RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    PERFORM follow_groups('');
    DELETE FROM key_limit
     WHERE ctid = ANY (ARRAY(SELECT l.ctid FROM key_limit l
                              WHERE l.is_grouped AND (l.rate IS NULL OR key_tokens(l, clock_timestamp()) >= 1 + 2 * l.rate)
                                AND NOT EXISTS (SELECT FROM job j WHERE j.exclusive_key = l.key)
                                AND NOT EXISTS (SELECT FROM exclusive e WHERE e.key = l.key)
                                FOR UPDATE SKIP LOCKED));
END $$;

-- ---- what operators say ----
-- The prefix of a pattern, such as customer:* or a/b/*; NULL: it is a key.
CREATE FUNCTION prefix_of(key text) RETURNS text
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN key ~ '[:/]\*$' THEN left(key, -1) END;

CREATE FUNCTION group_is_set(prefix text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM key_group g WHERE g.prefix = group_is_set.prefix AND g.max_running IS NULL AND g.rate IS NULL;
    PERFORM follow_groups(prefix);
END $$;

-- NULL: as if nothing had been said, so one at a time, or what a pattern says. What is said of a key itself stands in place of its
-- pattern's, whole.
CREATE OR REPLACE FUNCTION limit_key(key text, max_running integer) RETURNS void
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
CREATE OR REPLACE FUNCTION limit_key_rate(key text, starts integer, per interval DEFAULT '1 s') RETURNS void
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
-- As in 0007, but for the groups.
CREATE OR REPLACE FUNCTION forget_waiting() RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM key_waiting
     WHERE ctid = ANY (ARRAY(SELECT w.ctid FROM key_waiting w
                              WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = w.job_id AND j.state = 'available')
                                FOR UPDATE SKIP LOCKED));
    PERFORM tidy_groups();
END $$;

-- What may start by now of keys with a rate, `most` jobs at most. For the leading scheduler, each second: whoever was refused for the
-- rate has dropped the hint. It looks at ten thousand keys that wait, and at the next ones the next time.
CREATE OR REPLACE FUNCTION next_of_rates(most integer)
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    behind text := COALESCE(current_setting('claimd.rates_behind', true), '');
    seen text[];
    is_all boolean;
BEGIN
    WITH RECURSIVE hop(key, n) AS (
        SELECT (SELECT w.key FROM key_waiting w WHERE w.key > behind ORDER BY w.key LIMIT 1), 1
        UNION ALL
        SELECT (SELECT w.key FROM key_waiting w WHERE w.key > h.key ORDER BY w.key LIMIT 1), h.n + 1 FROM hop h
         WHERE h.key IS NOT NULL AND h.n < 10000)
    SELECT array_agg(h.key ORDER BY h.n) FILTER (WHERE h.key IS NOT NULL), bool_or(h.key IS NULL) INTO seen, is_all FROM hop h;
    PERFORM set_config('claimd.rates_behind', CASE WHEN is_all THEN '' ELSE seen[cardinality(seen)] END, false);
    RETURN QUERY
    SELECT n.* FROM next_of_keys(ARRAY(
        SELECT l.key FROM unnest(seen) AS u(key) JOIN key_limit l ON l.key = u.key
         CROSS JOIN LATERAL generate_series(1, key_places(l.key))
         WHERE l.rate IS NOT NULL)) AS n
     LIMIT most;
END $$;

-- As in 0020, but for group_keys().
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
    IF EXISTS (SELECT FROM key_group) THEN
        PERFORM group_keys(ids);
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

REVOKE ALL ON FUNCTION group_of, group_keys, follow_groups, tidy_groups, prefix_of, group_is_set FROM PUBLIC;
REVOKE ALL ON FUNCTION key_tokens FROM PUBLIC;
GRANT EXECUTE ON FUNCTION group_of, key_tokens TO claimd_admin, claimd_reader;
GRANT SELECT ON key_group TO claimd_admin, claimd_reader;
