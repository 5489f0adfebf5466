-- SPDX-License-Identifier: Apache-2.0
CREATE OR REPLACE FUNCTION retry(id bigint, even_completed boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    found_state text;
BEGIN
    IF id IS NULL OR even_completed IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002',
            MESSAGE = CASE WHEN id IS NULL THEN 'id: must not be NULL' ELSE 'even_completed: must be true or false' END;
    END IF;
    WITH former AS (
        UPDATE job_history h SET retried_at = clock_timestamp()
         WHERE h.id = retry.id AND h.retried_at IS NULL AND (even_completed OR h.state <> 'completed')
        RETURNING h.*
    )
    INSERT INTO job (id, fence, created_at, generation, priority, share, queue, kind, args, max_attempts, timeout, tags, metadata,
                     flags, version, unique_key, backoff, exclusive_key)
    OVERRIDING SYSTEM VALUE
    SELECT f.id, f.fence, f.created_at, f.generation + 1, f.priority, f.share, f.queue, f.kind, f.args, f.max_attempts, f.timeout,
           f.tags, f.metadata, f.flags, f.version, f.unique_key, f.backoff, f.exclusive_key
      FROM former f;
    IF FOUND THEN
        RETURN id;
    END IF;
    SELECT j.state INTO found_state FROM job j WHERE j.id = retry.id;
    IF NOT FOUND THEN
        SELECT h.state INTO found_state FROM job_history h WHERE h.id = retry.id AND h.retried_at IS NULL;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'CL003',
        MESSAGE = 'job ' || id || CASE
            WHEN found_state IN ('available', 'running') THEN ' is ' || found_state || ': only a finished job can be retried'
            WHEN found_state = 'completed' AND NOT even_completed THEN ' is completed: only even_completed => true retries it'
            WHEN found_state IS NOT NULL THEN ' has just changed: try again'
            ELSE ' not found' END;
END $$;
DROP FUNCTION retry_many(bigint[], boolean);
