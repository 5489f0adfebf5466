-- SPDX-License-Identifier: Apache-2.0
-- Claiming jobs with limits, and freeing what they held when they end.

-- Locks up to `most` free places of a queue and returns their numbers, so that no more places are taken than its limit allows: after
-- a limit was lowered, places that are held beyond it count. Places that another session is taking or giving back are left out.
CREATE OR REPLACE FUNCTION free_slots(queue text, max_running integer, most integer) RETURNS integer[]
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

-- Waits for another claim that has taken tokens, but no longer than a refused worker would leave the queue alone.
CREATE OR REPLACE FUNCTION await_bucket(queue text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET lock_timeout = '20ms' AS $$
BEGIN
    PERFORM FROM bucket b WHERE b.queue = await_bucket.queue FOR NO KEY UPDATE;
EXCEPTION WHEN lock_not_available THEN
    NULL;
END $$;

-- Returns which of the jobs, in their order, find a place of their keys; for claims that include a job with two keys, or while places
-- are reserved for such jobs. A job with one key is left out only if the jobs before it leave it no place; if all places are held, it
-- waits for a run that is just ending. A job with two keys is left out then as well: others would have to wait for the key that it
-- took and gave back. `rated`, `key_left`: the keys that have a bucket, and what it holds.
CREATE OR REPLACE FUNCTION fit_keys(jobs bigint[], keys text[], second_keys text[], rated text[], key_left double precision[]) RETURNS boolean[]
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    names text[]; -- in their order
    most integer[]; -- of each: how many may start if no place is held,
    free integer[]; -- as they are held now
    kept_for bigint[]; -- for whom one of these is kept; NULL: for nobody
    fits boolean[] := '{}';
    first_at integer;
    second_at integer;
BEGIN
    SELECT array_agg(n.key ORDER BY n.key), array_agg(LEAST(n.places, n.tokens) ORDER BY n.key),
           array_agg(LEAST(n.places - n.held, n.tokens) ORDER BY n.key), array_agg(n.kept_for ORDER BY n.key)
      INTO names, most, free, kept_for
      FROM (SELECT k.key, COALESCE(l.max_running, 1) AS places, floor(key_left[array_position(rated, k.key)])::integer AS tokens,
                   (SELECT count(*)::integer FROM exclusive e WHERE e.key = k.key) AS held,
                   (SELECT r.job_id FROM key_reserved r WHERE r.key = k.key AND r.until > statement_timestamp()) AS kept_for
              FROM (SELECT DISTINCT u.key COLLATE "C" AS key FROM unnest(fit_keys.keys || second_keys) AS u(key) WHERE u.key IS NOT NULL) AS k
              LEFT JOIN key_limit l ON l.key = k.key) AS n;
    FOR i IN 1..cardinality(fit_keys.keys) LOOP
        first_at := width_bucket(fit_keys.keys[i] COLLATE "C", names);
        second_at := width_bucket(second_keys[i] COLLATE "C", names);
        fits[i] := CASE WHEN first_at IS NULL THEN true
                        WHEN second_at IS NULL AND kept_for[first_at] IS NULL THEN most[first_at] > 0
                        ELSE free[first_at] > CASE WHEN kept_for[first_at] <> jobs[i] THEN 1 ELSE 0 END
                             AND (second_at IS NULL OR free[second_at] > CASE WHEN kept_for[second_at] <> jobs[i] THEN 1 ELSE 0 END) END;
        IF fits[i] AND first_at IS NOT NULL THEN
            most[first_at] := most[first_at] - 1;
            free[first_at] := free[first_at] - 1;
        END IF;
        IF fits[i] AND second_at IS NOT NULL THEN
            most[second_at] := most[second_at] - 1;
            free[second_at] := free[second_at] - 1;
        END IF;
    END LOOP;
    RETURN fits;
END $$;

-- Takes free places of keys that have several, for those of the jobs (in their order) that have none yet. After a limit was lowered,
-- places that are held beyond it count. `wanted_fences`: the fences of jobs with two keys. `offered`: how many places seemed to be free.
CREATE OR REPLACE FUNCTION take_key_places(jobs bigint[], keys text[], limits integer[], wanted_fences bigint[], won bigint[],
                                OUT taken bigint[], OUT fences bigint[], OUT key_rows tid[], OUT offered integer)
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    WITH wanted AS (
        SELECT u.key, max(u.places) AS places, array_agg(u.job ORDER BY u.at) AS jobs, array_agg(u.fence ORDER BY u.at) AS fences
          FROM unnest(take_key_places.jobs, take_key_places.keys, limits, wanted_fences) WITH ORDINALITY AS u(job, key, places, fence, at)
         WHERE u.places > 1 AND u.job <> ALL (won)
         GROUP BY u.key
    ), offer AS MATERIALIZED (
        SELECT w.key, f.n, w.jobs[f.turn] AS job_id, w.fences[f.turn] AS fence
          FROM wanted w
         CROSS JOIN LATERAL (SELECT COALESCE(array_agg(e.n), '{}') AS held, COALESCE(max(e.n), 0) AS highest
                               FROM exclusive e WHERE e.key = w.key) AS h
         CROSS JOIN LATERAL (SELECT g AS n, row_number() OVER (ORDER BY g) AS turn
                               FROM generate_series(1, LEAST(w.places, cardinality(h.held) + cardinality(w.jobs))) AS g
                              WHERE g <> ALL (h.held)
                                AND (h.highest <= w.places
                                     OR g + (SELECT count(*) FROM unnest(h.held) AS u(n) WHERE u.n > g) <= w.places)
                              ORDER BY g LIMIT cardinality(w.jobs)) AS f
    ), got AS (
        INSERT INTO exclusive (key, n, job_id, fence)
        SELECT o.key, o.n, o.job_id, COALESCE(o.fence, nextval('fence')) FROM offer o ORDER BY o.key COLLATE "C", o.n ON CONFLICT DO NOTHING
        RETURNING job_id, fence, ctid AS at
    )
    SELECT COALESCE(array_agg(g.job_id), '{}'), COALESCE(array_agg(g.fence), '{}'), COALESCE(array_agg(g.at), '{}'),
           (SELECT count(*) FROM offer)
      INTO taken, fences, key_rows, offered FROM got g;
END $$;

-- Makes jobs that lack one of their two keys give back the other one. The rows of both keys of a job are returned side by side.
-- `twofold`: the jobs that have two keys.
CREATE OR REPLACE FUNCTION both_or_none(won bigint[], fences bigint[], key_rows tid[], twofold bigint[],
                             OUT jobs bigint[], OUT job_fences bigint[], OUT first_rows tid[], OUT second_rows tid[])
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
    WITH had AS MATERIALIZED (
        SELECT w.id, min(w.fence) AS fence, array_agg(w.at) AS at, w.id = ANY (twofold) AND count(*) = 1 AS lacks_one
          FROM unnest(won, fences, key_rows) AS w(id, fence, at) GROUP BY w.id
    ), given_back AS (
        DELETE FROM exclusive WHERE ctid = ANY (ARRAY(SELECT h.at[1] FROM had h WHERE h.lacks_one))
    )
    SELECT array_agg(h.id), array_agg(h.fence), array_agg(h.at[1]), array_agg(h.at[2]) INTO jobs, job_fences, first_rows, second_rows
      FROM had h WHERE h.lacks_one IS NOT TRUE;
END $$;

-- Claims those of the jobs that job_claim leaves out, within their limits, and after applying the edits that were kept for this
-- attempt ({flag.asked}). `ahead`, in rising order: those of the jobs that no runner waits for. The order of the steps prevents
-- deadlocks and leaks: lock the jobs, lock tokens and free places, take the keys in their order, change only the winners. Locked rows
-- are left out; but if a transaction is ending the run that holds a key, the claim waits for it and then takes the key. `key_row`,
-- `place`, `second_row`: for free_ended().
CREATE OR REPLACE FUNCTION claim_limited(ids bigint[], worker uuid, kinds text[], ahead bigint[])
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
           EXISTS (SELECT FROM kind k WHERE k.limited) OR EXISTS (SELECT FROM job j WHERE j.id = ANY (ids) AND j.flags & {flag.kind} <> 0) AS kinds
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
               array_agg(f.queue) FILTER (WHERE f.may_start), bool_or(f.flags & {flag.asked} <> 0), bool_or(f.key_rate IS NOT NULL),
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
        FOR edited IN SELECT j.* FROM job j WHERE j.id = ANY (ids) AND j.flags & {flag.asked} <> 0 AND j.state = 'available' ORDER BY j.id
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
           flags = CASE WHEN j.queue = ANY (limited) THEN j.flags | {flag.place} ELSE j.flags & ~{flag.place} END
      FROM unnest(won, fences, key_rows, second_rows) AS w(id, fence, at, second_at)
     WHERE j.id = w.id
    RETURNING j.id, j.fence, j.created_at, j.ready_at, j.attempted_at, j.attempt, j.crashes, j.generation, j.max_attempts, j.priority,
              j.flags, j.queue, j.kind, j.args, j.timeout, j.tags, j.metadata, j.backoff, j.grace, w.at,
              CASE WHEN placed[width_bucket(j.id, placed)] = j.id THEN places[width_bucket(j.id, placed)] END, w.second_at;
END $$;

-- Frees what these runs have held, if they no longer run. Called for jobs whose `flags` have {flag.key|place}, after the statements
-- that end them and in the same transaction. `key_rows`, `places`: the positions in `exclusive` and `slot` that claim_limited()
-- returned. NULL: the run holds no such row; (0,0): the position is not known. A row that is not found there is looked up by its
-- fence, which belongs to one run. Returns the jobs that may now be claimed: push their hints.
CREATE OR REPLACE FUNCTION free_ended(ids bigint[], fences bigint[], key_rows tid[], places tid[])
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

-- Does the same for all keys and places that no run holds, whatever left them behind; rows that are locked are left for the next time.
CREATE OR REPLACE FUNCTION free_leaked()
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

REVOKE ALL ON FUNCTION free_slots, await_bucket, fit_keys, take_key_places, both_or_none, claim_limited, free_ended,
    free_leaked FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION claim_limited, free_ended, free_leaked TO claimd_worker;
