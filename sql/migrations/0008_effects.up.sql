-- SPDX-License-Identifier: Apache-2.0
-- Completes a running job in the transaction of its handler, so that what the handler wrote and the completion are one commit or none
-- (guarantee G4). CL001 when the claim is not the job's newest any more: the caller must roll back. A transaction whose commit has an
-- unknown outcome must not be repeated with the same fence: that is refused as well. Until the transaction ends it has the job's row.
CREATE FUNCTION complete_in_tx(id bigint, fence bigint, result jsonb DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := CASE
        WHEN id IS NULL THEN 'id: must not be NULL'
        WHEN fence IS NULL OR fence <= 0 THEN 'fence: must be that of a claim'
        WHEN octet_length(result::text) > 65536 THEN 'result: at most 65536 octets as JSON text'
    END;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    WITH gone AS (
        DELETE FROM job j WHERE j.id = complete_in_tx.id AND j.state = 'running' AND j.fence = complete_in_tx.fence RETURNING j.*
    ), unwatched AS (
        DELETE FROM job_live l USING gone g WHERE l.id = g.id
    )
    INSERT INTO job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, generation, priority, share,
                             queue, kind, args, max_attempts, timeout, tags, metadata, flags, version, unique_key, backoff,
                             crashes, state, result)
    SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.generation, g.priority,
           g.share, g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags, g.metadata, g.flags, g.version, g.unique_key, g.backoff,
           g.crashes, 'completed', complete_in_tx.result
      FROM gone g;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'CL001',
            MESSAGE = format('job %s does not run under fence %s (any more): roll back', id, fence);
    END IF;
END $$;
REVOKE ALL ON FUNCTION complete_in_tx FROM PUBLIC;
GRANT EXECUTE ON FUNCTION complete_in_tx TO claimd_admin;
