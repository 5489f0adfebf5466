-- SPDX-License-Identifier: Apache-2.0
-- At most so many running jobs of a queue, over the whole fleet: a place is a row of `slot`, taken and given back in the commits that
-- begin and end a run.
ALTER TABLE queue
    ADD COLUMN max_running integer, -- NULL: as many as there are runners
    ADD COLUMN limited boolean NOT NULL DEFAULT false, -- its jobs are claimed by claim_limited()
    ADD CONSTRAINT queue_max_running_range CHECK (max_running BETWEEN 1 AND 10000);

CREATE TABLE slot (
    queue text COLLATE "C" NOT NULL,
    n integer NOT NULL,
    job_id bigint NOT NULL DEFAULT 0,
    fence bigint NOT NULL DEFAULT 0, -- 0: free
    CONSTRAINT slot_pkey PRIMARY KEY (queue, n)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
GRANT SELECT ON slot TO claimd_admin, claimd_reader;
GRANT SELECT ON exclusive TO claimd_worker;

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
    PERFORM require_program(18); -- an older program would claim on
    INSERT INTO queue AS q (name, max_running, limited)
    VALUES (limit_queue.queue, limit_queue.max_running, limit_queue.max_running IS NOT NULL)
        ON CONFLICT (name) DO UPDATE SET max_running = excluded.max_running, limited = excluded.limited;
    INSERT INTO slot (queue, n) SELECT limit_queue.queue, g FROM generate_series(1, limit_queue.max_running) AS g
        ON CONFLICT DO NOTHING;
    DELETE FROM slot s WHERE s.queue = limit_queue.queue AND s.n > COALESCE(limit_queue.max_running, 0) AND s.fence = 0;
END $$;

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

CREATE OR REPLACE FUNCTION free_ended(ids bigint[], fences bigint[])
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    freed text[];
BEGIN
    UPDATE slot s SET job_id = 0, fence = 0 FROM unnest(ids, fences) AS r(id, fence)
     WHERE s.job_id = r.id AND s.fence = r.fence
       AND NOT EXISTS (SELECT FROM job j WHERE j.id = r.id AND j.fence = r.fence AND j.state = 'running');
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

CREATE OR REPLACE FUNCTION free_leaked()
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

REVOKE ALL ON FUNCTION limit_queue, free_slots FROM PUBLIC;
GRANT EXECUTE ON FUNCTION limit_queue TO claimd_admin;
