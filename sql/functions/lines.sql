-- SPDX-License-Identifier: Apache-2.0
-- Jobs that wait in line for their keys, and which of them is next.

-- Returns how many jobs of a key with a rate may start at that time: its bucket holds one token and those of two seconds, because the
-- leading scheduler looks at it once a second. Infinity for a key without a rate.
CREATE OR REPLACE FUNCTION key_tokens(l key_limit, at timestamptz) RETURNS double precision
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN (l).rate IS NULL THEN 'Infinity'
            ELSE LEAST(1 + 2 * (l).rate, (l).tokens + (l).rate * GREATEST(0, extract(epoch FROM at - (l).filled_at))) END;

-- Returns 1 if a place of this key is reserved for another job than this one, else 0.
CREATE OR REPLACE FUNCTION is_kept(wanted text, job bigint) RETURNS integer
LANGUAGE sql STABLE
RETURN (SELECT count(*)::integer FROM key_reserved r
         WHERE r.key = wanted AND r.job_id IS DISTINCT FROM job AND r.until > statement_timestamp());

-- Returns how many more jobs of this key may start. `job`: the job that asks; a place that is reserved for it counts as free.
CREATE OR REPLACE FUNCTION key_places(wanted text, job bigint DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN COALESCE((SELECT CASE WHEN key_tokens(l, statement_timestamp()) < l.max_running
                                 THEN LEAST(floor(key_tokens(l, statement_timestamp()))::integer,
                                            l.max_running - (SELECT count(*)::integer FROM exclusive e WHERE e.key = wanted))
                                 ELSE l.max_running - (SELECT count(*)::integer FROM exclusive e WHERE e.key = wanted) END
                       FROM key_limit l WHERE l.key = wanted),
                    1 - (SELECT count(*)::integer FROM exclusive e WHERE e.key = wanted)) - is_kept(wanted, job);
END $$;

-- Returns each of these keys as many times as jobs of it may start, in their order.
CREATE OR REPLACE FUNCTION free_places(keys text[]) RETURNS SETOF text
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    SELECT u.key FROM unnest(keys) WITH ORDINALITY AS u(key, n)
      LEFT JOIN key_limit l ON l.key = u.key
     CROSS JOIN LATERAL (SELECT COALESCE(l.max_running, 1) - count(*)::integer AS free FROM exclusive e WHERE e.key = u.key) AS p
     CROSS JOIN LATERAL generate_series(1, CASE WHEN l.rate IS NULL THEN p.free
                                                ELSE LEAST(p.free, floor(key_tokens(l, statement_timestamp())))::integer END
                                           - (SELECT count(*)::integer FROM key_reserved r
                                               WHERE r.key = u.key AND r.until > statement_timestamp()))
     ORDER BY u.n;
END $$;

-- True if the job has two keys, is due and not paused, and finds a free place of both keys.
CREATE OR REPLACE FUNCTION may_start(j job) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN j.state = 'available' AND j.ready_at <= statement_timestamp() AND j.second_key IS NOT NULL
       AND key_places(j.exclusive_key, j.id) > 0 AND key_places(j.second_key, j.id) > 0
       AND NOT EXISTS (SELECT FROM queue q WHERE q.name = j.queue AND q.paused)
       AND NOT EXISTS (SELECT FROM stopped_kind k WHERE k.name = j.kind);
END $$;

-- Called by the claim that refuses them: records as waiting those of the jobs with a key that have not won. A job that the claim left
-- out because its row was locked waits as well.
CREATE OR REPLACE FUNCTION keep_waiting(ids bigint[], won bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO key_waiting (key, other_key, priority, ready_at, job_id)
    SELECT k.key, COALESCE(k.other_key, ''), j.priority, j.ready_at, j.id
      FROM job j
     CROSS JOIN LATERAL (VALUES (j.exclusive_key, j.second_key), (j.second_key, j.exclusive_key)) AS k(key, other_key)
     WHERE j.id = ANY (ids) AND j.id <> ALL (COALESCE(won, '{}')) AND k.key IS NOT NULL AND j.state = 'available'
     ORDER BY 1, 2, 3, 4, 5 ON CONFLICT DO NOTHING;
END $$;

-- Called with each full pass, which pushes the hints of all waiting jobs: deletes the rows of jobs that no longer wait, and tidies
-- groups and reserved places.
CREATE OR REPLACE FUNCTION forget_waiting() RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM key_waiting
     WHERE ctid = ANY (ARRAY(SELECT w.ctid FROM key_waiting w
                              WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = w.job_id AND j.state = 'available')
                                FOR UPDATE SKIP LOCKED));
    PERFORM tidy_groups();
    PERFORM give_up_places();
END $$;

-- Returns the first jobs of the lines of a key. A line consists of the jobs that wait for the same other key; it yields no more jobs
-- than that key has places. Returns at most `most` jobs, from the first `lines` lines.
CREATE OR REPLACE FUNCTION first_of_lines(wanted text, most bigint, lines integer)
RETURNS TABLE (at tid, id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH RECURSIVE line(other_key, n) AS (
        SELECT (SELECT w.other_key FROM key_waiting w WHERE w.key = wanted AND w.other_key > '' ORDER BY w.other_key LIMIT 1), 1
        UNION ALL
        SELECT (SELECT w.other_key FROM key_waiting w WHERE w.key = wanted AND w.other_key > l.other_key ORDER BY w.other_key LIMIT 1),
               l.n + 1
          FROM line l WHERE l.other_key IS NOT NULL AND l.n < lines)
    SELECT f.* FROM line l
     CROSS JOIN LATERAL (
        SELECT w.ctid, j.id, j.queue, j.kind, j.priority, j.ready_at FROM key_waiting w JOIN job j ON j.id = w.job_id
         WHERE w.key = wanted AND w.other_key = l.other_key AND j.state = 'available' AND j.ready_at <= statement_timestamp()
           AND (wanted, l.other_key) IN ((j.exclusive_key, j.second_key), (j.second_key, j.exclusive_key)) -- it may have been edited
           AND NOT EXISTS (SELECT FROM queue q WHERE q.name = j.queue AND q.paused)
           AND NOT EXISTS (SELECT FROM stopped_kind t WHERE t.name = j.kind)
         ORDER BY w.priority, w.ready_at, w.job_id LIMIT GREATEST(0, LEAST(most, key_places(l.other_key)))) AS f
     WHERE l.other_key IS NOT NULL
     ORDER BY f.priority, f.ready_at, f.id LIMIT most;
END $$;

-- Returns the jobs that are next for each key, as many as the key is named, for keys that jobs with two keys wait for, too. These
-- jobs then wait no longer. Jobs that are missed because another session looks at the same time are found by next_of_rates().
CREATE OR REPLACE FUNCTION next_of_lines(keys text[])
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    k record;
    found_rows tid[];
    found_jobs bigint[];
    found_keys text[]; -- the other ones
    used text[] := '{}';
BEGIN
    RETURN QUERY
    SELECT j.id, j.queue, j.kind, j.priority, j.ready_at FROM job j
     WHERE j.id = ANY (ARRAY(SELECT r.job_id FROM key_reserved r WHERE r.key = ANY (keys) AND r.until > statement_timestamp()))
       AND may_start(j);
    FOR k IN SELECT u.key, count(*) AS places FROM unnest(keys) AS u(key)
              WHERE NOT EXISTS (SELECT FROM key_limit l WHERE l.key = u.key AND key_tokens(l, statement_timestamp()) < 1)
              GROUP BY u.key ORDER BY u.key LOOP
        k.places := k.places - cardinality(array_positions(used, k.key)) - is_kept(k.key, NULL);
        CONTINUE WHEN k.places <= 0;
        found_rows := ARRAY(
            SELECT n.at FROM (SELECT f.* FROM (
                                SELECT w.ctid AS at, w.priority, w.ready_at, w.job_id FROM key_waiting w JOIN job j ON j.id = w.job_id
                                 WHERE w.key = k.key AND w.other_key = '' AND j.state = 'available' AND j.ready_at <= statement_timestamp()
                                   AND j.exclusive_key = k.key AND j.second_key IS NULL
                                   AND NOT EXISTS (SELECT FROM queue q WHERE q.name = j.queue AND q.paused)
                                   AND NOT EXISTS (SELECT FROM stopped_kind t WHERE t.name = j.kind)
                                 ORDER BY w.priority, w.ready_at, w.job_id LIMIT k.places) AS f
                              UNION ALL
                              SELECT l.at, l.priority, l.ready_at, l.id FROM first_of_lines(k.key, k.places, 100) AS l) AS n
             ORDER BY n.priority, n.ready_at, n.job_id LIMIT k.places);
        WITH gone AS (
            DELETE FROM key_waiting
             WHERE ctid = ANY (ARRAY(SELECT w.ctid FROM key_waiting w WHERE w.ctid = ANY (found_rows) FOR UPDATE SKIP LOCKED))
            RETURNING job_id, other_key
        )
        SELECT array_agg(g.job_id), array_agg(g.other_key) INTO found_jobs, found_keys FROM gone g;
        used := used || found_keys;
        PERFORM leave_lines(found_jobs);
        RETURN QUERY SELECT j.id, j.queue, j.kind, j.priority, j.ready_at FROM job j WHERE j.id = ANY (found_jobs);
    END LOOP;
END $$;

-- Removes jobs with two keys from their lines, because they have won or get their hints.
CREATE OR REPLACE FUNCTION leave_lines(won bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM key_waiting
     WHERE ctid = ANY (ARRAY(
        SELECT w.ctid
          FROM job j
         CROSS JOIN LATERAL (VALUES (j.exclusive_key, j.second_key), (j.second_key, j.exclusive_key)) AS k(key, other_key)
          JOIN key_waiting w ON w.key = k.key AND w.other_key = k.other_key AND w.priority = j.priority AND w.ready_at = j.ready_at
                                AND w.job_id = j.id
         WHERE j.id = ANY (won)
           FOR UPDATE OF w SKIP LOCKED));
END $$;

-- Returns the jobs that are next for each key, as many as the key is named: due, available, in a queue that is not paused and of a
-- kind that is not stopped. Uses the index job_exclusive, one look-up per priority; of jobs with two keys, only those in key_waiting
-- are found. Most keys have no other job, so these keys are left out first. Not in SQL, because an SQL function with settings is
-- planned again at each call.
CREATE OR REPLACE FUNCTION next_of_keys(keys text[])
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
               AND NOT EXISTS (SELECT FROM stopped_kind t WHERE t.name = j.kind)
             ORDER BY j.ready_at, j.id LIMIT k.places) AS f
        UNION ALL
        SELECT l.id, l.queue, l.kind, l.priority, l.ready_at FROM first_of_lines(k.key, k.places, 1000) AS l
         WHERE (SELECT true FROM key_waiting w WHERE w.key = k.key AND w.other_key > '' LIMIT 1)
         ORDER BY 4, 5, 1 LIMIT k.places) AS n;
END $$;

-- Returns those of the waiting jobs that are next for each key, as many as the key is named; they then wait no longer.
CREATE OR REPLACE FUNCTION next_waiting(keys text[])
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
           AND NOT EXISTS (SELECT FROM stopped_kind k WHERE k.name = j.kind);
        -- In place of those that don't wait any more.
        asked_for := ARRAY(SELECT t.key FROM unnest(taken, taken_keys) AS t(id, key)
                            WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = t.id AND j.exclusive_key = t.key AND j.state = 'available'));
    END LOOP;
END $$;

-- Returns at most `most` jobs that may start by now and would otherwise wait for the next full pass. Called by the leading scheduler
-- each second. These are jobs of keys with a rate, since a job that was refused because of the rate has lost its hint; jobs with two
-- keys, since of two runs that end at the same time, and each free one of the keys, neither sees that the job may start; jobs whose
-- key got more places; and jobs whose turn has come because the one before them was cancelled. Looks at 2,000 waiting keys, or at
-- ten thousand if there are keys with a rate, whose tokens are lost after two seconds; and at the next ones in the next call.
CREATE OR REPLACE FUNCTION next_of_rates(most integer)
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    behind text := COALESCE(current_setting('claimd.rates_behind', true), '');
    keys_max integer := CASE WHEN EXISTS (SELECT FROM key_limit l WHERE l.rate IS NOT NULL) THEN 10000 ELSE 2000 END;
    seen text[];
    is_all boolean;
    free text[]; -- those of them that have free places
BEGIN
    WITH RECURSIVE hop(key, n) AS (
        SELECT (SELECT w.key FROM key_waiting w WHERE w.key > behind ORDER BY w.key LIMIT 1), 1
        UNION ALL
        SELECT (SELECT w.key FROM key_waiting w WHERE w.key > h.key ORDER BY w.key LIMIT 1), h.n + 1 FROM hop h
         WHERE h.key IS NOT NULL AND h.n < keys_max)
    SELECT array_agg(h.key ORDER BY h.n) FILTER (WHERE h.key IS NOT NULL), bool_or(h.key IS NULL) INTO seen, is_all FROM hop h;
    free := ARRAY(SELECT f.key FROM free_places(seen) AS f(key) LIMIT most);
    PERFORM set_config('claimd.rates_behind', CASE WHEN cardinality(free) = most THEN free[most]
                                                   WHEN is_all THEN '' ELSE seen[cardinality(seen)] END, false);
    RETURN QUERY
    SELECT n.* FROM next_of_keys(free) AS n
    UNION
    SELECT o.* FROM (
        SELECT j.id, j.queue, j.kind, j.priority, j.ready_at FROM key_waiting w JOIN job j ON j.id = w.job_id
         WHERE w.key = ANY (ARRAY(SELECT 'kind:' || k.name FROM kind k WHERE NOT k.limited AND 'kind:' || k.name = ANY (seen)))
           AND j.flags & {flag.kind} <> 0 AND j.state = 'available' AND j.ready_at <= statement_timestamp()
           AND NOT EXISTS (SELECT FROM queue q WHERE q.name = j.queue AND q.paused)
           AND NOT EXISTS (SELECT FROM stopped_kind t WHERE t.name = j.kind)
         ORDER BY j.priority, j.ready_at, j.id LIMIT most) AS o
    UNION
    SELECT j.id, j.queue, j.kind, j.priority, j.ready_at FROM job j
     WHERE j.id = ANY (ARRAY(SELECT r.job_id FROM key_reserved r WHERE r.until > statement_timestamp())) AND may_start(j)
     LIMIT most;
END $$;

-- Called by a worker whose jobs were refused because of a limit, after it has released their locks: returns the jobs of the same keys
-- that may be claimed by now. Their hints may have been dropped in the meantime because of those locks.
CREATE OR REPLACE FUNCTION next_free(ids bigint[])
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
        SELECT f.key FROM free_places(ARRAY(
            SELECT DISTINCT u.key FROM job j CROSS JOIN LATERAL (VALUES (j.exclusive_key), (j.second_key)) AS u(key)
             WHERE j.id = ANY (ids) AND j.state = 'available' AND u.key IS NOT NULL)) AS f(key))) AS n;
END $$;

-- Reserves places for those of the jobs that have two keys, have not won, and have been due for long; see key_reserved. Jobs that
-- have won lose their reservations.
CREATE OR REPLACE FUNCTION keep_places(ids bigint[], won bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO key_reserved AS r (key, job_id, until)
    SELECT o.key, o.id, clock_timestamp() + interval '1 min'
      FROM (SELECT DISTINCT ON (k.key) k.key, j.id
              FROM job j CROSS JOIN LATERAL (VALUES (j.exclusive_key), (j.second_key)) AS k(key)
             WHERE j.id = ANY (ids) AND j.id <> ALL (COALESCE(won, '{}')) AND j.second_key IS NOT NULL AND j.state = 'available'
               AND j.ready_at < clock_timestamp() - interval '10 s'
             ORDER BY k.key, j.id) AS o
     WHERE key_places(o.key, o.id) <= 0 OR EXISTS (SELECT FROM key_reserved m WHERE m.key = o.key AND m.job_id = o.id)
     ORDER BY o.key
        ON CONFLICT ON CONSTRAINT key_reserved_pkey DO UPDATE SET job_id = excluded.job_id, until = excluded.until
     WHERE excluded.job_id <= r.job_id OR r.until < clock_timestamp();
    DELETE FROM key_reserved
     WHERE ctid = ANY (ARRAY(SELECT r.ctid FROM key_reserved r WHERE r.job_id = ANY (won) FOR UPDATE SKIP LOCKED));
END $$;

-- Called with each full pass: deletes the reservations of jobs that no longer wait, or that no claim has tried for long.
CREATE OR REPLACE FUNCTION give_up_places() RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM key_reserved
     WHERE ctid = ANY (ARRAY(SELECT r.ctid FROM key_reserved r
                              WHERE r.until < clock_timestamp()
                                 OR NOT EXISTS (SELECT FROM job j WHERE j.id = r.job_id AND j.state = 'available')
                                FOR UPDATE SKIP LOCKED));
END $$;

REVOKE ALL ON FUNCTION key_tokens, is_kept, key_places, free_places, may_start, keep_waiting, forget_waiting, first_of_lines,
    next_of_lines, leave_lines, next_of_keys, next_waiting, next_of_rates, next_free, keep_places, give_up_places
    FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION key_tokens TO claimd_admin, claimd_reader;
GRANT EXECUTE ON FUNCTION key_places, next_free TO claimd_worker;
