-- SPDX-License-Identifier: Apache-2.0
DROP TRIGGER job_ended ON job;
DROP TRIGGER job_again ON job;
DROP FUNCTION batch_status(bigint), batch_open(text, jsonb), batch_add(bigint, bigint), batch_close(bigint), batch_cancel(bigint),
    refuse_batch(bigint), job_again(), end_batches(integer);
DROP VIEW batches;
DROP TABLE batch_job, batch;

CREATE OR REPLACE FUNCTION job_ended() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM job_key
     WHERE key = (SELECT k.key FROM job_key k WHERE k.key = OLD.unique_key AND k.job_id = OLD.id FOR UPDATE SKIP LOCKED);
    RETURN NULL;
END $$;
CREATE TRIGGER job_ended AFTER DELETE ON job FOR EACH ROW WHEN (OLD.flags <> 0 AND OLD.unique_key IS NOT NULL)
    EXECUTE FUNCTION job_ended();

CREATE FUNCTION retake_key() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    holder bigint := take_key(NEW.unique_key, 'open', NULL, NEW.id);
BEGIN
    IF holder <> NEW.id THEN
        RAISE EXCEPTION USING ERRCODE = 'CL004', DETAIL = holder::text,
            MESSAGE = format('job %s can''t be retried: job %s has its unique key now', NEW.id, holder);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER retake_key AFTER INSERT ON job FOR EACH ROW WHEN (NEW.flags <> 0 AND NEW.generation > 0 AND NEW.unique_key IS NOT NULL)
    EXECUTE FUNCTION retake_key();
REVOKE ALL ON FUNCTION retake_key FROM PUBLIC;
