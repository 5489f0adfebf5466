-- SPDX-License-Identifier: Apache-2.0
-- Frees what these runs ($1 and $2 go together: job, fence) have held, where they run no more: called for jobs whose `flags` have
-- 2 or 4, after the statements that end them, in their transaction. Returns the jobs that this makes claimable: push their hints.
CREATE OR REPLACE FUNCTION free_ended(ids bigint[], fences bigint[])
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    freed text[];
BEGIN
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

-- The same for whatever is held by no run at all, whoever forgot it; rows that somebody has locked are left for the next time.
CREATE OR REPLACE FUNCTION free_leaked()
RETURNS TABLE (id bigint, queue text, kind text, priority smallint, ready_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
    freed text[];
BEGIN
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
-- this order, so that it neither deadlocks nor leaks: lock the jobs, draw fences, take the keys in their order, change only who has
-- won. A job that somebody has locked is left out. Whoever is ending the run that holds a key is waited for: then it is ours.
CREATE OR REPLACE FUNCTION claim_limited(ids bigint[], worker uuid, kinds text[], ahead bigint[])
RETURNS SETOF job
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    c record;
    taken text; -- the last key that was looked at: of the sorted ones no other may have it
    drawn bigint;
    won bigint[] := '{}';
    fences bigint[] := '{}';
BEGIN
    FOR c IN SELECT j.id, j.exclusive_key AS key
               FROM job j
               LEFT JOIN kind k ON k.name = j.kind
              WHERE j.id = ANY (ids) AND j.state = 'available' AND j.scheduled_at <= clock_timestamp() AND j.kind = ANY (kinds)
                AND CASE WHEN j.id = ANY (ahead)
                         THEN NOT COALESCE(k.at_most_once, false) AND j.attempt + 1 < COALESCE(j.max_attempts, k.max_attempts, 25)
                         ELSE j.attempt < COALESCE(j.max_attempts, k.max_attempts, 25) END
              ORDER BY j.exclusive_key, j.priority, j.ready_at, j.id
                FOR NO KEY UPDATE OF j SKIP LOCKED LOOP
        CONTINUE WHEN c.key = taken;
        taken := c.key;
        drawn := nextval('fence');
        IF c.key IS NOT NULL THEN
            INSERT INTO exclusive (key, job_id, fence) VALUES (c.key, c.id, drawn) ON CONFLICT DO NOTHING;
            CONTINUE WHEN NOT FOUND;
        END IF;
        won := won || c.id;
        fences := fences || drawn;
    END LOOP;
    RETURN QUERY
    UPDATE job j
       SET state = 'running', attempt = j.attempt + 1, fence = w.fence, worker_id = worker, attempted_at = clock_timestamp()
      FROM unnest(won, fences) AS w(id, fence)
     WHERE j.id = w.id
    RETURNING j.*;
END $$;

DROP FUNCTION limit_queue(text, integer), free_slots(text, integer, integer);
REVOKE SELECT ON exclusive FROM claimd_worker;
DROP TABLE slot;
ALTER TABLE queue DROP COLUMN max_running, DROP COLUMN limited;
