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

-- ---- its deadline: if it has not begun by then, it is discarded, with the error 'expired' ----
CREATE TABLE job_deadline (
    job_id bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT job_deadline_pkey PRIMARY KEY (job_id)
);
CREATE INDEX job_deadline_expires ON job_deadline (expires_at);

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
                             flags, version, unique_key, backoff, exclusive_key, share_key, second_key)
    SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.crashes,
           g.generation, g.priority, g.share, 'discarded', 'expired', g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags,
           g.metadata, g.flags, g.version, g.unique_key, g.backoff, g.exclusive_key, g.share_key, g.second_key
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

REVOKE ALL ON FUNCTION keep_predecessors, predecessors, predecessors_text, expire, expire_jobs FROM PUBLIC;
GRANT EXECUTE ON FUNCTION predecessors TO claimd_admin, claimd_producer, claimd_reader;
GRANT EXECUTE ON FUNCTION predecessors_text TO claimd_worker;
GRANT SELECT ON job_waited, job_deadline TO claimd_admin, claimd_reader;
