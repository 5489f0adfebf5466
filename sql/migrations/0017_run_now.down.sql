-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION pause_all_queues, resume_all_queues;

-- All or none: refused with the reason of the first that can't be retried, or where a queue is full of open jobs. Returns how many.
-- The history may have been small when this was planned.
CREATE OR REPLACE FUNCTION retry_many(ids bigint[], even_completed boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    wanted bigint[] := ARRAY(SELECT DISTINCT u.id FROM unnest(ids) AS u(id) ORDER BY u.id);
    retried bigint[];
    refused bigint;
    found_state text;
BEGIN
    IF ids IS NULL OR EXISTS (SELECT FROM unnest(ids) AS u(id) WHERE u.id IS NULL) OR even_completed IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002',
            MESSAGE = CASE WHEN even_completed IS NULL THEN 'even_completed: must be true or false' ELSE 'id: must not be NULL' END;
    END IF;
    IF EXISTS (SELECT FROM queue q WHERE q.max_open IS NOT NULL) THEN
        -- In the order of the queues, as in enqueue_many().
        PERFORM take_room(w.queue, w.jobs)
           FROM (SELECT h.queue, count(*) AS jobs
                   FROM job_history h
                   JOIN queue q ON q.name = h.queue AND q.max_open IS NOT NULL
                  WHERE h.id = ANY (wanted) AND h.retried_at IS NULL AND (even_completed OR h.state <> 'completed')
                  GROUP BY h.queue
                  ORDER BY h.queue) AS w;
    END IF;
    WITH former AS (
        UPDATE job_history h SET retried_at = clock_timestamp()
         WHERE h.id = ANY (wanted) AND h.retried_at IS NULL AND (even_completed OR h.state <> 'completed')
        RETURNING h.*
    ), again AS (
        INSERT INTO job (id, fence, created_at, generation, priority, share, queue, kind, args, max_attempts, timeout, tags, metadata,
                         flags, version, unique_key, backoff, exclusive_key, share_key)
        OVERRIDING SYSTEM VALUE
        SELECT f.id, f.fence, f.created_at, f.generation + 1, f.priority, f.share, f.queue, f.kind, f.args, f.max_attempts, f.timeout,
               f.tags, f.metadata, f.flags & ~996, f.version, f.unique_key, f.backoff, f.exclusive_key, f.share_key
          FROM former f
         ORDER BY f.id
        RETURNING job.id
    )
    SELECT COALESCE(array_agg(a.id), '{}') INTO retried FROM again a;
    SELECT u.id INTO refused FROM unnest(wanted) AS u(id) WHERE u.id <> ALL (retried) ORDER BY u.id LIMIT 1;
    IF NOT FOUND THEN
        RETURN cardinality(retried);
    END IF;
    SELECT j.state INTO found_state FROM job j WHERE j.id = refused;
    IF NOT FOUND THEN
        SELECT h.state INTO found_state FROM job_history h WHERE h.id = refused AND h.retried_at IS NULL;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'CL003',
        MESSAGE = 'job ' || refused || CASE
            WHEN found_state IN ('available', 'running') THEN ' is ' || found_state || ': only a finished job can be retried'
            WHEN found_state = 'completed' AND NOT even_completed THEN ' is completed: only even_completed => true retries it'
            WHEN found_state IS NOT NULL THEN ' has just changed: try again'
            ELSE ' not found' END;
END $$;

CREATE OR REPLACE VIEW jobs AS
SELECT id, kind, queue, args, priority, share,
       open_state(state, ready_at, attempt, flags) AS state,
       created_at, scheduled_at, ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000') AS worker_id,
       NULLIF(attempted_at, 'epoch') AS attempted_at, max_attempts, timeout, tags, metadata,
       NULL::timestamptz AS finalized_at, NULL::jsonb AS result, NULL::text AS error, flags, version, unique_key, backoff, exclusive_key,
       share_key
  FROM job
UNION ALL
SELECT id, kind, queue, args, priority, share, state, created_at, scheduled_at, ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000'),
       NULLIF(attempted_at, 'epoch'), max_attempts, timeout, tags, metadata,
       finalized_at, result, error, flags, version, unique_key, backoff, exclusive_key, share_key
  FROM job_history
 WHERE retried_at IS NULL;

-- Asks a worker to take nothing new ('quiet'), or to end what runs and then itself ('drain').
CREATE OR REPLACE FUNCTION ask_worker(worker_id uuid, what text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    why text;
BEGIN
    IF what IS NULL OR what NOT IN ('quiet', 'drain') THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'what: must be quiet or drain';
    END IF;
    SELECT CASE WHEN w.dead OR w.stopped THEN format('worker %s has ended', w.worker_id)
                WHEN w.stale_at < clock_timestamp() THEN format('worker %s is silent: it would not hear', w.worker_id)
                WHEN w.built_for < 2 THEN format('worker %s is of an older release: send it SIGUSR1 or SIGTERM', w.worker_id)
           ELSE '' END
      INTO why
      FROM worker w
     WHERE w.worker_id = ask_worker.worker_id
       FOR UPDATE;
    IF why IS DISTINCT FROM '' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = COALESCE(why, format('worker %s not found', COALESCE(ask_worker.worker_id::text, 'NULL')));
    END IF;
    -- A drain is the last word.
    UPDATE worker w SET asked = what WHERE w.worker_id = ask_worker.worker_id AND w.asked <> 'drain';
END $$;
