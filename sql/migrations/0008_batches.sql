-- SPDX-License-Identifier: Apache-2.0
-- Batches: jobs that belong together, how many of them have ended well, and one job that follows when all have ended. And jobs after
-- jobs. Those outside cost nothing for it. The guide: docs/guide/batches.md.

-- ---- batches ----
CREATE TABLE batch (
    id bigint GENERATED ALWAYS AS IDENTITY,
    opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    closed_at timestamptz, -- no job can be added any more
    over_at timestamptz, -- closed, and all its jobs have ended
    follow_up_job bigint,
    name text NOT NULL,
    follow_up jsonb, -- what enqueue_many() takes
    error text, -- of the follow-up, which could not be made, or not yet
    outcome_job bigint,
    on_success jsonb, -- as follow_up
    on_failure jsonb,
    owner text COLLATE "C", -- NULL: it was opened while the cluster had no owners
    CONSTRAINT batch_pkey PRIMARY KEY (id),
    CONSTRAINT batch_name_size CHECK (octet_length(name) <= 200)
);

-- Those that the leader looks at.
CREATE INDEX batch_open ON batch (id) WHERE over_at IS NULL AND closed_at IS NOT NULL;

-- Its jobs; outlives them in job and in the history.
CREATE TABLE batch_job (
    batch_id bigint NOT NULL,
    job_id bigint NOT NULL,
    state text COLLATE "C", -- in which it ended; NULL while it is open
    CONSTRAINT batch_job_pkey PRIMARY KEY (job_id),
    CONSTRAINT batch_job_batch FOREIGN KEY (batch_id) REFERENCES batch ON DELETE CASCADE
);

CREATE INDEX batch_job_open ON batch_job (batch_id, job_id) WHERE state IS NULL;

CREATE INDEX batch_job_batch ON batch_job (batch_id);

CREATE FUNCTION refuse_batch(batch bigint) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'CL003',
        MESSAGE = format('batch %s %s', COALESCE(batch::text, 'NULL'),
                         COALESCE((SELECT CASE WHEN b.over_at IS NOT NULL THEN 'is over' ELSE 'is closed' END
                                     FROM batch b WHERE b.id = refuse_batch.batch), 'not found'));
END $$;

-- A job that follows a batch knows it by metadata.batch_id.
CREATE FUNCTION follow_up_of(batch bigint, request jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT CASE WHEN jsonb_typeof(request) <> 'object' THEN request
                ELSE request || jsonb_build_object('metadata', COALESCE(NULLIF(request -> 'metadata', 'null'), '{}')
                                                               || jsonb_build_object('batch_id', batch)) END
$$;

-- `follow_up`: a job, as an element of enqueue_many().
CREATE FUNCTION batch_open(name text DEFAULT '', follow_up jsonb DEFAULT NULL, on_success jsonb DEFAULT NULL,
                           on_failure jsonb DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    new_id bigint;
    given record;
BEGIN
    IF name IS NULL OR octet_length(name) > 200 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'name: at most 200 octets';
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

-- Adds a job that has not ended, such as one that was made just now, and returns its id. A job is in one batch at most; again is no
-- error. The batch stays open until the transaction ends.
CREATE FUNCTION batch_add(batch bigint, job bigint) RETURNS bigint
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
    UPDATE job j SET flags = j.flags | 8 WHERE j.id = job;
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

-- All jobs have been added. A second time is no error.
CREATE FUNCTION batch_close(batch bigint) RETURNS void
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

-- Cancels what has not ended, and returns how many jobs that was; those that run are asked to end.
CREATE FUNCTION batch_cancel(batch bigint) RETURNS bigint
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

-- Batches with their counts.
CREATE VIEW batches AS
SELECT b.id, b.name,
       CASE WHEN b.over_at IS NOT NULL THEN 'over' WHEN b.closed_at IS NOT NULL THEN 'closed' ELSE 'open' END AS state,
       m.jobs, m.open, m.succeeded, m.failed, m.cancelled, b.opened_at, b.closed_at, b.over_at, b.follow_up_job, b.error,
       b.outcome_job
  FROM batch b
 CROSS JOIN LATERAL (SELECT count(*) AS jobs, count(*) FILTER (WHERE state IS NULL) AS open,
                            count(*) FILTER (WHERE state = 'completed') AS succeeded,
                            count(*) FILTER (WHERE state = 'discarded') AS failed,
                            count(*) FILTER (WHERE state = 'cancelled') AS cancelled
                       FROM batch_job WHERE batch_id = b.id) m;

-- For whoever has the id: producers may read nothing else of it.
CREATE FUNCTION batch_status(batch bigint)
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

-- The batch that a job is in.
CREATE FUNCTION batch_of(job bigint) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT m.batch_id FROM batch_job m WHERE m.job_id = batch_of.job
$$;

-- By the leading scheduler, each second: ends batches that are closed and have no open job, and makes their follow-ups, once. One
-- that can't be made keeps no other from it; its reason is in the row. Returns batch, follow-up job, and the reason.
CREATE FUNCTION end_batches(most integer DEFAULT 100) RETURNS TABLE (batch_id bigint, job_id bigint, why text, outcome_job_id bigint)
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

-- Jobs of closed batches that are gone without the batch having been told, by a DELETE of somebody, count as they ended, or as cancelled.
-- A look at the first hundred open ones of each batch: as they end, the others come to be among them. Returns how many it found.
CREATE FUNCTION repair_batches() RETURNS bigint
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

-- ---- jobs after jobs ----
-- A job that waits, and when it is due after that. Meanwhile its scheduled_at is job_waits(): no claim takes it, no feed reads it.
CREATE TABLE job_wait (
    job_id bigint NOT NULL,
    scheduled_at timestamptz NOT NULL,
    if_dead text NOT NULL, -- if one of the others does not complete
    CONSTRAINT job_wait_pkey PRIMARY KEY (job_id),
    CONSTRAINT job_wait_if_dead CHECK (if_dead IN ('cancel', 'run', 'hold'))
);

-- For whom it waits. Without a foreign key, which would cost more than the row: who deletes from job_wait deletes these, too.
CREATE TABLE job_after (
    job_id bigint NOT NULL,
    after_id bigint NOT NULL,
    state text COLLATE "C", -- in which that one ended; NULL while it is open
    CONSTRAINT job_after_pkey PRIMARY KEY (job_id, after_id)
);

CREATE INDEX job_after_open ON job_after (after_id) WHERE state IS NULL;

-- Jobs that wait for one less: the leader looks at these alone. Never updated, so that the ends of jobs don't wait for each other.
CREATE TABLE job_wake (job_id bigint NOT NULL);

-- Whose turn it is to look for circles, in after(): a lock that none but the owner's functions can take, while any login can hold an
-- advisory one. Always empty: job_after itself is vacuumed, with this very lock, which after() would wait for, or keep from it.
CREATE TABLE job_after_turn ();

-- Does one of the jobs wait for that one, or for one that does? The state is asked for in a way that no partial index answers: while the
-- table seems to be empty, that one would be read from end to end for each job.
CREATE FUNCTION wait_for(waiting bigint[], job bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    RETURN EXISTS (WITH RECURSIVE before(id) AS (
                       SELECT unnest(waiting)
                       UNION SELECT a.after_id FROM before b JOIN job_after a ON a.job_id = b.id AND COALESCE(a.state, '') = '')
                   SELECT FROM before WHERE id = job);
END $$;

-- Lets a job that has not started wait for others; returns its id. `if_dead`: what happens if one of them is discarded or cancelled:
-- cancel = it is cancelled too; run = it runs all the same; hold = it waits until somebody retries that one, or cancels this.
CREATE FUNCTION after(job bigint, predecessors bigint[], if_dead text DEFAULT 'cancel') RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    due timestamptz;
    has_waiting boolean := (SELECT j.flags & 16 <> 0 FROM job j WHERE j.id = job);
    other bigint;
    other_state text;
BEGIN
    IF COALESCE(if_dead, '') NOT IN ('cancel', 'run', 'hold') THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'if_dead: must be cancel, run or hold';
    ELSIF COALESCE(cardinality(predecessors), 0) = 0 OR EXISTS (SELECT FROM unnest(predecessors) AS p WHERE p IS NULL) THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'predecessors: must be an array of ids, without NULL';
    ELSIF cardinality(predecessors) > 10000 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'predecessors: at most 10000';
    END IF;
    PERFORM check_job_owners(job || predecessors); -- a job may read what those before it have found
    -- Only a job that others wait for can close a circle, perhaps together with another call: one at a time. Asked before the row is
    -- locked, so that nobody waits for two things in another order; and again, since it may have changed.
    IF has_waiting THEN
        LOCK TABLE job_after_turn IN SHARE UPDATE EXCLUSIVE MODE;
    END IF;
    SELECT j.scheduled_at, j.flags & 16 <> 0 INTO due, has_waiting FROM job j WHERE j.id = job AND j.state = 'available' FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('job %s runs, has ended, or was not found', COALESCE(job::text, 'NULL'));
    END IF;
    IF has_waiting THEN
        LOCK TABLE job_after_turn IN SHARE UPDATE EXCLUSIVE MODE;
    END IF;
    INSERT INTO job_wait AS w (job_id, scheduled_at, if_dead) VALUES (job, due, after.if_dead)
        ON CONFLICT ON CONSTRAINT job_wait_pkey DO UPDATE SET if_dead = excluded.if_dead;
    -- In the order of ids, so that two calls don't lock each other out.
    FOREACH other IN ARRAY ARRAY(SELECT DISTINCT p FROM unnest(predecessors) AS p ORDER BY p) LOOP
        UPDATE job j SET flags = j.flags | 16 WHERE j.id = other;
        other_state := NULL;
        IF NOT FOUND THEN
            SELECT h.state INTO other_state FROM job_history h WHERE h.id = other AND h.retried_at IS NULL;
            IF NOT FOUND THEN
                RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('after: job %s not found', other);
            END IF;
        END IF;
        INSERT INTO job_after (job_id, after_id, state) VALUES (job, other, other_state) ON CONFLICT DO NOTHING;
    END LOOP;
    -- Now that their rows are locked, nobody lets them wait for others meanwhile.
    IF job = ANY (predecessors) OR (has_waiting AND wait_for(predecessors, job)) THEN
        SELECT p INTO other FROM unnest(predecessors) AS p WHERE p = job OR wait_for(ARRAY[p], job) ORDER BY p LIMIT 1;
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('job %s waits for job %s: that would be a circle', other, job);
    END IF;
    UPDATE job j SET flags = j.flags | 32, scheduled_at = job_waits() WHERE j.id = job;
    INSERT INTO job_wake VALUES (job); -- perhaps all have ended
    RETURN job;
END $$;

-- By the leading scheduler, each second: jobs whose predecessors have all ended become due, or are cancelled. Returns how many, how many
-- could not be changed, and why the last one: those are tried again each time.
CREATE FUNCTION release_jobs(most integer DEFAULT 1000, OUT released bigint, OUT failed bigint, OUT why text)
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
                PERFORM keep_predecessors(w.job_id);
                DELETE FROM job_wait t WHERE t.job_id = w.job_id;
                DELETE FROM job_after a WHERE a.job_id = w.job_id;
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

-- As repair_batches(), for jobs that wait for one that is gone: its end counts as in its batch. A look at the first ten thousand of
-- those that are waited for.
CREATE FUNCTION repair_waits() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    gone bigint[] := ARRAY(SELECT DISTINCT o.after_id
                             FROM (SELECT a.after_id FROM job_after a WHERE a.state IS NULL ORDER BY a.after_id LIMIT 10000) AS o
                            WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = o.after_id));
BEGIN
    IF gone = '{}' THEN
        RETURN 0;
    END IF;
    WITH told AS (
        UPDATE job_after a
           SET state = COALESCE((SELECT h.state FROM job_history h WHERE h.id = a.after_id AND h.retried_at IS NULL LIMIT 1), 'cancelled')
         WHERE a.ctid = ANY (ARRAY(SELECT o.ctid FROM job_after o WHERE o.after_id = ANY (gone) AND o.state IS NULL
                                      FOR NO KEY UPDATE SKIP LOCKED))
           AND a.state IS NULL AND NOT EXISTS (SELECT FROM job j WHERE j.id = a.after_id)
        RETURNING a.job_id
    )
    INSERT INTO job_wake SELECT job_id FROM told;
    RETURN cardinality(gone);
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
       flags, version, unique_key, backoff, exclusive_key, share_key, second_key, grace, owner
  FROM job
UNION ALL
SELECT id, kind, queue, args, priority, share, state, created_at,
       CASE WHEN flags & 32 = 0 OR scheduled_at <> job_waits() THEN scheduled_at END,
       CASE WHEN flags & 32 = 0 OR ready_at <> job_waits() THEN ready_at END,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000'),
       NULLIF(attempted_at, 'epoch'), max_attempts, timeout, tags, metadata,
       finalized_at, result, error, flags, version, unique_key, backoff, exclusive_key, share_key, second_key, grace, owner
  FROM job_history
 WHERE retried_at IS NULL;

-- Those that the session's role may act for, in a cluster with owners.
CREATE VIEW own_jobs WITH (security_barrier) AS SELECT j.* FROM jobs j WHERE j.owner IN (SELECT own_roles());

-- ---- the end of a job ----
-- What the end of a job is to do besides, by job.flags: 1 = its unique key is free; 32 = it waited for others; 64 = its cancel was asked
-- for while it ran. (2 and 4, limits, are freed by free_ended().) One trigger for all, since each costs every job a look. Whatever ends a
-- job deletes its row, so this holds for programs of every release. It never waits: a producer may hold the row of a key for long.
-- Sessions of workers plan each statement anew, which would cost more here than all that it does.
CREATE FUNCTION job_ended() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET jit = off AS $$
BEGIN
    IF OLD.flags & 1 <> 0 THEN
        DELETE FROM job_key
         WHERE ctid = (SELECT k.ctid FROM job_key k WHERE k.key = OLD.unique_key AND k.job_id = OLD.id FOR UPDATE SKIP LOCKED);
    END IF;
    IF OLD.flags & 32 <> 0 THEN
        IF EXISTS (SELECT FROM job_wait w WHERE w.job_id = OLD.id) THEN
            PERFORM keep_predecessors(OLD.id);
            DELETE FROM job_wait w WHERE w.job_id = OLD.id;
            DELETE FROM job_after a WHERE a.job_id = OLD.id;
        END IF;
    END IF;
    IF OLD.flags & 2048 <> 0 THEN
        DELETE FROM job_deadline d WHERE d.job_id = OLD.id;
    END IF;
    IF OLD.flags & 64 <> 0 THEN
        DELETE FROM job_live l WHERE l.id = OLD.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_ended AFTER DELETE ON job FOR EACH ROW WHEN (OLD.flags & 2145 <> 0) EXECUTE FUNCTION job_ended();

-- What its batch (8) and those who wait for it (16) are told when it comes into the history, which knows how it ended. To look that up
-- from the other trigger would take a plan over all days for each job.
CREATE FUNCTION job_in_history() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET jit = off AS $$
BEGIN
    IF NEW.flags & 8 <> 0 THEN
        UPDATE batch_job m SET state = NEW.state WHERE m.job_id = NEW.id;
    END IF;
    IF NEW.flags & 16 <> 0 THEN
        WITH told AS (
            UPDATE job_after a SET state = NEW.state WHERE a.after_id = NEW.id AND a.state IS NULL RETURNING a.job_id
        )
        INSERT INTO job_wake SELECT job_id FROM told;
        IF FOUND AND (SELECT hungry FROM cluster) AND may_notify() THEN -- as in job_inserted()
            PERFORM pg_notify('claimd', 'ended');
        END IF;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_in_history AFTER INSERT ON job_history FOR EACH ROW WHEN (NEW.flags & 24 <> 0) EXECUTE FUNCTION job_in_history();

-- A job that is retried wants its key back, is open again in its batch, unless that is over, and those who wait for it go on waiting.
CREATE FUNCTION job_again() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    holder bigint;
BEGIN
    IF NEW.flags & 1 <> 0 THEN
        -- Its end may have left the key behind; who enqueues meanwhile must not find a job that is over there.
        DELETE FROM job_key k WHERE k.key = NEW.unique_key AND k.job_id = NEW.id;
        holder := (take_key(NEW.unique_key, 'open', NULL, NEW.id)).job_id;
        IF holder <> NEW.id THEN
            RAISE EXCEPTION USING ERRCODE = 'CL004', DETAIL = holder::text,
                MESSAGE = format('job %s can''t be retried: job %s has its unique key now', NEW.id, holder);
        END IF;
    END IF;
    IF NEW.flags & 8 <> 0 THEN
        -- Its batch first: who ends it sees this job open, or we see that it is over.
        PERFORM FROM batch b JOIN batch_job m ON m.batch_id = b.id WHERE m.job_id = NEW.id AND b.over_at IS NULL FOR KEY SHARE OF b;
        IF FOUND THEN
            UPDATE batch_job m SET state = NULL WHERE m.job_id = NEW.id;
        END IF;
    END IF;
    IF NEW.flags & 16 <> 0 THEN
        UPDATE job_after a SET state = NULL WHERE a.after_id = NEW.id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER job_again AFTER INSERT ON job FOR EACH ROW WHEN (NEW.flags & 25 <> 0 AND NEW.generation > 0)
    EXECUTE FUNCTION job_again();

REVOKE ALL ON FUNCTION refuse_batch, batch_open, batch_add, batch_close, batch_cancel, batch_status, end_batches, wait_for, after,
    follow_up_of, batch_of, release_jobs, job_ended, job_in_history, job_again, repair_batches, repair_waits FROM PUBLIC;
GRANT EXECUTE ON FUNCTION batch_open, batch_add, batch_close, batch_cancel, batch_status, batch_of, after TO claimd_admin, claimd_producer;
GRANT EXECUTE ON FUNCTION batch_status, batch_of TO claimd_reader;
GRANT SELECT ON own_jobs TO claimd_admin, claimd_producer, claimd_reader;
GRANT SELECT ON batch, batch_job, batches, job_wait, job_after, job_wake TO claimd_admin, claimd_reader;
GRANT DELETE ON batch TO claimd_admin;

-- ---- down ----
UPDATE job j SET scheduled_at = GREATEST(w.scheduled_at, clock_timestamp()) FROM job_wait w
 WHERE j.id = w.job_id AND j.state = 'available' AND j.scheduled_at = job_waits();
DROP TRIGGER job_ended ON job;
DROP TRIGGER job_again ON job;
DROP TRIGGER job_in_history ON job_history;
DROP FUNCTION job_ended, job_in_history, job_again, after, wait_for, release_jobs, batch_status, batch_open, batch_add, batch_close, batch_cancel,
    batch_of, follow_up_of, refuse_batch, end_batches, repair_batches, repair_waits;
DROP VIEW batches;
DROP VIEW own_jobs;
DROP VIEW jobs;
DROP TABLE job_wake, job_after_turn, job_after, job_wait, batch_job, batch;

-- Both tables with the states that people know.
CREATE VIEW jobs AS
SELECT id, kind, queue, args, priority, share,
       CASE WHEN state = 'running' THEN 'running'
            WHEN ready_at <= statement_timestamp() THEN 'available'
            WHEN attempt > 0 THEN 'retryable'
            ELSE 'scheduled' END AS state,
       created_at, scheduled_at, ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000') AS worker_id,
       NULLIF(attempted_at, 'epoch') AS attempted_at, max_attempts, timeout, tags, metadata,
       NULL::timestamptz AS finalized_at, NULL::jsonb AS result, NULL::text AS error
  FROM job
UNION ALL
SELECT id, kind, queue, args, priority, share, state, created_at, scheduled_at, ready_at,
       attempt, crashes, generation, fence, NULLIF(worker_id, '00000000-0000-0000-0000-000000000000'),
       NULLIF(attempted_at, 'epoch'), max_attempts, timeout, tags, metadata,
       finalized_at, result, error
  FROM job_history;

GRANT SELECT ON jobs TO claimd_admin, claimd_reader;
