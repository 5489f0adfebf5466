-- SPDX-License-Identifier: Apache-2.0
-- What operators reach for: running jobs now, the last error of what is tried again, all queues at
-- once, the opposite of quiet. The guide: docs/guide/operating-jobs.md.

-- ---- again, or now ----
-- Finished jobs become available again, and jobs that wait for their time (scheduled, retryable) are due from now on; what is due
-- already stays as it is. All or none: refused with the reason of the first that can't be retried, or where a queue is full of open
-- jobs. Returns how many. The history may have been small when this was planned.
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

-- ---- how jobs are ----
-- `error` of an open job: of its last attempt that failed. Of what waits for other jobs nobody knows when it is due: job_waits() is
-- shown nowhere, and its own time is in job_wait.
CREATE OR REPLACE VIEW jobs AS
SELECT id, kind, queue, args, priority, share,
       open_state(state, ready_at, attempt, flags) AS state,
       created_at,
       CASE WHEN flags & 32 <> 0 AND scheduled_at = job_waits()
            THEN (SELECT w.scheduled_at FROM job_wait w WHERE w.job_id = job.id) ELSE scheduled_at END AS scheduled_at,
       CASE WHEN flags & 32 = 0 OR ready_at <> job_waits() THEN ready_at END AS ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000') AS worker_id,
       NULLIF(attempted_at, 'epoch') AS attempted_at, max_attempts, timeout, tags, metadata,
       NULL::timestamptz AS finalized_at, NULL::jsonb AS result,
       CASE WHEN attempt > 0 THEN (SELECT a.error FROM job_attempt a
                                    WHERE a.job_id = job.id AND a.generation = job.generation AND a.error IS NOT NULL
                                      AND a.outcome <> 'snoozed'
                                    ORDER BY a.fence DESC LIMIT 1) END AS error,
       flags, version, unique_key, backoff, exclusive_key, share_key
  FROM job
UNION ALL
SELECT id, kind, queue, args, priority, share, state, created_at,
       CASE WHEN flags & 32 = 0 OR scheduled_at <> job_waits() THEN scheduled_at END,
       CASE WHEN flags & 32 = 0 OR ready_at <> job_waits() THEN ready_at END,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000'),
       NULLIF(attempted_at, 'epoch'), max_attempts, timeout, tags, metadata,
       finalized_at, result, error, flags, version, unique_key, backoff, exclusive_key, share_key
  FROM job_history
 WHERE retried_at IS NULL;

-- ---- queues and workers ----
-- Pauses each queue that has an open job, a live worker or a setting, and is not paused: their names. Not those that come later.
CREATE FUNCTION pause_all_queues() RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    known text;
BEGIN
    FOR known IN WITH RECURSIVE hop(name) AS (
                     (SELECT j.queue FROM job j ORDER BY j.queue LIMIT 1)
                     UNION ALL
                     SELECT (SELECT j.queue FROM job j WHERE j.queue > h.name ORDER BY j.queue LIMIT 1) FROM hop h
                      WHERE h.name IS NOT NULL)
                 SELECT h.name FROM hop h WHERE h.name IS NOT NULL
                 UNION SELECT q.name FROM queue q
                 UNION SELECT unnest(w.queues) FROM worker w WHERE NOT w.dead AND NOT w.stopped
                 ORDER BY 1 LOOP
        IF pause_queue(known) THEN
            RETURN NEXT known;
        END IF;
    END LOOP;
END $$;

-- Resumes each queue that is paused: their names.
CREATE FUNCTION resume_all_queues() RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text;
BEGIN
    FOR known IN SELECT q.name FROM queue q WHERE q.paused ORDER BY q.name LOOP
        IF resume_queue(known) THEN
            RETURN NEXT known;
        END IF;
    END LOOP;
END $$;

REVOKE ALL ON FUNCTION pause_all_queues, resume_all_queues FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pause_all_queues, resume_all_queues TO claimd_admin;

-- Asks a worker to take nothing new ('quiet'), to go on if it was asked to be quiet ('resume'), or to end what runs and then itself
-- ('drain').
CREATE OR REPLACE FUNCTION ask_worker(worker_id uuid, what text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    why text;
BEGIN
    IF what IS NULL OR what NOT IN ('quiet', 'resume', 'drain') THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'what: must be quiet, resume or drain';
    END IF;
    SELECT CASE WHEN w.dead OR w.stopped THEN format('worker %s has ended', w.worker_id)
                WHEN w.stale_at < clock_timestamp() THEN format('worker %s is silent: it would not hear', w.worker_id)
                WHEN what = 'resume' AND w.asked = 'drain' THEN format('worker %s was asked to drain: start another', w.worker_id)
                WHEN what = 'resume' AND w.built_for < 17
                THEN format('worker %s is of an older release: it would not go on, restart it', w.worker_id)
                WHEN what = 'resume' AND w.quiet AND w.asked = ''
                THEN format('worker %s is quiet by a signal, or drains: ask it to be quiet, and then to resume', w.worker_id)
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
    UPDATE worker w SET asked = CASE what WHEN 'resume' THEN '' ELSE what END
     WHERE w.worker_id = ask_worker.worker_id AND w.asked <> 'drain';
END $$;
