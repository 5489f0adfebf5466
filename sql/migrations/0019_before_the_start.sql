-- SPDX-License-Identifier: Apache-2.0
-- What a job knows of those that it came after, and the time by which it must begin. Jobs that use neither cost nothing for them. The
-- guide: docs/guide/batches.md, docs/guide/enqueueing.md.

-- ---- those that it came after ----
-- For whom a job has waited: from the end of its waiting on, for its handler, its retries and those who ask.
CREATE TABLE job_waited (
    job_id bigint NOT NULL,
    ended_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- the waiting
    after_ids bigint[] NOT NULL, -- rising
    CONSTRAINT job_waited_pkey PRIMARY KEY (job_id)
);
CREATE INDEX job_waited_ended ON job_waited USING brin (ended_at);

CREATE FUNCTION keep_predecessors(job bigint) RETURNS void
LANGUAGE sql SET search_path = claimd, pg_catalog, pg_temp AS $$
    INSERT INTO job_waited AS w (job_id, after_ids)
    SELECT a.job_id, array_agg(a.after_id ORDER BY a.after_id) FROM job_after a WHERE a.job_id = keep_predecessors.job GROUP BY a.job_id
        ON CONFLICT ON CONSTRAINT job_waited_pkey
        DO UPDATE SET ended_at = excluded.ended_at,
                      after_ids = ARRAY(SELECT DISTINCT u.id FROM unnest(w.after_ids || excluded.after_ids) AS u(id) ORDER BY u.id)
$$;

-- The jobs that a job waits for, or has waited for, as they are now; NULLs where a job's history has been dropped.
CREATE FUNCTION predecessors(job bigint) RETURNS TABLE (id bigint, kind text, state text, result jsonb, error text)
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

-- The same as a JSON array, for the handler of the job; NULL: it came after no job; null: longer than that.
CREATE FUNCTION predecessors_text(job bigint, most integer) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT CASE WHEN octet_length(a.json) <= most THEN a.json ELSE 'null' END
      FROM (SELECT json_agg(to_jsonb(p) ORDER BY p.id)::text AS json FROM predecessors(job) AS p) AS a
     WHERE a.json IS NOT NULL
$$;

-- ---- many that come after others, at once ----
-- Of element n of an array: the elements before it that its job comes after.
CREATE FUNCTION why_not_after_jobs(after_jobs integer[], n bigint) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN array_ndims(after_jobs) > 1 OR cardinality(after_jobs) NOT BETWEEN 1 AND 10000
                 OR array_position(after_jobs, NULL) IS NOT NULL OR 0 > ANY (after_jobs) OR n <= ANY (after_jobs)
            THEN 'after_jobs: must be 1 to 10000 positions, from 0, of elements before this one' END;

-- What is wrong with the predecessors of element n of an array.
CREATE FUNCTION why_not_after_any(r job_request, n bigint) RETURNS text
LANGUAGE sql STABLE
RETURN COALESCE(why_not_after(COALESCE(r.after, CASE WHEN r.after_jobs IS NOT NULL THEN '{1}'::bigint[] END), r.if_dead),
                why_not_after_jobs(r.after_jobs, n));

-- The flags of each element of enqueue_many(): 32 = it waits for others; 16 = later elements wait for it.
CREATE FUNCTION waiting_marks(jobs jsonb) RETURNS smallint[]
LANGUAGE sql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    WITH told AS MATERIALIZED (
        SELECT e.n, r."after" IS NOT NULL OR r.after_jobs IS NOT NULL AS waits, r.after_jobs
          FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e(request, n)
         CROSS JOIN LATERAL jsonb_to_record(e.request) AS r("after" bigint[], after_jobs integer[])
    )
    SELECT array_agg((CASE WHEN t.waits THEN 32 ELSE 0 END + CASE WHEN p.n IS NULL THEN 0 ELSE 16 END)::smallint ORDER BY t.n)
      FROM told t
      LEFT JOIN (SELECT DISTINCT u.at + 1::bigint AS n FROM told o CROSS JOIN unnest(o.after_jobs) AS u(at)) AS p ON p.n = t.n
$$;

-- Lets the jobs of an array, which enqueue_many() or enqueue_many_unique() has made just now, wait for others, as after() does for one.
-- Nobody knows them, so none can close a circle: one that names the id of another of them has guessed it. `made`: which of them are new,
-- if none has its flags yet; NULL: all, with waiting_marks(). Arrays are planned anew each time: their size matters.
CREATE FUNCTION after_many(jobs jsonb, ids bigint[], made boolean[] DEFAULT NULL) RETURNS void
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
    told AS (UPDATE job j SET flags = j.flags | 16 FROM locked l WHERE j.id = l.id RETURNING j.id)
    SELECT COALESCE(array_agg(t.id), '{}') INTO open_ids FROM told t;
    SELECT COALESCE(array_agg(h.id), '{}'), array_agg(h.state) INTO ended_ids, ended_states FROM job_history h
     WHERE h.id = ANY (ARRAY(SELECT unnest(wanted) EXCEPT SELECT unnest(open_ids))) AND h.retried_at IS NULL;
    SELECT p.n - 1 AS n, p.id INTO missing FROM unnest(places, others, named) AS p(n, id, is_named)
     WHERE NOT (p.id = ANY (open_ids || ended_ids) OR (p.id = ANY (new_ids) AND NOT p.is_named)) ORDER BY p.n, p.id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('jobs[%s]: after: job %s not found', missing.n, missing.id);
    END IF;
    IF made IS NOT NULL THEN
        UPDATE job j SET flags = j.flags | m.mark, scheduled_at = CASE WHEN m.mark & 32 <> 0 THEN job_waits() ELSE j.scheduled_at END
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

-- ---- its deadline: if it has not begun by then, it is discarded, with the error 'expired' ----
CREATE TABLE job_deadline (
    job_id bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT job_deadline_pkey PRIMARY KEY (job_id)
);
CREATE INDEX job_deadline_expires ON job_deadline (expires_at);

-- Of the jobs that enqueue_many() has made of an array.
CREATE FUNCTION set_deadlines(jobs jsonb, ids bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM require_program(19); -- an older one would start them late
    INSERT INTO job_deadline (job_id, expires_at)
    SELECT ids[e.n], (e.request ->> 'expires_at')::timestamptz FROM jsonb_array_elements(jobs) WITH ORDINALITY AS e(request, n)
     WHERE e.request ->> 'expires_at' IS NOT NULL;
END $$;

-- Discards those of the jobs that have expired. What somebody has locked is left out.
CREATE FUNCTION expire(ids bigint[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    expired bigint[] := ARRAY(SELECT d.job_id FROM job_deadline d WHERE d.job_id = ANY (ids) AND d.expires_at <= clock_timestamp());
    done bigint;
BEGIN
    IF expired = '{}' THEN
        RETURN 0;
    END IF;
    WITH gone AS (
        DELETE FROM job j
         WHERE j.id = ANY (ARRAY(SELECT o.id FROM job o WHERE o.id = ANY (expired) AND o.state = 'available' AND o.attempt = 0
                                    FOR UPDATE SKIP LOCKED))
        RETURNING j.*
    )
    INSERT INTO job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, crashes,
                             generation, priority, share, state, error, queue, kind, args, max_attempts, timeout, tags, metadata,
                             flags, version, unique_key, backoff, exclusive_key, share_key, second_key, grace, owner)
    SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.crashes,
           g.generation, g.priority, g.share, 'discarded', 'expired', g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags,
           g.metadata, g.flags, g.version, g.unique_key, g.backoff, g.exclusive_key, g.share_key, g.second_key,
           g.grace, g.owner
      FROM gone g;
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
END $$;

-- By the leading scheduler, each second: jobs that have expired, those first that did so first. What has begun by then will not expire.
-- Returns how many.
CREATE FUNCTION expire_jobs(most integer DEFAULT 1000) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    due bigint[] := ARRAY(SELECT d.job_id FROM job_deadline d WHERE d.expires_at <= clock_timestamp() ORDER BY d.expires_at LIMIT most);
    done bigint := expire(due);
BEGIN
    DELETE FROM job_deadline d
     WHERE d.job_id = ANY (due) AND NOT EXISTS (SELECT FROM job j WHERE j.id = d.job_id AND j.state = 'available' AND j.attempt = 0);
    RETURN done;
END $$;

REVOKE ALL ON FUNCTION keep_predecessors, predecessors, predecessors_text, why_not_after_jobs, why_not_after_any, waiting_marks,
    after_many, set_deadlines, expire, expire_jobs FROM PUBLIC;
GRANT EXECUTE ON FUNCTION predecessors TO claimd_admin, claimd_producer, claimd_reader;
GRANT EXECUTE ON FUNCTION predecessors_text TO claimd_worker;
GRANT SELECT ON job_waited, job_deadline TO claimd_admin, claimd_reader;

-- ---- down ----
DROP FUNCTION expire_jobs, expire, set_deadlines, after_many, waiting_marks, why_not_after_any, why_not_after_jobs, predecessors_text,
    predecessors, keep_predecessors;
DROP TABLE job_deadline, job_waited;
