-- SPDX-License-Identifier: Apache-2.0
-- Jobs that wait for other jobs.

CREATE OR REPLACE FUNCTION why_not_after(after bigint[], if_dead text) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN array_ndims(after) > 1
            THEN 'after: must be a list of ids'
            WHEN cardinality(after) NOT BETWEEN 1 AND 10000 OR array_position(after, NULL) IS NOT NULL
            THEN 'after: must be 1 to 10000 ids, without NULL'
            WHEN if_dead IS NOT NULL AND after IS NULL
            THEN 'if_dead: needs after'
            WHEN if_dead NOT IN ('cancel', 'run', 'hold')
            THEN 'if_dead: must be cancel, run or hold' END;

-- Returns what is wrong with `after_jobs` of element n of an array: the positions of the elements that its job
-- waits for. NULL if it is valid.
CREATE OR REPLACE FUNCTION why_not_after_jobs(after_jobs integer[], n bigint) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN array_ndims(after_jobs) > 1 OR cardinality(after_jobs) NOT BETWEEN 1 AND 10000
                 OR array_position(after_jobs, NULL) IS NOT NULL OR 0 > ANY (after_jobs) OR n <= ANY (after_jobs)
            THEN 'after_jobs: must be 1 to 10000 positions, from 0, of elements before this one' END;

-- Returns what is wrong with the predecessors of element n of an array, or NULL if they are valid.
CREATE OR REPLACE FUNCTION why_not_after_any(r job_request, n bigint) RETURNS text
LANGUAGE sql STABLE
RETURN COALESCE(why_not_after(COALESCE(r.after, CASE WHEN r.after_jobs IS NOT NULL THEN '{1}'::bigint[] END), r.if_dead),
                why_not_after_jobs(r.after_jobs, n));

-- Returns the flags of each element of enqueue_many(): {flag.waits} if it waits for others, {flag.awaited} if later elements wait for it.
CREATE OR REPLACE FUNCTION waiting_marks(jobs jsonb) RETURNS smallint[]
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    WITH told AS MATERIALIZED (
        SELECT e.n, r."after" IS NOT NULL OR r.after_jobs IS NOT NULL AS waits, r.after_jobs
          FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e(request, n)
         CROSS JOIN LATERAL jsonb_to_record(e.request) AS r("after" bigint[], after_jobs integer[])
    )
    SELECT array_agg((CASE WHEN t.waits THEN {flag.waits} ELSE 0 END + CASE WHEN p.n IS NULL THEN 0 ELSE {flag.awaited} END)::smallint ORDER BY t.n)
      FROM told t
      LEFT JOIN (SELECT DISTINCT u.at + 1::bigint AS n FROM told o CROSS JOIN unnest(o.after_jobs) AS u(at)) AS p ON p.n = t.n
$$;

-- True if one of the jobs `waiting` is `job`, or waits for it, directly or through other jobs. The state is tested by an expression
-- that no partial index matches: while the table seems to be empty, such an index would be read from end to end for each job.
CREATE OR REPLACE FUNCTION wait_for(waiting bigint[], job bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
BEGIN
    RETURN EXISTS (WITH RECURSIVE before(id) AS (
                       SELECT unnest(waiting)
                       UNION SELECT a.after_id FROM before b JOIN job_after a ON a.job_id = b.id AND COALESCE(a.state, '') = '')
                   SELECT FROM before WHERE id = job);
END $$;

-- Makes a job that has not started wait for others; returns its id. `if_dead` says what happens if one of these is discarded or cancelled:
-- cancel = the job is cancelled, too; run = it runs all the same; hold = it waits until that one is retried, or this one is cancelled.
CREATE OR REPLACE FUNCTION after(job bigint, predecessors bigint[], if_dead text DEFAULT 'cancel') RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    due timestamptz;
    has_waiting boolean := (SELECT j.flags & {flag.awaited} <> 0 FROM job j WHERE j.id = job);
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
    SELECT j.scheduled_at, j.flags & {flag.awaited} <> 0 INTO due, has_waiting FROM job j WHERE j.id = job AND j.state = 'available' FOR NO KEY UPDATE;
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
        UPDATE job j SET flags = j.flags | {flag.awaited} WHERE j.id = other;
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
    UPDATE job j SET flags = j.flags | {flag.waits}, scheduled_at = job_waits() WHERE j.id = job;
    INSERT INTO job_wake VALUES (job); -- perhaps all have ended
    RETURN job;
END $$;

-- Makes the jobs of an array, which enqueue_many() or enqueue_many_unique() has just inserted, wait for others, as after() does for
-- one. No other session knows their ids, so they can't close a cycle; an element that names the id of another one has guessed it, and
-- is refused. `made`: which of them are new, if none has its flags yet; NULL: all are new and have their flags, from waiting_marks().
-- Statements are planned again at each call, because the sizes of the arrays matter.
CREATE OR REPLACE FUNCTION after_many(jobs jsonb, ids bigint[], made boolean[] DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET enable_seqscan = off
SET jit = off AS $$
DECLARE
    new_ids bigint[] := ARRAY(SELECT u.id FROM unnest(ids, made) AS u(id, is_made) WHERE u.is_made IS NOT FALSE);
    places integer[]; -- pairs: which element,
    others bigint[]; -- the job before it,
    named boolean[]; -- and whether by its id
    wanted bigint[];
    open_ids bigint[];
    ended_ids bigint[];
    ended_states text[];
    missing record;
BEGIN
    SELECT array_agg(p.n), array_agg(p.other), array_agg(p.is_named) INTO places, others, named
      FROM (SELECT e.n, u.id AS other, true AS is_named
              FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e(request, n)
             CROSS JOIN LATERAL jsonb_to_record(e.request) AS r("after" bigint[])
             CROSS JOIN unnest(r."after") AS u(id)
             WHERE e.request ? 'after'
             UNION
            SELECT e.n, ids[u.at + 1], false
              FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e(request, n)
             CROSS JOIN LATERAL jsonb_to_record(e.request) AS r(after_jobs integer[])
             CROSS JOIN unnest(r.after_jobs) AS u(at)
             WHERE e.request ? 'after_jobs') AS p
     WHERE made IS NULL OR made[p.n];
    IF places IS NULL THEN
        RETURN;
    END IF;
    -- In the order of ids, so that two calls don't lock each other out.
    wanted := ARRAY(SELECT u.id FROM unnest(others) AS u(id) EXCEPT SELECT unnest(new_ids));
    PERFORM check_job_owners(wanted);
    WITH locked AS MATERIALIZED (SELECT j.id FROM job j WHERE j.id = ANY (wanted) ORDER BY j.id FOR NO KEY UPDATE),
    told AS (UPDATE job j SET flags = j.flags | {flag.awaited} FROM locked l WHERE j.id = l.id RETURNING j.id)
    SELECT COALESCE(array_agg(t.id), '{}') INTO open_ids FROM told t;
    SELECT COALESCE(array_agg(h.id), '{}'), array_agg(h.state) INTO ended_ids, ended_states FROM job_history h
     WHERE h.id = ANY (ARRAY(SELECT unnest(wanted) EXCEPT SELECT unnest(open_ids))) AND h.retried_at IS NULL;
    SELECT p.n - 1 AS n, p.id INTO missing FROM unnest(places, others, named) AS p(n, id, is_named)
     WHERE NOT (p.id = ANY (open_ids || ended_ids) OR (p.id = ANY (new_ids) AND NOT p.is_named)) ORDER BY p.n, p.id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('jobs[%s]: after: job %s not found', missing.n, missing.id);
    END IF;
    IF made IS NOT NULL THEN
        UPDATE job j SET flags = j.flags | m.mark, scheduled_at = CASE WHEN m.mark & {flag.waits} <> 0 THEN job_waits() ELSE j.scheduled_at END
          FROM unnest(ids, made, waiting_marks(jobs)) AS m(id, is_made, mark)
         WHERE j.id = m.id AND m.is_made AND m.mark <> 0;
    END IF;
    INSERT INTO job_wait (job_id, scheduled_at, if_dead)
    SELECT ids[e.n], CASE WHEN r.scheduled_at >= '0001-01-01 00:00:00+00' THEN r.scheduled_at ELSE clock_timestamp() END,
           COALESCE(r.if_dead, 'cancel')
      FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e(request, n)
     CROSS JOIN LATERAL jsonb_to_record(e.request) AS r(scheduled_at timestamptz, if_dead text)
     WHERE e.n IN (SELECT unnest(places));
    INSERT INTO job_after (job_id, after_id, state)
    SELECT DISTINCT ids[p.n], p.id, h.state FROM unnest(places, others) AS p(n, id)
      LEFT JOIN unnest(ended_ids, ended_states) AS h(id, state) ON h.id = p.id;
    INSERT INTO job_wake -- of the others the end of a predecessor tells
    SELECT ids[p.n] FROM unnest(places, others) AS p(n, id) GROUP BY p.n HAVING bool_and(p.id = ANY (ended_ids));
END $$;

-- Called by the leading scheduler each second: makes jobs due, or cancels them, whose predecessors have all ended. Returns how many,
-- how many could not be changed, and why the last of these; they are tried again each time.
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

-- Does what repair_batches() does for jobs that wait for a job that is gone: the end of that job counts as it does in a batch. Looks
-- at the first ten thousand rows of job_after.
CREATE OR REPLACE FUNCTION repair_waits() RETURNS bigint
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

CREATE OR REPLACE FUNCTION keep_predecessors(job bigint) RETURNS void
LANGUAGE sql SET search_path = claimd, pg_catalog, pg_temp AS $$
    INSERT INTO job_waited AS w (job_id, after_ids)
    SELECT a.job_id, array_agg(a.after_id ORDER BY a.after_id) FROM job_after a WHERE a.job_id = keep_predecessors.job GROUP BY a.job_id
        ON CONFLICT ON CONSTRAINT job_waited_pkey
        DO UPDATE SET ended_at = excluded.ended_at,
                      after_ids = ARRAY(SELECT DISTINCT u.id FROM unnest(w.after_ids || excluded.after_ids) AS u(id) ORDER BY u.id)
$$;

-- Returns the jobs that a job waits for or has waited for, as they are now; with NULLs if the history of such a job has been dropped.
CREATE OR REPLACE FUNCTION predecessors(job bigint) RETURNS TABLE (id bigint, kind text, state text, result jsonb, error text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
BEGIN
    PERFORM check_job_owners(ARRAY[predecessors.job], reads => true);
    RETURN QUERY
    SELECT p.id, j.kind, j.state, j.result, j.error
      FROM (SELECT a.after_id AS id FROM job_after a WHERE a.job_id = predecessors.job
             UNION
            SELECT unnest(w.after_ids) FROM job_waited w WHERE w.job_id = predecessors.job) AS p
      LEFT JOIN LATERAL (SELECT o.kind, o.state, o.result, o.error FROM jobs o WHERE o.id = p.id LIMIT 1) AS j ON true
     ORDER BY p.id;
END $$;

-- Returns the same as a JSON array, for the handler of the job; NULL if the job has no predecessors, and null in JSON if the array
-- would be longer than `most`.
CREATE OR REPLACE FUNCTION predecessors_text(job bigint, most integer) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT CASE WHEN octet_length(a.json) <= most THEN a.json ELSE 'null' END
      FROM (SELECT json_agg(to_jsonb(p) ORDER BY p.id)::text AS json FROM predecessors(job) AS p) AS a
     WHERE a.json IS NOT NULL
$$;

REVOKE ALL ON FUNCTION why_not_after, why_not_after_jobs, why_not_after_any, waiting_marks, wait_for, after,
    after_many, release_jobs, repair_waits, keep_predecessors, predecessors, predecessors_text FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION after TO claimd_admin, claimd_producer;
GRANT EXECUTE ON FUNCTION predecessors TO claimd_admin, claimd_producer, claimd_reader;
GRANT EXECUTE ON FUNCTION predecessors_text TO claimd_worker;
