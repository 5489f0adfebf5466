-- SPDX-License-Identifier: Apache-2.0
-- NULL: no limit any more. Places that are held beyond a lower limit count until their runs have ended.
CREATE OR REPLACE FUNCTION limit_queue(queue text, max_running integer) RETURNS void
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
    PERFORM require_program(18); -- an older program would claim on
    INSERT INTO queue AS q (name, max_running, limited)
    VALUES (limit_queue.queue, limit_queue.max_running, limit_queue.max_running IS NOT NULL)
        ON CONFLICT (name) DO UPDATE SET max_running = excluded.max_running, limited = excluded.limited;
    INSERT INTO slot (queue, n) SELECT limit_queue.queue, g FROM generate_series(1, limit_queue.max_running) AS g
        ON CONFLICT DO NOTHING;
    DELETE FROM slot s WHERE s.queue = limit_queue.queue AND s.n > COALESCE(limit_queue.max_running, 0) AND s.fence = 0;
END $$;

-- Claims those of the jobs that job_claim leaves out, within their limits; `ahead`: those of them that no runner waits for. In
-- this order, so that it neither deadlocks nor leaks: lock the jobs, lock free places of their queues, draw fences, take the keys in
-- their order, change only who has won. What somebody has locked is left out, but whoever is ending the run that holds a key is
-- waited for: then it is ours.
CREATE OR REPLACE FUNCTION claim_limited(ids bigint[], worker uuid, kinds text[], ahead bigint[])
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
    drawn bigint;
    chosen bigint[] := '{}'; -- four columns of the jobs that may have what their queues allow
    chosen_keys text[] := '{}';
    chosen_queues text[] := '{}';
    chosen_places integer[] := '{}';
    won integer[] := '{}'; -- which of them have their keys too
    fences bigint[] := '{}';
BEGIN
    FOR c IN SELECT j.id, j.exclusive_key AS key, j.queue, q.max_running
               FROM job j
               LEFT JOIN kind k ON k.name = j.kind
               LEFT JOIN queue q ON q.name = j.queue
              WHERE j.id = ANY (ids) AND j.state = 'available' AND j.scheduled_at <= clock_timestamp() AND j.kind = ANY (kinds)
                AND CASE WHEN j.id = ANY (ahead)
                         THEN NOT COALESCE(k.at_most_once, false) AND j.attempt + 1 < COALESCE(j.max_attempts, k.max_attempts, 25)
                         ELSE j.attempt < COALESCE(j.max_attempts, k.max_attempts, 25) END
              ORDER BY j.priority, j.ready_at, j.id
                FOR NO KEY UPDATE OF j SKIP LOCKED LOOP
        CONTINUE WHEN c.key = ANY (chosen_keys);
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
        chosen := chosen || c.id;
        chosen_keys := array_append(chosen_keys, c.key);
        chosen_queues := chosen_queues || c.queue;
        chosen_places := array_append(chosen_places, open_places[at]);
    END LOOP;
    FOR at IN SELECT u.n FROM unnest(chosen_keys) WITH ORDINALITY AS u(key, n) ORDER BY u.key COLLATE "C" LOOP
        drawn := nextval('fence');
        IF chosen_keys[at] IS NOT NULL THEN
            INSERT INTO exclusive (key, job_id, fence) VALUES (chosen_keys[at], chosen[at], drawn) ON CONFLICT DO NOTHING;
            CONTINUE WHEN NOT FOUND;
        END IF;
        won := won || at;
        fences := fences || drawn;
    END LOOP;
    UPDATE slot s SET job_id = chosen[w.at], fence = w.fence
      FROM unnest(won, fences) AS w(at, fence)
     WHERE s.queue = chosen_queues[w.at] AND s.n = chosen_places[w.at];
    RETURN QUERY
    UPDATE job j
       SET state = 'running', attempt = j.attempt + 1, fence = w.fence, worker_id = worker, attempted_at = clock_timestamp(),
           flags = CASE WHEN chosen_places[w.at] IS NULL THEN j.flags & ~4 ELSE j.flags | 4 END
      FROM unnest(won, fences) AS w(at, fence)
     WHERE j.id = chosen[w.at]
    RETURNING j.*;
END $$;

-- Whoever was refused for a limit asks this once nobody can find their locks held any more: what of the same keys is claimable by
-- now? Its hint may have been dropped meanwhile, because of those locks.
CREATE OR REPLACE FUNCTION next_free(ids bigint[])
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT n.* FROM next_of_keys(ARRAY(SELECT j.exclusive_key FROM job j
                                        WHERE j.id = ANY (ids) AND j.state = 'available'
                                          AND NOT EXISTS (SELECT FROM exclusive e WHERE e.key = j.exclusive_key))) AS n
$$;

-- The job that comes next of each exclusive key: of a kind that is paused it would hold up those of other kinds.
CREATE OR REPLACE FUNCTION next_of_keys(keys text[])
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT n.* FROM (SELECT DISTINCT u.key FROM unnest(keys) AS u(key)) AS k
     CROSS JOIN LATERAL (
        SELECT f.* FROM generate_series(0, 9) AS p
         CROSS JOIN LATERAL (
            SELECT j.id, j.queue, j.kind, j.priority, j.ready_at FROM job j
             WHERE j.exclusive_key = k.key AND j.priority = p AND j.ready_at <= statement_timestamp() AND j.state = 'available'
               AND NOT EXISTS (SELECT FROM queue q WHERE q.name = j.queue AND q.paused)
               AND NOT EXISTS (SELECT FROM kind t WHERE t.name = j.kind AND t.paused)
             ORDER BY j.ready_at, j.id LIMIT 1) AS f
         ORDER BY f.priority LIMIT 1) AS n
$$;

DROP FUNCTION limit_key(text, integer), limit_rate(text, integer, interval), key_places(text),
    take_key_place(text, integer, bigint, bigint);
UPDATE queue SET limited = max_running IS NOT NULL;
ALTER TABLE queue DROP COLUMN rate;
DROP TABLE bucket, key_limit;
