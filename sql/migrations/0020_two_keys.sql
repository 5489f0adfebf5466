-- SPDX-License-Identifier: Apache-2.0
-- Jobs with two keys: they start once both have a place, and take both or none. Jobs with one key, or none, cost nothing more. What
-- claims and ends of runs do for both is in 0007. The guide: docs/guide/limits.md.

-- A job with two keys can be overtaken for ever: each time that one key has a place, others hold the other one. So once it has been due
-- for ten seconds, it keeps a place of each key that refuses it from all others, until it has both. Of several the one with the lowest
-- id does: no two wait for each other. It is good for a minute, since nobody may serve the job any more; each claim that tries it
-- makes it a minute again.
CREATE TABLE key_reserved (
    job_id bigint NOT NULL,
    until timestamptz NOT NULL,
    key text COLLATE "C" NOT NULL,
    CONSTRAINT key_reserved_pkey PRIMARY KEY (key)
) WITH (fillfactor = 50);

-- The leading scheduler asks each second whether there are any.
CREATE INDEX key_waiting_two ON key_waiting (key) WHERE other_key <> '';

-- Is a place of this key kept for another job than this one? 1: so it is.
CREATE FUNCTION is_kept(wanted text, job bigint) RETURNS integer
LANGUAGE sql STABLE
RETURN (SELECT count(*)::integer FROM key_reserved r
         WHERE r.key = wanted AND r.job_id IS DISTINCT FROM job AND r.until > statement_timestamp());

-- Does it wait, with a place of both keys for it?
CREATE FUNCTION may_start(j job) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN j.state = 'available' AND j.ready_at <= statement_timestamp() AND j.second_key IS NOT NULL
       AND key_places(j.exclusive_key, j.id) > 0 AND key_places(j.second_key, j.id) > 0
       AND NOT EXISTS (SELECT FROM queue q WHERE q.name = j.queue AND q.paused)
       AND NOT EXISTS (SELECT FROM kind k WHERE k.name = j.kind AND k.paused);
END $$;

-- Of the jobs that wait for a key and another one the first of each line whose other key has places, `most` of them. It looks at so many
-- lines.
CREATE FUNCTION first_of_lines(wanted text, most bigint, lines integer)
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
           AND NOT EXISTS (SELECT FROM kind t WHERE t.name = j.kind AND t.paused)
         ORDER BY w.priority, w.ready_at, w.job_id LIMIT GREATEST(0, LEAST(most, key_places(l.other_key)))) AS f
     WHERE l.other_key IS NOT NULL
     ORDER BY f.priority, f.ready_at, f.id LIMIT most;
END $$;

-- The same of keys for which jobs with two keys wait as well. Those who don't come to it, because somebody else has just looked, are
-- found by next_of_rates().
CREATE FUNCTION next_of_lines(keys text[])
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
                                   AND NOT EXISTS (SELECT FROM kind t WHERE t.name = j.kind AND t.paused)
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

-- Jobs with two keys wait no more: they have won, or get their hints.
CREATE FUNCTION leave_lines(won bigint[]) RETURNS void
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

-- Which of the jobs, in their order, find a place of their keys; for claims with a job that has two, or while places are kept for some. A
-- job with one key is left out only where those before it leave it none: it waits for a run that is being ended. One with two keys also
-- where all places seem to be held: for what it took and gave back others would wait. `rated`, `key_left`: what the buckets hold of
-- the keys that have one.
CREATE FUNCTION fit_keys(jobs bigint[], keys text[], second_keys text[], rated text[], key_left double precision[]) RETURNS boolean[]
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

-- Takes free places of keys that have several, for those of the jobs (in their order) that have none yet. Where the limit was lowered,
-- places that are held beyond it count. `wanted_fences`: of those with two keys. `offered`: so many seemed to be free.
CREATE FUNCTION take_key_places(jobs bigint[], keys text[], limits integer[], wanted_fences bigint[], won bigint[],
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

-- Who lacks a key of its two gives back the other one; the rows of both are together from here on. `twofold`: who has two.
CREATE FUNCTION both_or_none(won bigint[], fences bigint[], key_rows tid[], twofold bigint[],
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

-- For those of the jobs that have two keys, have not won, and have been due for long: see key_reserved.
CREATE FUNCTION keep_places(ids bigint[], won bigint[]) RETURNS void
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

-- With each full pass: those of jobs that wait no more, or that nobody has tried for long.
CREATE FUNCTION give_up_places() RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM key_reserved
     WHERE ctid = ANY (ARRAY(SELECT r.ctid FROM key_reserved r
                              WHERE r.until < clock_timestamp()
                                 OR NOT EXISTS (SELECT FROM job j WHERE j.id = r.job_id AND j.state = 'available')
                                FOR UPDATE SKIP LOCKED));
END $$;

-- What may start by now of keys with a rate, or of those for which jobs with two keys wait, `most` jobs at most. For the leading
-- scheduler, each second: whoever was refused for the rate has dropped the hint, and of two runs that end at once, and free a key each
-- of a job that needs both, neither sees that it may start. And of kinds, whose limit may have been raised, or taken away with the key that
-- they wait for. It looks at ten thousand keys that wait, and at the next ones the next time.
CREATE FUNCTION next_of_rates(most integer)
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
        SELECT u.key FROM unnest(seen) AS u(key) LEFT JOIN key_limit l ON l.key = u.key
         CROSS JOIN LATERAL generate_series(1, key_places(u.key))
         WHERE l.rate IS NOT NULL OR starts_with(u.key, 'kind:')
            OR (SELECT true FROM key_waiting w WHERE w.key = u.key AND w.other_key > '' LIMIT 1))) AS n
    UNION
    SELECT o.* FROM (
        SELECT j.id, j.queue, j.kind, j.priority, j.ready_at FROM key_waiting w JOIN job j ON j.id = w.job_id
         WHERE w.key = ANY (ARRAY(SELECT 'kind:' || k.name FROM kind k WHERE NOT k.limited AND 'kind:' || k.name = ANY (seen)))
           AND j.flags & 4096 <> 0 AND j.state = 'available' AND j.ready_at <= statement_timestamp()
           AND NOT EXISTS (SELECT FROM queue q WHERE q.name = j.queue AND q.paused)
           AND NOT EXISTS (SELECT FROM kind t WHERE t.name = j.kind AND t.paused)
         ORDER BY j.priority, j.ready_at, j.id LIMIT most) AS o
    UNION
    SELECT j.id, j.queue, j.kind, j.priority, j.ready_at FROM job j
     WHERE j.id = ANY (ARRAY(SELECT r.job_id FROM key_reserved r WHERE r.until > statement_timestamp())) AND may_start(j)
     LIMIT most;
END $$;

REVOKE ALL ON FUNCTION is_kept, may_start, first_of_lines, next_of_lines, leave_lines, fit_keys, take_key_places, both_or_none, keep_places,
    give_up_places, next_of_rates FROM PUBLIC;
GRANT SELECT ON key_reserved TO claimd_admin, claimd_reader;

-- ---- down ----
DROP FUNCTION next_of_rates, give_up_places, keep_places, both_or_none, take_key_places, fit_keys, leave_lines, next_of_lines, first_of_lines,
    may_start, is_kept;
DROP INDEX key_waiting_two;
DROP TABLE key_reserved;
