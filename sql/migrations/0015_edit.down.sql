-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION edit(bigint, jsonb, integer), refuse_patch(jsonb);
-- Forgets a finished job: all its generations and failed attempts. Returns its state.
CREATE OR REPLACE FUNCTION delete_job(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    found_state text;
BEGIN
    IF id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'id: must not be NULL';
    END IF;
    DELETE FROM job_history h WHERE h.id = delete_job.id AND h.retried_at IS NULL RETURNING h.state INTO found_state;
    IF found_state IS NULL THEN
        SELECT j.state INTO found_state FROM job j WHERE j.id = delete_job.id;
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = 'job ' || id || COALESCE(' is ' || found_state || ': only a finished job can be deleted', ' not found');
    END IF;
    DELETE FROM job_history h WHERE h.id = delete_job.id;
    DELETE FROM job_attempt a WHERE a.job_id = delete_job.id;
    RETURN found_state;
END $$;
DROP TABLE job_edit;
