-- SPDX-License-Identifier: Apache-2.0
-- Batches: groups of jobs, and the jobs that follow when a group has ended.

CREATE OR REPLACE FUNCTION refuse_batch(batch bigint) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'CL003',
        MESSAGE = format('batch %s %s', COALESCE(batch::text, 'NULL'),
                         COALESCE((SELECT CASE WHEN b.over_at IS NOT NULL THEN 'is over' ELSE 'is closed' END
                                     FROM batch b WHERE b.id = refuse_batch.batch), 'not found'));
END $$;

-- Returns the request of a job that follows a batch, with the batch's id as metadata.batch_id.
CREATE OR REPLACE FUNCTION follow_up_of(batch bigint, request jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT CASE WHEN jsonb_typeof(request) <> 'object' THEN request
                ELSE request || jsonb_build_object('metadata', COALESCE(NULLIF(request -> 'metadata', 'null'), '{}')
                                                               || jsonb_build_object('batch_id', batch)) END
$$;

-- Opens a batch; returns its id. `follow_up`, `on_success` and `on_failure` are jobs, each as an element of enqueue_many().
CREATE OR REPLACE FUNCTION batch_open(name text DEFAULT '', follow_up jsonb DEFAULT NULL, on_success jsonb DEFAULT NULL,
                           on_failure jsonb DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    new_id bigint;
    given record;
BEGIN
    IF name IS NULL OR octet_length(name) > 200 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'name: at most 200 bytes';
    END IF;
    FOR given IN SELECT * FROM (VALUES ('follow_up', follow_up), ('on_success', on_success), ('on_failure', on_failure)) AS v(name, job)
                  WHERE v.job IS NOT NULL LOOP
        BEGIN
            PERFORM refuse_requests(jsonb_build_array(follow_up_of(9223372036854775807, given.job)));
        EXCEPTION WHEN SQLSTATE 'CL002' THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = replace(SQLERRM, 'jobs[0]', given.name);
        END;
    END LOOP;
    INSERT INTO batch (name, follow_up, on_success, on_failure)
    VALUES (batch_open.name, batch_open.follow_up, batch_open.on_success, batch_open.on_failure)
    RETURNING id INTO new_id;
    RETURN new_id;
END $$;

-- Adds a job that has not ended, such as one that was just enqueued, and returns its id. A job is in at most one batch; repeating the
-- call is no error. The batch can't be closed until the transaction ends.
CREATE OR REPLACE FUNCTION batch_add(batch bigint, job bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    other bigint;
BEGIN
    PERFORM check_batch_owner(batch);
    PERFORM check_job_owners(ARRAY[job]);
    PERFORM FROM batch b WHERE b.id = batch_add.batch AND b.closed_at IS NULL FOR KEY SHARE;
    IF NOT FOUND THEN
        PERFORM refuse_batch(batch);
    END IF;
    UPDATE job j SET flags = j.flags | {flag.batch} WHERE j.id = job;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('job %s has ended, or was not found', COALESCE(job::text, 'NULL'));
    END IF;
    INSERT INTO batch_job (batch_id, job_id) VALUES (batch, job) ON CONFLICT (job_id) DO NOTHING;
    IF NOT FOUND THEN
        SELECT m.batch_id INTO other FROM batch_job m WHERE m.job_id = job;
        IF other <> batch THEN
            RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('job %s is in batch %s', job, other);
        END IF;
    END IF;
    RETURN job;
END $$;

-- Closes a batch, because all jobs have been added. Repeating the call is no error.
CREATE OR REPLACE FUNCTION batch_close(batch bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM check_batch_owner(batch);
    -- Waits for those who are adding jobs: their row locks.
    PERFORM FROM batch b WHERE b.id = batch_close.batch FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM refuse_batch(batch);
    END IF;
    UPDATE batch b SET closed_at = clock_timestamp() WHERE b.id = batch_close.batch AND b.closed_at IS NULL;
END $$;

-- Closes a batch and cancels its open jobs; returns their number. Running jobs are asked to stop.
CREATE OR REPLACE FUNCTION batch_cancel(batch bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    member bigint;
    done bigint := 0;
BEGIN
    PERFORM batch_close(batch);
    FOR member IN SELECT m.job_id FROM batch_job m WHERE m.batch_id = batch AND m.state IS NULL ORDER BY m.job_id LOOP
        BEGIN
            PERFORM cancel(member);
            done := done + 1;
        EXCEPTION WHEN SQLSTATE 'CL003' THEN
            NULL; -- it has just ended
        END;
    END LOOP;
    RETURN done;
END $$;

-- Returns the state and the counts of a batch: producers may read nothing else of it.
CREATE OR REPLACE FUNCTION batch_status(batch bigint)
RETURNS TABLE (state text, jobs bigint, open bigint, succeeded bigint, failed bigint, cancelled bigint, follow_up_job bigint,
               outcome_job bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    PERFORM check_batch_owner(batch_status.batch, reads => true);
    RETURN QUERY
    SELECT b.state, b.jobs, b.open, b.succeeded, b.failed, b.cancelled, b.follow_up_job, b.outcome_job FROM batches b
     WHERE b.id = batch_status.batch;
END $$;

-- Returns the batch that a job is in, or NULL.
CREATE OR REPLACE FUNCTION batch_of(job bigint) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT m.batch_id FROM batch_job m WHERE m.job_id = batch_of.job
$$;

-- Called by the leading scheduler each second: ends batches that are closed and have no open job, and enqueues the jobs that follow
-- them, once. If these can't be enqueued, other batches still end, and the reason is stored in the batch's row. Returns batch,
-- follow-up job, reason, and the job for the outcome.
CREATE OR REPLACE FUNCTION end_batches(most integer DEFAULT 100) RETURNS TABLE (batch_id bigint, job_id bigint, why text, outcome_job_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
    b record;
    outcome jsonb;
    requests jsonb[];
    made bigint[];
    full_queues text[] := '{}';
BEGIN
    SET CONSTRAINTS ALL IMMEDIATE; -- at the commit an error would be everybody's
    FOR b IN SELECT * FROM batch c
              WHERE c.over_at IS NULL AND c.closed_at IS NOT NULL
                AND NOT EXISTS (SELECT FROM batch_job m WHERE m.batch_id = c.id AND m.state IS NULL)
              ORDER BY c.error IS NOT NULL, c.id LIMIT most FOR UPDATE SKIP LOCKED LOOP
        -- Looked for before the lock was there: a retry may have been committed since.
        CONTINUE WHEN EXISTS (SELECT FROM batch_job m WHERE m.batch_id = b.id AND m.state IS NULL);
        outcome := CASE WHEN b.on_success IS NULL AND b.on_failure IS NULL THEN NULL
                        WHEN EXISTS (SELECT FROM batch_job m WHERE m.batch_id = b.id AND m.state <> 'completed') THEN b.on_failure
                        ELSE b.on_success END;
        requests := ARRAY(SELECT follow_up_of(b.id, u.job) FROM unnest(ARRAY[b.follow_up, outcome]) WITH ORDINALITY AS u(job, n)
                           WHERE u.job IS NOT NULL ORDER BY u.n);
        made := '{}';
        why := NULL;
        CONTINUE WHEN EXISTS (SELECT FROM unnest(requests) AS u(job) WHERE COALESCE(u.job ->> 'queue', 'default') = ANY (full_queues));
        IF requests <> '{}' THEN
            BEGIN
                made := ARRAY(SELECT enqueue_many(to_jsonb(requests)));
                UPDATE job j SET owner = b.owner WHERE j.id = ANY (made) AND j.owner = acting_role(); -- what it has made itself
            EXCEPTION
                WHEN lock_not_available OR query_canceled THEN
                    CONTINUE; -- somebody has its unique key for a moment: the next time
                WHEN SQLSTATE 'CL005' THEN -- it waits for room
                    full_queues := full_queues || ARRAY(SELECT COALESCE(u.job ->> 'queue', 'default') FROM unnest(requests) AS u(job));
                    UPDATE batch c SET error = SQLERRM WHERE c.id = b.id AND c.error IS DISTINCT FROM SQLERRM;
                    CONTINUE;
                WHEN OTHERS THEN
                    why := SQLERRM;
            END;
        END IF;
        batch_id := b.id;
        job_id := CASE WHEN b.follow_up IS NOT NULL THEN made[1] END;
        outcome_job_id := CASE WHEN outcome IS NOT NULL THEN made[cardinality(made)] END;
        UPDATE batch c SET over_at = clock_timestamp(), follow_up_job = job_id, outcome_job = outcome_job_id, error = why WHERE c.id = b.id;
        RETURN NEXT;
    END LOOP;
END $$;

-- Finds jobs of closed batches that are gone, but whose end the batch has not recorded, as after a manual DELETE; they count as they
-- ended, or as cancelled. Looks at the first hundred open jobs of each batch; as these end, the others move up. Returns how many it found.
CREATE OR REPLACE FUNCTION repair_batches() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    closed bigint;
    gone bigint[];
    done bigint := 0;
BEGIN
    FOR closed IN SELECT b.id FROM batch b WHERE b.over_at IS NULL AND b.closed_at IS NOT NULL LOOP
        FOR try IN 1..100 LOOP
            gone := ARRAY(SELECT o.job_id
                            FROM (SELECT m.job_id FROM batch_job m
                                   WHERE m.batch_id = closed AND m.state IS NULL ORDER BY m.job_id LIMIT 100) AS o
                           WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = o.job_id));
            EXIT WHEN gone = '{}';
            UPDATE batch_job m
               SET state = COALESCE((SELECT h.state FROM job_history h WHERE h.id = m.job_id AND h.retried_at IS NULL LIMIT 1), 'cancelled')
             WHERE m.job_id = ANY (ARRAY(SELECT o.job_id FROM batch_job o WHERE o.job_id = ANY (gone) FOR NO KEY UPDATE SKIP LOCKED))
               AND m.state IS NULL AND NOT EXISTS (SELECT FROM job j WHERE j.id = m.job_id);
            EXIT WHEN NOT FOUND;
            done := done + cardinality(gone);
        END LOOP;
    END LOOP;
    RETURN done;
END $$;

REVOKE ALL ON FUNCTION refuse_batch, follow_up_of, batch_open, batch_add, batch_close, batch_cancel, batch_status,
    batch_of, end_batches, repair_batches FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION batch_open, batch_add, batch_close, batch_cancel TO claimd_admin, claimd_producer;
GRANT EXECUTE ON FUNCTION batch_status, batch_of TO claimd_admin, claimd_producer, claimd_reader;
