-- SPDX-License-Identifier: Apache-2.0
-- Jobs that wait are due from now on.
UPDATE job j SET scheduled_at = GREATEST(w.scheduled_at, clock_timestamp()) FROM job_wait w
 WHERE j.id = w.job_id AND j.state = 'available' AND j.scheduled_at = job_waits();
DROP TRIGGER job_ended ON job;
DROP TRIGGER job_again ON job;
DROP FUNCTION after(bigint, bigint[], text), release_jobs(integer), job_waits();
DROP TABLE job_wake, job_after, job_wait;

CREATE OR REPLACE FUNCTION job_ended() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
    IF OLD.flags & 1 <> 0 THEN
        DELETE FROM job_key
         WHERE key = (SELECT k.key FROM job_key k WHERE k.key = OLD.unique_key AND k.job_id = OLD.id FOR UPDATE SKIP LOCKED);
    END IF;
    IF OLD.flags & 8 <> 0 THEN
        UPDATE batch_job m
           SET state = COALESCE((SELECT h.state FROM job_history h
                                  WHERE h.id = OLD.id AND h.generation = OLD.generation AND h.finalized_at > now() - interval '1 day'),
                                'cancelled') -- deleted by hand
         WHERE m.job_id = OLD.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_ended AFTER DELETE ON job FOR EACH ROW WHEN (OLD.flags & 9 <> 0) EXECUTE FUNCTION job_ended();

CREATE OR REPLACE FUNCTION job_again() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    holder bigint := CASE WHEN NEW.flags & 1 <> 0 THEN take_key(NEW.unique_key, 'open', NULL, NEW.id) ELSE NEW.id END;
BEGIN
    IF holder <> NEW.id THEN
        RAISE EXCEPTION USING ERRCODE = 'CL004', DETAIL = holder::text,
            MESSAGE = format('job %s can''t be retried: job %s has its unique key now', NEW.id, holder);
    END IF;
    UPDATE batch_job m SET state = NULL FROM batch b WHERE m.job_id = NEW.id AND b.id = m.batch_id AND b.over_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER job_again AFTER INSERT ON job FOR EACH ROW WHEN (NEW.flags & 9 <> 0 AND NEW.generation > 0)
    EXECUTE FUNCTION job_again();
