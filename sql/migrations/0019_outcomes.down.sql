-- SPDX-License-Identifier: Apache-2.0
CREATE OR REPLACE FUNCTION release_jobs(most integer DEFAULT 1000, OUT released bigint, OUT failed bigint, OUT why text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
SET lock_timeout = '50ms' AS $$
DECLARE
    w record;
    is_dead boolean;
BEGIN
    released := 0;
    failed := 0;
    SET CONSTRAINTS ALL IMMEDIATE; -- as in end_batches()
    FOR w IN WITH woken AS (
                 DELETE FROM job_wake WHERE ctid = ANY (ARRAY(SELECT ctid FROM job_wake LIMIT most FOR UPDATE SKIP LOCKED))
                 RETURNING job_id)
             SELECT t.* FROM job_wait t WHERE t.job_id IN (SELECT job_id FROM woken)
                AND NOT EXISTS (SELECT FROM job_after a WHERE a.job_id = t.job_id AND COALESCE(a.state, '') = '') LOOP -- as in wait_for()
        is_dead := EXISTS (SELECT FROM job_after a WHERE a.job_id = w.job_id AND a.state <> 'completed');
        CONTINUE WHEN is_dead AND w.if_dead = 'hold';
        BEGIN
            IF is_dead AND w.if_dead = 'cancel' THEN
                PERFORM cancel(w.job_id);
            ELSE
                DELETE FROM job_wait t WHERE t.job_id = w.job_id;
                UPDATE job j SET scheduled_at = GREATEST(w.scheduled_at, clock_timestamp())
                 WHERE j.id = w.job_id AND j.state = 'available' AND j.scheduled_at = job_waits();
            END IF;
            released := released + 1;
        EXCEPTION
            WHEN lock_not_available OR query_canceled THEN
                INSERT INTO job_wake VALUES (w.job_id); -- the next time
            WHEN SQLSTATE 'CL003' THEN
                NULL; -- it has ended meanwhile
            WHEN OTHERS THEN
                INSERT INTO job_wake VALUES (w.job_id);
                failed := failed + 1;
                why := format('job %s: %s', w.job_id, SQLERRM);
        END;
    END LOOP;
    IF released > 0 AND (SELECT hungry FROM cluster) THEN
        PERFORM pg_notify('claimd', '');
    END IF;
END $$;

CREATE OR REPLACE FUNCTION job_ended() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET jit = off AS $$
BEGIN
    IF OLD.flags & 1 <> 0 THEN
        DELETE FROM job_key
         WHERE ctid = (SELECT k.ctid FROM job_key k WHERE k.key = OLD.unique_key AND k.job_id = OLD.id FOR UPDATE SKIP LOCKED);
    END IF;
    IF OLD.flags & 32 <> 0 THEN
        DELETE FROM job_wait w WHERE w.job_id = OLD.id;
    END IF;
    IF OLD.flags & 64 <> 0 THEN
        DELETE FROM job_live l WHERE l.id = OLD.id;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION retry_many(ids bigint[], even_completed boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    wanted bigint[] := ARRAY(SELECT DISTINCT u.id FROM unnest(ids) AS u(id) ORDER BY u.id);
    parked bigint;
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
    )
    INSERT INTO job (id, fence, created_at, generation, priority, share, queue, kind, args, max_attempts, timeout, tags, metadata,
                     flags, version, unique_key, backoff, exclusive_key, share_key)
    OVERRIDING SYSTEM VALUE
    SELECT f.id, f.fence, f.created_at, f.generation + 1, f.priority, f.share, f.queue, f.kind, f.args, f.max_attempts, f.timeout,
           f.tags, f.metadata, f.flags & ~996, f.version, f.unique_key, f.backoff, f.exclusive_key, f.share_key
      FROM former f
     ORDER BY f.id;
    -- Its attempts, crashes and generation stay. An edit, which is put on record, and which the feed meets ahead of its cursor.
    FOR parked IN SELECT j.id FROM job j
                   WHERE j.id = ANY (wanted) AND j.state = 'available' AND j.ready_at > clock_timestamp()
                     AND NOT (j.flags & 32 <> 0 AND j.scheduled_at = job_waits())
                   ORDER BY j.id FOR NO KEY UPDATE LOOP
        PERFORM edit(parked, '{"scheduled_at": null}');
    END LOOP;
    SELECT u.id, CASE WHEN j.ready_at = job_waits() AND j.state = 'available' THEN 'waiting' ELSE j.state END INTO refused, found_state
      FROM unnest(wanted) AS u(id)
      LEFT JOIN job j ON j.id = u.id
     WHERE j.id IS NULL OR j.state <> 'available' OR j.ready_at > clock_timestamp()
     ORDER BY u.id
     LIMIT 1;
    IF NOT FOUND THEN
        RETURN cardinality(wanted);
    END IF;
    IF found_state IS NULL THEN
        SELECT h.state INTO found_state FROM job_history h WHERE h.id = refused AND h.retried_at IS NULL;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'CL003',
        MESSAGE = 'job ' || refused || CASE
            WHEN found_state = 'running' THEN ' is running: only a finished, retryable or scheduled job can be retried'
            WHEN found_state = 'waiting'
            THEN ' is waiting for other jobs: only a finished, retryable or scheduled job can be retried'
            WHEN found_state = 'completed' AND NOT even_completed THEN ' is completed: only even_completed => true retries it'
            WHEN found_state IS NOT NULL THEN ' has just changed: try again'
            ELSE ' not found' END;
END $$;

CREATE OR REPLACE FUNCTION delete_job(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    found_state text;
BEGIN
    IF id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'id: must not be NULL';
    END IF;
    DELETE FROM job_history h WHERE h.id = delete_job.id AND h.retried_at IS NULL RETURNING h.state INTO found_state;
    IF found_state IS NULL THEN
        SELECT j.state INTO found_state FROM job j WHERE j.id = delete_job.id;
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = 'job ' || id || COALESCE(' is ' || found_state || ': only a finished job can be deleted', ' not found');
    END IF;
    DELETE FROM job_history h WHERE h.id = delete_job.id;
    DELETE FROM job_attempt a WHERE a.job_id = delete_job.id;
    DELETE FROM job_edit e WHERE e.job_id = delete_job.id;
    RETURN found_state;
END $$;

DROP FUNCTION predecessors, predecessors_text, keep_predecessors, batch_of;
DROP TABLE job_waited;

DROP FUNCTION batch_status, end_batches, batch_open;
DROP VIEW batches;
CREATE VIEW batches AS
SELECT b.id, b.name,
       CASE WHEN b.over_at IS NOT NULL THEN 'over' WHEN b.closed_at IS NOT NULL THEN 'closed' ELSE 'open' END AS state,
       m.jobs, m.open, m.succeeded, m.failed, m.cancelled, b.opened_at, b.closed_at, b.over_at, b.follow_up_job, b.error
  FROM batch b
 CROSS JOIN LATERAL (SELECT count(*) AS jobs, count(*) FILTER (WHERE state IS NULL) AS open,
                            count(*) FILTER (WHERE state = 'completed') AS succeeded,
                            count(*) FILTER (WHERE state = 'discarded') AS failed,
                            count(*) FILTER (WHERE state = 'cancelled') AS cancelled
                       FROM batch_job WHERE batch_id = b.id) m;

CREATE FUNCTION batch_open(name text DEFAULT '', follow_up jsonb DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    new_id bigint;
BEGIN
    IF name IS NULL OR octet_length(name) > 200 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'name: at most 200 octets';
    END IF;
    IF follow_up IS NOT NULL THEN
        BEGIN
            PERFORM refuse_requests(jsonb_build_array(follow_up));
        EXCEPTION WHEN SQLSTATE 'CL002' THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = replace(SQLERRM, 'jobs[0]', 'follow_up');
        END;
    END IF;
    INSERT INTO batch (name, follow_up) VALUES (batch_open.name, batch_open.follow_up) RETURNING id INTO new_id;
    RETURN new_id;
END $$;

CREATE FUNCTION batch_status(batch bigint)
RETURNS TABLE (state text, jobs bigint, open bigint, succeeded bigint, failed bigint, cancelled bigint, follow_up_job bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT b.state, b.jobs, b.open, b.succeeded, b.failed, b.cancelled, b.follow_up_job FROM batches b WHERE b.id = batch
$$;

CREATE FUNCTION end_batches(most integer DEFAULT 100) RETURNS TABLE (batch_id bigint, job_id bigint, why text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
    b record;
    full_queues text[] := '{}';
BEGIN
    SET CONSTRAINTS ALL IMMEDIATE; -- at the commit an error would be everybody's
    FOR b IN SELECT * FROM batch c
              WHERE c.over_at IS NULL AND c.closed_at IS NOT NULL
                AND NOT EXISTS (SELECT FROM batch_job m WHERE m.batch_id = c.id AND m.state IS NULL)
              ORDER BY c.error IS NOT NULL, c.id LIMIT most FOR UPDATE SKIP LOCKED LOOP
        -- Looked for before the lock was there: a retry may have been committed since.
        CONTINUE WHEN EXISTS (SELECT FROM batch_job m WHERE m.batch_id = b.id AND m.state IS NULL);
        batch_id := b.id;
        job_id := NULL;
        why := NULL;
        CONTINUE WHEN b.follow_up IS NOT NULL AND COALESCE(b.follow_up ->> 'queue', 'default') = ANY (full_queues);
        IF b.follow_up IS NOT NULL THEN
            BEGIN
                job_id := (SELECT enqueue_many(jsonb_build_array(b.follow_up)));
            EXCEPTION
                WHEN lock_not_available OR query_canceled THEN
                    CONTINUE; -- somebody has its unique key for a moment: the next time
                WHEN SQLSTATE 'CL005' THEN -- it waits for room
                    full_queues := full_queues || COALESCE(b.follow_up ->> 'queue', 'default');
                    UPDATE batch c SET error = SQLERRM WHERE c.id = b.id AND c.error IS DISTINCT FROM SQLERRM;
                    CONTINUE;
                WHEN OTHERS THEN
                    why := SQLERRM;
            END;
        END IF;
        UPDATE batch c SET over_at = clock_timestamp(), follow_up_job = end_batches.job_id, error = why WHERE c.id = b.id;
        RETURN NEXT;
    END LOOP;
END $$;

DROP FUNCTION follow_up_of;
ALTER TABLE batch DROP COLUMN outcome_job, DROP COLUMN on_success, DROP COLUMN on_failure;
REVOKE ALL ON FUNCTION batch_open, batch_status, end_batches FROM PUBLIC;
GRANT EXECUTE ON FUNCTION batch_open, batch_status TO claimd_admin, claimd_producer;
GRANT EXECUTE ON FUNCTION batch_status TO claimd_reader;
GRANT SELECT ON batches TO claimd_admin, claimd_reader;
