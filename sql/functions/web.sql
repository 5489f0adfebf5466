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

-- Takes the Idempotency-Key of a request for a day. Returns no row: the key is new, and web_key_keep() must follow in the same
-- transaction. Otherwise, whether its request was another one, and the answer to it. Waits for another transaction that has just taken
-- the key. Each new key removes up to 10 that are older than a day.
CREATE OR REPLACE FUNCTION web_key_take(who text, key text, request text) RETURNS TABLE (is_other boolean, answer text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    request_hash bytea := sha256(convert_to(request, 'UTF8'));
BEGIN
    DELETE FROM web_key k WHERE k.who = web_key_take.who AND k.key = web_key_take.key AND k.at < clock_timestamp() - interval '1 day';
    INSERT INTO web_key AS k (who, key, request) VALUES (web_key_take.who, web_key_take.key, request_hash)
        ON CONFLICT ON CONSTRAINT web_key_pkey DO NOTHING;
    IF NOT FOUND THEN
        RETURN QUERY SELECT k.request <> request_hash, k.answer FROM web_key k WHERE k.who = web_key_take.who AND k.key = web_key_take.key;
        RETURN;
    END IF;
    DELETE FROM web_key k
     USING (SELECT o.who, o.key FROM web_key o WHERE o.at < clock_timestamp() - interval '1 day'
             ORDER BY o.at LIMIT 10 FOR UPDATE SKIP LOCKED) AS old
     WHERE k.who = old.who AND k.key = old.key;
END $$;

-- Stores the answer to the request that has taken the key in this transaction.
CREATE OR REPLACE FUNCTION web_key_keep(who text, key text, answer text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
    UPDATE web_key k SET answer = web_key_keep.answer WHERE k.who = web_key_keep.who AND k.key = web_key_keep.key
$$;

REVOKE ALL ON FUNCTION web_audit_trim, web_key_take, web_key_keep FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION web_audit_trim, web_key_take, web_key_keep, enqueue, enqueue_unique, enqueue_many, batch_add, cancel,
    retry, retry_many, edit, delete_job, limit_key, limit_key_rate, pause_queue, resume_queue, set_queue, weigh_queue, pause_kind,
    resume_kind, schedule_pause, schedule_resume, schedule_run, schedule_next, ask_worker TO claimd_web;
