-- SPDX-License-Identifier: Apache-2.0
-- Maps: one job for each row of a query. A row has one open job at most, since its job has the unique key map:NAME:KEY; once it has
-- completed, its entry in map_done prevents another. Jobs of a map with a limit have the exclusive key map:NAME, whose places are the limit.

-- Returns the map of this name and locks its row. CL003 if there is none.
CREATE OR REPLACE FUNCTION find_map(name text) RETURNS map
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    found map;
BEGIN
    SELECT * INTO found FROM map m WHERE m.name = find_map.name FOR NO KEY UPDATE;
    IF found.id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('map %s not found', COALESCE(name, 'NULL'));
    END IF;
    RETURN found;
END $$;

CREATE OR REPLACE FUNCTION is_limited(m map) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN (m).max_running IS NOT NULL OR (m).rate IS NOT NULL OR (m).paused_at IS NOT NULL;

-- Applies the limits of a map to its exclusive key, which has no places while the map is paused, and to its due jobs.
CREATE OR REPLACE FUNCTION apply_map_limits(m map) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    held text := 'map:' || m.name;
BEGIN
    PERFORM limit_key_rate(held, split_part(m.rate, '/', 1)::integer, COALESCE(('1' || split_part(m.rate, '/', 2))::interval, '1 s'));
    IF m.paused_at IS NULL THEN
        PERFORM limit_key(held, CASE WHEN m.rate IS NULL THEN m.max_running ELSE COALESCE(m.max_running, 1000) END);
    ELSE
        INSERT INTO key_limit AS k (key, max_running) VALUES (held, 0)
            ON CONFLICT ON CONSTRAINT key_limit_pkey DO UPDATE SET max_running = 0, is_grouped = false;
    END IF;
    PERFORM change_keys(m);
END $$;

CREATE OR REPLACE FUNCTION why_no_map_limits(max_running integer, rate text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM rate_of(to_jsonb(rate), 'rate');
    RETURN CASE WHEN max_running NOT BETWEEN 1 AND 1000 THEN 'max_running: must be 1 to 1000' END;
END $$;

-- Compares a call of map_begin() with the existing map of that name. Returns why the call is refused, or NULL.
CREATE OR REPLACE FUNCTION why_another_map(m map, query text, key text, kind text, template jsonb) RETURNS text
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT CASE WHEN (m).query <> query THEN format('map %s has another query: %s', (m).name, (m).query)
                WHEN (m).key <> key THEN format('map %s has another key: %s', (m).name, (m).key)
                WHEN (m).kind <> kind THEN format('map %s has another kind: %s', (m).name, (m).kind)
                WHEN (m).template IS DISTINCT FROM template THEN format('map %s has another command: %s', (m).name, (m).template) END
$$;

-- Makes a map. If it exists and was loaded or cancelled, begins another pass over its query, which skips rows that are open or have
-- completed; otherwise its loading continues after last_key. NULL for `max_running`, `rate` or `into_table` leaves it as it is; a new map
-- has no limit and no table.
CREATE OR REPLACE FUNCTION map_begin(name text, query text, key text, kind text, template jsonb, queue text, max_running integer, rate text,
                          into_table text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    m map;
    is_new boolean;
    wrong text := CASE WHEN (map_begin.name ~ '^[A-Za-z0-9][A-Za-z0-9._-]*$' AND octet_length(map_begin.name) <= 64) IS NOT TRUE
                       THEN 'name: must be letters, digits, ., _ and -, at most 64, and begin with a letter or digit'
                       ELSE COALESCE(why_no_kind(map_begin.kind), why_no_queue(map_begin.queue),
                                     why_no_map_limits(map_begin.max_running, map_begin.rate)) END;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    PERFORM require_program(24); -- older programs don't record the end of a map's job whose kind keeps none
    INSERT INTO map (name, query, key, kind, template, queue, max_running, rate, into_table, created_by)
    VALUES (map_begin.name, map_begin.query, map_begin.key, map_begin.kind, map_begin.template, map_begin.queue,
            map_begin.max_running, map_begin.rate, map_begin.into_table, acting_role())
        ON CONFLICT ON CONSTRAINT map_name DO NOTHING;
    is_new := FOUND;
    m := find_map(map_begin.name);
    wrong := why_another_map(m, map_begin.query, map_begin.key, map_begin.kind, map_begin.template);
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = wrong;
    END IF;
    IF is_new THEN
        INSERT INTO map_count (map_id) VALUES (m.id);
    END IF;
    IF m.loaded_at IS NOT NULL OR m.cancelled_at IS NOT NULL THEN
        m.last_key := NULL;
        m.loaded_at := NULL;
        m.cancelled_at := NULL;
        m.is_first := false;
    END IF;
    m.max_running := COALESCE(map_begin.max_running, m.max_running);
    m.rate := COALESCE(map_begin.rate, m.rate);
    m.into_table := COALESCE(map_begin.into_table, m.into_table);
    UPDATE map o SET last_key = m.last_key, loaded_at = m.loaded_at, cancelled_at = m.cancelled_at, is_first = m.is_first,
                     max_running = m.max_running, rate = m.rate, into_table = m.into_table
     WHERE o.id = m.id;
    PERFORM apply_map_limits(m);
    RETURN m.id;
END $$;

-- Returns how the rows of these keys ended last, in their order; NULL for a row that has not ended. The array is empty if no row of the
-- map has. A row that has just ended is in map_ended, and only later in map_done.
CREATE OR REPLACE FUNCTION states_of_rows(m map, keys text[]) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    prefix text := 'map:' || m.name || ':';
BEGIN
    IF NOT EXISTS (SELECT FROM map_done d WHERE d.map_id = m.id)
       AND NOT EXISTS (SELECT FROM map_ended e WHERE e.unique_key > prefix AND e.unique_key < 'map:' || m.name || ';') THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(SELECT (SELECT s.state
                           FROM (SELECT e.n, e.state FROM map_ended e WHERE e.unique_key = prefix || u.key
                                 UNION ALL
                                 SELECT d.n, d.state FROM map_done d WHERE d.map_id = m.id AND d.key = u.key) AS s
                          ORDER BY s.n DESC LIMIT 1)
                   FROM unnest(keys) WITH ORDINALITY AS u(key, place) ORDER BY u.place);
END $$;

-- Inserts the unique keys `wanted`, each for the job with the id in the same place, unless they are held. Returns the ids whose keys were
-- inserted, in ascending order.
CREATE OR REPLACE FUNCTION hold_keys(wanted text[], ids bigint[]) RETURNS bigint[]
LANGUAGE sql SET search_path = claimd, pg_catalog, pg_temp AS $$
    WITH held AS (
        INSERT INTO job_key (key, job_id, states)
        SELECT u.key, u.id, 'open' FROM unnest(wanted, ids) AS u(key, id) WHERE u.key IS NOT NULL
            ON CONFLICT ON CONSTRAINT job_key_pkey DO NOTHING
        RETURNING job_id
    )
    SELECT COALESCE(array_agg(h.job_id ORDER BY h.job_id), '{}') FROM held h
$$;

-- Likewise, and deletes keys without a job: the end of a job leaves its key behind if another transaction has locked it (job_ended()).
CREATE OR REPLACE FUNCTION hold_free_keys(wanted text[], ids bigint[]) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    won bigint[] := hold_keys(wanted, ids);
BEGIN
    IF cardinality(won) < cardinality(array_remove(wanted, NULL)) THEN
        DELETE FROM job_key k
         WHERE k.key = ANY (wanted) AND won[width_bucket(k.job_id, won)] IS DISTINCT FROM k.job_id
           AND NOT EXISTS (SELECT FROM job j WHERE j.id = k.job_id);
        IF FOUND THEN
            won := ARRAY(SELECT w.id FROM unnest(won || hold_keys(wanted, ids)) AS w(id) ORDER BY w.id);
        END IF;
    END IF;
    RETURN won;
END $$;

-- Gives the due jobs of a map its key, or takes it from them, if the map has been limited since they were made due, or is not any more.
-- Those that get it wait again, since there may be far more of them than places. Index: job_feed.
CREATE OR REPLACE FUNCTION change_keys(m map) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
    has_key boolean := is_limited(m);
BEGIN
    UPDATE job j SET scheduled_at = CASE WHEN has_key THEN job_waits() ELSE j.scheduled_at END,
                     exclusive_key = CASE WHEN has_key THEN 'map:' || m.name END,
                     flags = CASE WHEN has_key THEN j.flags | {flag.key} ELSE j.flags & ~{flag.key} END
     WHERE j.id = ANY (ARRAY(SELECT d.id FROM job d
                              WHERE d.queue = m.queue AND d.priority = 4 AND d.share = share_of('map:' || m.name)
                                AND d.ready_at < job_waits() AND d.state = 'available' AND d.share_key = 'map:' || m.name
                                AND d.flags & {flag.map} <> 0 AND (d.flags & {flag.key} <> 0) <> has_key
                                FOR NO KEY UPDATE SKIP LOCKED));
END $$;

-- Makes jobs of a map due until `wanted` of them are, and returns how many it made due. Loading inserts the jobs with the time
-- job_waits(), not due: a due job that finds no free place would be claimed and refused again and again, ahead of other jobs in its
-- queue. Jobs of a map without a limit lose their key, which would cost more than the rest of their claims. Index: job_feed,
-- job_exclusive.
CREATE OR REPLACE FUNCTION feed_map(m map, wanted bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
    lane smallint := share_of('map:' || m.name);
    keeps_key boolean := is_limited(m);
    due bigint;
    fed bigint;
BEGIN
    PERFORM change_keys(m);
    due := (SELECT count(*) FROM (SELECT FROM job j
                                   WHERE j.queue = m.queue AND j.priority = 4 AND j.share = lane AND j.ready_at <= clock_timestamp()
                                     AND j.state = 'available'
                                   LIMIT wanted) AS d);
    IF m.paused_at IS NOT NULL OR m.cancelled_at IS NOT NULL OR due >= wanted THEN
        RETURN 0;
    END IF;
    UPDATE job j SET scheduled_at = clock_timestamp(), exclusive_key = CASE WHEN keeps_key THEN j.exclusive_key END,
                     flags = CASE WHEN keeps_key THEN j.flags ELSE j.flags & ~{flag.key} END
     WHERE j.id = ANY (ARRAY(SELECT w.id FROM job w
                              WHERE w.exclusive_key = 'map:' || m.name AND w.second_key IS NULL AND w.ready_at = job_waits()
                                AND w.state = 'available'
                              ORDER BY w.priority, w.ready_at, w.id LIMIT wanted - due FOR NO KEY UPDATE SKIP LOCKED));
    GET DIAGNOSTICS fed = ROW_COUNT;
    PERFORM pg_notify('claimd', '') WHERE fed > 0 AND (SELECT hungry FROM cluster) AND may_notify(); -- as in job_inserted()
    RETURN fed;
END $$;

-- Called by the leading scheduler each second. For each map it keeps due twice as many jobs as may run (1000 without a limit), plus twice
-- as many as have ended since the last call. A map whose row is locked is being loaded, which feeds it, or changed. So a map of short jobs does not run dry: the number of due jobs doubles until they last for a second. Returns how
-- many jobs were made due.
CREATE OR REPLACE FUNCTION feed_maps() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    m map;
    c map_count;
    ended bigint;
    fed bigint := 0;
BEGIN
    FOR c IN SELECT n.* FROM map_count n JOIN map o ON o.id = n.map_id WHERE o.rows > n.completed + n.failed + n.cancelled LOOP
        SELECT o.* INTO m FROM map o WHERE o.id = c.map_id FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        ended := c.completed + c.failed + c.cancelled;
        fed := fed + feed_map(m, 2 * COALESCE(m.max_running, 1000) + 2 * GREATEST(0, ended - c.ended_before));
        UPDATE map_count n SET ended_before = ended WHERE n.map_id = c.map_id AND n.ended_before <> ended;
    END LOOP;
    RETURN fed;
END $$;

-- Loads the next rows of a map's query, as JSON objects, which follow the key `behind`. Makes a job of each row that has no open job and
-- has not completed, and stores the last key in the same transaction. A row of which no job can be made is recorded as failed.
CREATE OR REPLACE FUNCTION map_load(map bigint, behind text, keys text[], rows text[], is_last boolean,
                         OUT made bigint, OUT skipped bigint, OUT failed bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    m map;
    prefix text;
    lane smallint;
    job_flags smallint := {flag.unique|map} | exclusive_flag();
    states text[];
    why text[];
    ids bigint[];
    won bigint[];
    done bigint[];
    fresh bigint;
BEGIN
    SELECT * INTO m FROM map o WHERE o.id = map_load.map FOR NO KEY UPDATE;
    IF m.id IS NULL OR m.cancelled_at IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = CASE WHEN m.id IS NULL THEN 'the map was dropped' ELSE format('map %s was cancelled', m.name) END;
    ELSIF m.loaded_at IS NOT NULL OR m.last_key IS DISTINCT FROM behind THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('map %s is being loaded by another claimctl', m.name);
    END IF;
    prefix := 'map:' || m.name || ':';
    lane := share_of('map:' || m.name);
    IF EXISTS (SELECT FROM queue q WHERE q.name = m.queue AND q.max_open IS NOT NULL) THEN
        PERFORM take_room(m.queue, cardinality(keys));
    END IF;
    states := CASE WHEN m.is_first THEN '{}' ELSE states_of_rows(m, keys) END;
    -- Parses only rows longer than 64 KiB, since this runs for every row. Rows come from to_jsonb(), which has written out all digits of
    -- numbers, so parsing makes none much longer.
    why := ARRAY(SELECT CASE WHEN u.state = 'completed' THEN NULL
                             WHEN octet_length(prefix || u.key) > 512 THEN format('key: at most %s bytes', 512 - octet_length(prefix))
                             WHEN u.row NOT LIKE '{%' THEN format('the row has %s bytes as JSON, at most 1048576', trim('"' FROM u.row))
                             WHEN octet_length(u.row) > 65536 AND is_too_long(u.row::jsonb, 1048576)
                             THEN format('the row has %s bytes as JSON, at most 1048576', octet_length(u.row)) END
                   FROM unnest(keys, rows, states) WITH ORDINALITY AS u(key, row, state, n) ORDER BY u.n);
    failed := cardinality(array_remove(why, NULL));
    ids := ARRAY(SELECT nextval('job_id_seq') FROM unnest(keys));
    won := hold_free_keys(ARRAY(SELECT CASE WHEN u.why IS NULL AND u.state IS DISTINCT FROM 'completed' THEN prefix || u.key END
                                  FROM unnest(keys, states, why) WITH ORDINALITY AS u(key, state, why, n) ORDER BY u.n), ids);
    fresh := cardinality(won) + failed;
    -- A row may have completed since `states` was read. Now that its key is held here, that is visible: the end of a job commits before its key
    -- is free.
    IF NOT m.is_first THEN
        states := states_of_rows(m, keys);
        done := ARRAY(SELECT u.id FROM unnest(ids, states) AS u(id, state)
                       WHERE u.state = 'completed' AND won[width_bucket(u.id, won)] = u.id);
        DELETE FROM job_key k WHERE k.key = ANY (ARRAY(SELECT prefix || u.key FROM unnest(keys, ids) AS u(key, id) WHERE u.id = ANY (done)))
                                AND k.job_id = ANY (done);
        won := ARRAY(SELECT w.id FROM unnest(won) AS w(id) WHERE w.id <> ALL (done) ORDER BY w.id);
        fresh := (SELECT count(*) FROM unnest(ids, states, why) AS u(id, state, why)
                   WHERE u.state IS NULL AND (u.why IS NOT NULL OR won[width_bucket(u.id, won)] = u.id));
    END IF;
    INSERT INTO job (id, kind, args, queue, priority, share, share_key, unique_key, exclusive_key, scheduled_at, flags, metadata)
    OVERRIDING SYSTEM VALUE
    SELECT u.id, m.kind, u.row::jsonb, m.queue, 4, lane, 'map:' || m.name, prefix || u.key, 'map:' || m.name, job_waits(), job_flags,
           jsonb_build_object('map', m.name)
      FROM unnest(keys, rows, ids) AS u(key, row, id)
     WHERE won[width_bucket(u.id, won)] = u.id;
    IF failed > 0 OR NOT m.is_first THEN
        INSERT INTO map_ended (job_id, unique_key, state, error)
        SELECT CASE WHEN u.why IS NULL THEN u.id END, prefix || u.key, CASE WHEN u.why IS NOT NULL THEN 'discarded' END, u.why
          FROM unnest(keys, ids, states, why) AS u(key, id, state, why)
         WHERE u.why IS NOT NULL OR (u.state IS NOT NULL AND won[width_bucket(u.id, won)] = u.id);
    END IF;
    made := cardinality(won);
    skipped := COALESCE(cardinality(keys), 0) - made - failed;
    UPDATE map o SET rows = o.rows + fresh, last_key = COALESCE(keys[cardinality(keys)], o.last_key),
                     loaded_at = CASE WHEN is_last THEN clock_timestamp() END
     WHERE o.id = m.id;
    PERFORM look_at_kind(m.kind);
    PERFORM feed_map(m, 2 * COALESCE(m.max_running, 1000));
END $$;

-- Called by the leading scheduler. Moves at most `most` entries of map_ended to map_done and updates the counts in map_count, which
-- nothing else does. Returns how many entries it took.
CREATE OR REPLACE FUNCTION move_map_ends(most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_hashjoin = off SET enable_mergejoin = off
SET jit = off AS $$
DECLARE
    moved bigint;
BEGIN
    PERFORM FROM map_count c ORDER BY c.map_id FOR NO KEY UPDATE; -- makes one of two leaders wait for the other
    WITH ended AS MATERIALIZED (
        DELETE FROM map_ended
         WHERE ctid = ANY (ARRAY(SELECT e.ctid FROM map_ended e LIMIT most FOR UPDATE SKIP LOCKED))
        RETURNING *
    ), last AS MATERIALIZED (
        SELECT DISTINCT ON (m.id, e.unique_key)
               m.id AS map_id, substr(e.unique_key, length('map:' || m.name || ':') + 1) AS key,
               e.n, e.job_id, e.ended_at, e.attempts, e.state, e.result, e.error
          FROM ended e JOIN map m ON m.name = split_part(e.unique_key, ':', 2)
         ORDER BY m.id, e.unique_key, e.n DESC
    ), change AS MATERIALIZED ( -- a later entry may have been moved before
        SELECT l.*, d.state AS old_state
          FROM last l LEFT JOIN map_done d ON d.map_id = l.map_id AND d.key = l.key
         WHERE (d.n > l.n) IS NOT TRUE
    ), opened AS (
        DELETE FROM map_done d USING change c WHERE d.map_id = c.map_id AND d.key = c.key AND c.state IS NULL
    ), put AS (
        INSERT INTO map_done AS d (map_id, key, n, job_id, state, result, error, attempts, ended_at)
        SELECT c.map_id, c.key, c.n, c.job_id, c.state, c.result, c.error, c.attempts, c.ended_at FROM change c WHERE c.state IS NOT NULL
            ON CONFLICT ON CONSTRAINT map_done_pkey
            DO UPDATE SET n = excluded.n, job_id = excluded.job_id, state = excluded.state, result = excluded.result, error = excluded.error,
                          attempts = excluded.attempts, ended_at = excluded.ended_at
    ), counted AS (
        UPDATE map_count n
           SET completed = n.completed + s.completed, failed = n.failed + s.failed, cancelled = n.cancelled + s.cancelled
          FROM (SELECT u.map_id,
                       COALESCE(sum(u.by) FILTER (WHERE u.state = 'completed'), 0) AS completed,
                       COALESCE(sum(u.by) FILTER (WHERE u.state = 'discarded'), 0) AS failed,
                       COALESCE(sum(u.by) FILTER (WHERE u.state = 'cancelled'), 0) AS cancelled
                  FROM change c CROSS JOIN LATERAL (VALUES (c.map_id, c.state, 1), (c.map_id, c.old_state, -1)) AS u(map_id, state, by)
                 WHERE u.state IS NOT NULL
                 GROUP BY u.map_id) AS s
         WHERE n.map_id = s.map_id
    )
    SELECT count(*) INTO moved FROM ended;
    RETURN moved;
END $$;

-- Changes the limits of a map. NULL leaves one as it is, 'none' removes it. Jobs that run without a limit at that moment don't count.
CREATE OR REPLACE FUNCTION map_limit(name text, max_running text, rate text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    m map := find_map(name);
    wrong text := CASE WHEN map_limit.max_running !~ '^([0-9]{1,4}|none)$' THEN 'max_running: must be 1 to 1000, or none'
                       ELSE why_no_map_limits(NULLIF(map_limit.max_running, 'none')::integer, NULLIF(map_limit.rate, 'none')) END;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    m.max_running := NULLIF(COALESCE(map_limit.max_running, m.max_running::text), 'none')::integer;
    m.rate := NULLIF(COALESCE(map_limit.rate, m.rate), 'none');
    UPDATE map o SET max_running = m.max_running, rate = m.rate WHERE o.id = m.id;
    PERFORM apply_map_limits(m);
END $$;

-- Pauses or resumes a map. While it is paused none of its jobs start; running jobs continue, and so does loading.
CREATE OR REPLACE FUNCTION map_pause(name text, is_on boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    m map := find_map(name);
BEGIN
    m.paused_at := CASE WHEN is_on THEN COALESCE(m.paused_at, clock_timestamp()) END;
    UPDATE map o SET paused_at = m.paused_at WHERE o.id = m.id;
    PERFORM apply_map_limits(m);
END $$;

-- Returns the next open jobs of a map after the unique key `behind` (NULL: from the first), at most `most`.
CREATE OR REPLACE FUNCTION map_jobs(name text, behind text, most integer) RETURNS TABLE (unique_key text, job_id bigint)
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
    SELECT k.key, k.job_id FROM job_key k
     WHERE k.key > COALESCE(behind, 'map:' || name || ':') AND k.key < 'map:' || name || ';'
     ORDER BY k.key LIMIT most
$$;

-- Cancels a map: nothing more of it is loaded, and the next 1000 of its open jobs after the unique key `behind` are cancelled. Returns the
-- last unique key, with which the caller continues; NULL: no open jobs were left.
CREATE OR REPLACE FUNCTION map_cancel(name text, behind text, OUT last_key text, OUT jobs bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    m map := find_map(name);
    member record;
BEGIN
    UPDATE map o SET cancelled_at = clock_timestamp() WHERE o.id = m.id AND o.cancelled_at IS NULL;
    jobs := 0;
    FOR member IN SELECT * FROM map_jobs(name, behind, 1000) LOOP
        last_key := member.unique_key;
        BEGIN
            PERFORM cancel(member.job_id);
            jobs := jobs + 1;
        EXCEPTION WHEN SQLSTATE 'CL003' THEN
            NULL; -- the job has just ended
        END;
    END LOOP;
END $$;

-- Retries the jobs of the next 1000 failed or cancelled rows after the key `behind`, with the args that were read at loading. Returns the
-- last key; NULL: no such rows were left. `left_out` counts the rows without a job that can be retried.
CREATE OR REPLACE FUNCTION map_retry(name text, behind text, OUT last_key text, OUT jobs bigint, OUT left_out bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    m map := find_map(name);
    failed record;
BEGIN
    jobs := 0;
    left_out := 0;
    FOR failed IN SELECT d.key, d.job_id FROM map_done d
                   WHERE d.map_id = m.id AND d.state <> 'completed' AND (d.key > behind OR behind IS NULL)
                   ORDER BY d.key LIMIT 1000 LOOP
        last_key := failed.key;
        BEGIN
            PERFORM retry(failed.job_id);
            INSERT INTO map_ended (job_id, unique_key) VALUES (failed.job_id, 'map:' || m.name || ':' || failed.key);
            jobs := jobs + 1;
        EXCEPTION WHEN SQLSTATE 'CL002' OR SQLSTATE 'CL003' OR SQLSTATE 'CL004' THEN
            left_out := left_out + 1;
        END;
    END LOOP;
    UPDATE map o SET cancelled_at = NULL WHERE o.id = m.id AND jobs > 0;
END $$;

-- Drops a map that has no open jobs, in steps: each call deletes at most `most` entries of map_done and returns how many. The call that
-- finds none deletes the map itself and returns 0.
CREATE OR REPLACE FUNCTION map_drop(name text, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    m map := find_map(name);
    gone bigint;
BEGIN
    IF EXISTS (SELECT FROM map_jobs(name, NULL, 1000) AS k JOIN job j ON j.id = k.job_id) THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('map %s has open jobs: cancel it first', name);
    END IF;
    UPDATE map o SET cancelled_at = clock_timestamp() WHERE o.id = m.id AND o.cancelled_at IS NULL; -- stops loading
    DELETE FROM map_done WHERE ctid = ANY (ARRAY(SELECT d.ctid FROM map_done d WHERE d.map_id = m.id LIMIT most));
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone = 0 THEN
        DELETE FROM map_ended e WHERE starts_with(e.unique_key, 'map:' || m.name || ':');
        DELETE FROM map o WHERE o.id = m.id;
        DELETE FROM key_limit k WHERE k.key = 'map:' || m.name;
    END IF;
    RETURN gone;
END $$;

REVOKE ALL ON FUNCTION find_map, is_limited, change_keys, apply_map_limits, why_no_map_limits, why_another_map, states_of_rows, hold_keys, hold_free_keys, feed_map, feed_maps, map_begin, map_load, move_map_ends, map_limit,
    map_pause, map_jobs, map_cancel, map_retry, map_drop FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION map_begin, map_load, map_limit, map_pause, map_cancel, map_retry, map_drop TO claimd_admin;
