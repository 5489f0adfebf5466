-- SPDX-License-Identifier: Apache-2.0
-- Jobs after jobs: a job waits until others have ended. The guide: docs/guide/batches.md.

-- A job that waits, and when it is due after that. Meanwhile its scheduled_at is job_waits(): no claim takes it, no feed reads it.
CREATE TABLE job_wait (
    job_id bigint NOT NULL,
    scheduled_at timestamptz NOT NULL,
    if_dead text NOT NULL, -- if one of the others does not complete
    CONSTRAINT job_wait_pkey PRIMARY KEY (job_id),
    CONSTRAINT job_wait_if_dead CHECK (if_dead IN ('cancel', 'run', 'hold'))
);
-- For whom it waits.
CREATE TABLE job_after (
    job_id bigint NOT NULL,
    after_id bigint NOT NULL,
    state text COLLATE "C", -- in which that one ended; NULL while it is open
    CONSTRAINT job_after_pkey PRIMARY KEY (job_id, after_id),
    CONSTRAINT job_after_wait FOREIGN KEY (job_id) REFERENCES job_wait ON DELETE CASCADE
);
CREATE INDEX job_after_open ON job_after (after_id) WHERE state IS NULL;
-- Jobs that wait for one less: the leader looks at these alone. Never updated, so that the ends of jobs don't wait for each other.
CREATE TABLE job_wake (job_id bigint NOT NULL);
GRANT SELECT ON job_wait, job_after, job_wake TO claimd_admin, claimd_reader;

CREATE FUNCTION job_waits() RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$ SELECT timestamptz '2285-12-31 00:00:00+00' $$;

-- Lets a job that has not started wait for others; returns its id. `if_dead`: what happens if one of them is discarded or cancelled:
-- cancel = it is cancelled too; run = it runs all the same; hold = it waits until somebody retries that one, or cancels this.
CREATE FUNCTION after(job bigint, predecessors bigint[], if_dead text DEFAULT 'cancel') RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    due timestamptz;
    other bigint;
    other_state text;
BEGIN
    IF COALESCE(if_dead, '') NOT IN ('cancel', 'run', 'hold') THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'if_dead: must be cancel, run or hold';
    ELSIF COALESCE(cardinality(predecessors), 0) = 0 OR array_position(predecessors, NULL) IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'predecessors: must be an array of ids, without NULL';
    ELSIF cardinality(predecessors) > 10000 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'predecessors: at most 10000';
    END IF;
    SELECT j.scheduled_at INTO due FROM job j WHERE j.id = job AND j.state = 'available' FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('job %s runs, has ended, or was not found', COALESCE(job::text, 'NULL'));
    END IF;
    INSERT INTO job_wait AS w (job_id, scheduled_at, if_dead) VALUES (job, due, after.if_dead)
        ON CONFLICT ON CONSTRAINT job_wait_pkey DO UPDATE SET if_dead = excluded.if_dead;
    -- In the order of ids, so that two calls don't lock each other out.
    FOREACH other IN ARRAY ARRAY(SELECT DISTINCT p FROM unnest(predecessors) AS p ORDER BY p) LOOP
        IF EXISTS (WITH RECURSIVE before(id) AS (
                       SELECT other UNION SELECT a.after_id FROM before b JOIN job_after a ON a.job_id = b.id AND a.state IS NULL)
                   SELECT FROM before WHERE id = job) THEN
            RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('job %s waits for job %s: that would be a circle', other, job);
        END IF;
        UPDATE job j SET flags = j.flags | 16 WHERE j.id = other;
        other_state := NULL;
        IF NOT FOUND THEN
            SELECT h.state INTO other_state FROM job_history h WHERE h.id = other AND h.retried_at IS NULL;
            IF NOT FOUND THEN
                RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('predecessors: job %s not found', other);
            END IF;
        END IF;
        INSERT INTO job_after (job_id, after_id, state) VALUES (job, other, other_state) ON CONFLICT DO NOTHING;
    END LOOP;
    UPDATE job j SET flags = j.flags | 32, scheduled_at = job_waits() WHERE j.id = job;
    INSERT INTO job_wake VALUES (job); -- perhaps all have ended
    RETURN job;
END $$;

-- ---- the end of a job ----
-- job.flags: 16 = others wait for it; 32 = it waited for others.
DROP TRIGGER job_ended ON job;
CREATE OR REPLACE FUNCTION job_ended() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    end_state text;
BEGIN
    IF OLD.flags & 1 <> 0 THEN
        DELETE FROM job_key
         WHERE key = (SELECT k.key FROM job_key k WHERE k.key = OLD.unique_key AND k.job_id = OLD.id FOR UPDATE SKIP LOCKED);
    END IF;
    IF OLD.flags & 24 <> 0 THEN
        SELECT h.state INTO end_state FROM job_history h
         WHERE h.id = OLD.id AND h.generation = OLD.generation AND h.finalized_at > now() - interval '1 day';
        end_state := COALESCE(end_state, 'cancelled'); -- deleted by hand
        IF OLD.flags & 8 <> 0 THEN
            UPDATE batch_job m SET state = end_state WHERE m.job_id = OLD.id;
        END IF;
        IF OLD.flags & 16 <> 0 THEN
            WITH told AS (
                UPDATE job_after a SET state = end_state WHERE a.after_id = OLD.id AND a.state IS NULL RETURNING a.job_id
            )
            INSERT INTO job_wake SELECT job_id FROM told;
        END IF;
    END IF;
    IF OLD.flags & 32 <> 0 THEN
        DELETE FROM job_wait w WHERE w.job_id = OLD.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_ended AFTER DELETE ON job FOR EACH ROW WHEN (OLD.flags & 57 <> 0) EXECUTE FUNCTION job_ended();

-- Who waits for a job that is retried goes on waiting for it.
DROP TRIGGER job_again ON job;
CREATE OR REPLACE FUNCTION job_again() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    holder bigint := CASE WHEN NEW.flags & 1 <> 0 THEN take_key(NEW.unique_key, 'open', NULL, NEW.id) ELSE NEW.id END;
BEGIN
    IF holder <> NEW.id THEN
        RAISE EXCEPTION USING ERRCODE = 'CL004', DETAIL = holder::text,
            MESSAGE = format('job %s can''t be retried: job %s has its unique key now', NEW.id, holder);
    END IF;
    IF NEW.flags & 8 <> 0 THEN
        UPDATE batch_job m SET state = NULL FROM batch b WHERE m.job_id = NEW.id AND b.id = m.batch_id AND b.over_at IS NULL;
    END IF;
    IF NEW.flags & 16 <> 0 THEN
        UPDATE job_after a SET state = NULL WHERE a.after_id = NEW.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_again AFTER INSERT ON job FOR EACH ROW WHEN (NEW.flags & 25 <> 0 AND NEW.generation > 0)
    EXECUTE FUNCTION job_again();

-- ---- the end of waiting ----
-- By the leading scheduler, each second: jobs whose predecessors have all ended become due, or are cancelled. Returns how many.
CREATE FUNCTION release_jobs(most integer DEFAULT 1000) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET lock_timeout = '50ms' AS $$
DECLARE
    w record;
    is_dead boolean;
    done bigint := 0;
BEGIN
    FOR w IN WITH woken AS (
                 DELETE FROM job_wake WHERE ctid = ANY (ARRAY(SELECT ctid FROM job_wake LIMIT most FOR UPDATE SKIP LOCKED))
                 RETURNING job_id)
             SELECT t.* FROM job_wait t WHERE t.job_id IN (SELECT job_id FROM woken)
                AND NOT EXISTS (SELECT FROM job_after a WHERE a.job_id = t.job_id AND a.state IS NULL) LOOP
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
            done := done + 1;
        EXCEPTION
            WHEN lock_not_available OR query_canceled THEN
                INSERT INTO job_wake VALUES (w.job_id); -- the next time
            WHEN SQLSTATE 'CL003' THEN
                NULL; -- it has ended meanwhile
        END;
    END LOOP;
    IF done > 0 AND (SELECT hungry FROM cluster) THEN
        PERFORM pg_notify('claimd', '');
    END IF;
    RETURN done;
END $$;

REVOKE ALL ON FUNCTION job_waits, after, release_jobs FROM PUBLIC;
GRANT EXECUTE ON FUNCTION after TO claimd_admin, claimd_producer;
