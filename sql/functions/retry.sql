-- SPDX-License-Identifier: Apache-2.0
-- Retrying jobs.

-- Makes finished jobs available again, and jobs that wait for their time (scheduled, retryable) due now; jobs that are due stay as
-- they are. All or none: refused with the reason of the first job that can't be retried, or if a queue is full of open jobs. Returns
-- how many. The settings force the use of indexes: the history may have been small when this was planned.
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
    INSERT INTO job ({again}, generation, flags)
    OVERRIDING SYSTEM VALUE
    SELECT {f.again}, f.generation + 1, f.flags & ~{flag.place|asked|checkpoint|strike|strikes|deadline}
      FROM former f
     ORDER BY f.id;
    -- Its attempts, crashes and generation stay. An edit, which is put on record, and which the feed meets ahead of its cursor.
    FOR parked IN SELECT j.id FROM job j
                   WHERE j.id = ANY (wanted) AND j.state = 'available' AND j.ready_at > clock_timestamp()
                     AND NOT (j.flags & {flag.waits} <> 0 AND j.scheduled_at = job_waits())
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

-- Does the same for one job; returns its id.
CREATE OR REPLACE FUNCTION retry(id bigint, even_completed boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM retry_many(ARRAY[id], even_completed);
    RETURN id;
END $$;

-- Restores what belongs to a retried job: it takes its unique key again, is open in its batch again unless the batch is over, and
-- jobs that waited for it continue to wait.
CREATE OR REPLACE FUNCTION job_again() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    holder bigint;
BEGIN
    IF NEW.flags & {flag.unique} <> 0 THEN
        -- Its end may have left the key behind; who enqueues meanwhile must not find a job that is over there.
        DELETE FROM job_key k WHERE k.key = NEW.unique_key AND k.job_id = NEW.id;
        holder := (take_key(NEW.unique_key, 'open', NULL, NEW.id)).job_id;
        IF holder <> NEW.id THEN
            RAISE EXCEPTION USING ERRCODE = 'CL004', DETAIL = holder::text,
                MESSAGE = format('job %s can''t be retried: job %s has its unique key now', NEW.id, holder);
        END IF;
    END IF;
    IF NEW.flags & {flag.batch} <> 0 THEN
        -- Its batch first: who ends it sees this job open, or we see that it is over.
        PERFORM FROM batch b JOIN batch_job m ON m.batch_id = b.id WHERE m.job_id = NEW.id AND b.over_at IS NULL FOR KEY SHARE OF b;
        IF FOUND THEN
            UPDATE batch_job m SET state = NULL WHERE m.job_id = NEW.id;
        END IF;
    END IF;
    IF NEW.flags & {flag.awaited} <> 0 THEN
        UPDATE job_after a SET state = NULL WHERE a.after_id = NEW.id;
    END IF;
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION retry_many, retry, job_again FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION retry_many, retry TO claimd_admin;
