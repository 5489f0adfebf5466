-- SPDX-License-Identifier: Apache-2.0
-- What claimd-web may call besides what readers may.

-- Deletes the audit of acts that are older than 90 days; returns how many.
CREATE OR REPLACE FUNCTION web_audit_trim() RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
    WITH old AS (
        DELETE FROM web_audit
         WHERE id IN (SELECT id FROM web_audit WHERE at < clock_timestamp() - interval '90 days' ORDER BY id LIMIT 10000)
        RETURNING 1
    )
    SELECT count(*) FROM old
$$;

REVOKE ALL ON FUNCTION web_audit_trim FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION web_audit_trim, enqueue, enqueue_unique, enqueue_many, batch_add, cancel, retry, retry_many, edit, delete_job,
    pause_queue, resume_queue, set_queue, weigh_queue, pause_kind, resume_kind, schedule_pause, schedule_resume, schedule_run,
    schedule_next, ask_worker TO claimd_web;
