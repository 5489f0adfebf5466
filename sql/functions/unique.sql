-- SPDX-License-Identifier: Apache-2.0
-- Unique jobs: their keys, which job holds a key, and until when.

-- Returns the fields of an element that may make it meet an existing job.
CREATE OR REPLACE FUNCTION unique_fields() RETURNS text[] LANGUAGE sql IMMUTABLE
RETURN '{unique_key,unique_by,unique_for,unique_states,on_conflict}'::text[];

CREATE OR REPLACE FUNCTION parts_are_known(unique_by text[]) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN cardinality(unique_by) BETWEEN 1 AND 32
       AND NOT EXISTS (SELECT FROM unnest(unique_by) AS part WHERE (part ~ '^(kind|queue|args|args\..+)$') IS NOT TRUE);
END $$;

CREATE OR REPLACE FUNCTION why_not_unique(r job_request) RETURNS text
LANGUAGE sql STABLE
RETURN CASE
    WHEN (r.on_conflict IN ('error', 'ignore', 'replace_args', 'reschedule', 'replace')) IS NOT TRUE
    THEN 'on_conflict: must be error, ignore, replace_args, reschedule or replace'
    WHEN octet_length(r.unique_key) NOT BETWEEN 1 AND 512
    THEN 'unique_key: must have 1 to 512 bytes'
    WHEN r.unique_key IS NOT NULL AND NOT r.unique_by <@ '{kind,queue}'
    THEN 'unique_by: together with unique_key, must be a list of kind and queue'
    WHEN r.unique_key IS NULL AND r.unique_by IS NULL
    THEN CASE WHEN r.unique_for IS NOT NULL THEN 'unique_for: needs unique_key or unique_by'
              WHEN r.unique_states IS NOT NULL THEN 'unique_states: needs unique_key or unique_by' END
    WHEN r.unique_by IS NOT NULL AND NOT parts_are_known(r.unique_by)
    THEN 'unique_by: must be a list of kind, queue, args and args.NAME, at most 32'
    WHEN r.unique_for <= interval '0' OR r.unique_for > interval '366 days'
    THEN 'unique_for: must be more than 0 and at most 366 days'
    WHEN r.unique_states NOT IN ('queued', 'open', 'completed', 'all')
    THEN 'unique_states: must be queued, open, completed or all'
    WHEN r.unique_states IN ('completed', 'all') AND r.unique_for IS NULL
    THEN 'unique_states: ' || r.unique_states || ' needs unique_for'
END;

-- Returns the key that `unique_by` makes of a request: a JSON text, or its hash if it is long.
CREATE OR REPLACE FUNCTION key_of_parts(r job_request) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    key text := (SELECT (jsonb_object_agg(part, CASE part WHEN 'kind' THEN to_jsonb(r.kind)
                                                         WHEN 'queue' THEN to_jsonb(r.queue)
                                                         WHEN 'args' THEN r.args
                                                         ELSE r.args -> substr(part, 6) END)
                         || CASE WHEN r.unique_key IS NULL THEN '{}' ELSE jsonb_build_object('key', r.unique_key) END)::text
                   FROM unnest(r.unique_by) AS part);
BEGIN
    RETURN CASE WHEN octet_length(key) <= 512 THEN key ELSE 'sha256:' || encode(sha256(convert_to(key, 'UTF8')), 'hex') END;
END $$;

-- Returns the key that a request wants, or NULL if it wants none.
CREATE OR REPLACE FUNCTION request_key(r job_request) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN r.unique_by IS NULL THEN r.unique_key ELSE key_of_parts(r) END;

-- True if the job has ended, but not as completed. The settings force the use of an index: the history may have
-- been small when this was planned.
CREATE OR REPLACE FUNCTION ended_badly(job_id bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
    RETURN EXISTS (SELECT FROM job_history h WHERE h.id = job_id AND h.retried_at IS NULL AND h.state <> 'completed');
END $$;

-- True if the job that has the key stands in the way of another one.
CREATE OR REPLACE FUNCTION key_holds(k job_key) RETURNS boolean
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    found_state text;
BEGIN
    IF k.expires_at <= clock_timestamp() THEN
        RETURN false;
    END IF;
    SELECT j.state INTO found_state FROM job j WHERE j.id = k.job_id;
    IF FOUND THEN
        RETURN k.states <> 'queued' OR found_state = 'available';
    END IF;
    RETURN k.states = 'all' OR (k.states = 'completed' AND NOT ended_badly(k.job_id));
END $$;

-- Gives the key to the job, unless another job stands in the way; returns the key's row as it is then. Of two calls at the same time,
-- one waits for the other's transaction. If another job has the key, nothing is locked, except the key if this call has waited for it.
CREATE OR REPLACE FUNCTION take_key(wanted text, states text, expires_at timestamptz, new_id bigint) RETURNS job_key
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    holder job_key;
    taken job_key;
BEGIN
    FOR try IN 1..100 LOOP
        INSERT INTO job_key AS k (key, job_id, states, expires_at) VALUES (wanted, new_id, take_key.states, take_key.expires_at)
            ON CONFLICT ON CONSTRAINT job_key_pkey DO NOTHING
            RETURNING k.* INTO taken;
        IF FOUND THEN
            RETURN taken;
        END IF;
        SELECT * INTO holder FROM job_key k WHERE k.key = wanted;
        CONTINUE WHEN NOT FOUND;
        IF key_holds(holder) THEN
            RETURN holder;
        END IF;
        UPDATE job_key k SET job_id = new_id, states = take_key.states, expires_at = take_key.expires_at
         WHERE k.key = wanted AND k.job_id = holder.job_id
        RETURNING k.* INTO taken;
        IF FOUND THEN
            RETURN taken;
        END IF;
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'unique_key: other transactions keep taking it: try again';
END $$;

-- Does what on_conflict says about the job that has the key, or raises CL004. False if that job no longer stands in the way, because
-- it has just started or ended.
CREATE OR REPLACE FUNCTION meet_holder(r job_request, holder job_key) RETURNS boolean
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    found_state text;
BEGIN
    IF r.on_conflict = 'ignore' THEN
        RETURN true;
    END IF;
    IF r.on_conflict <> 'error' THEN
        PERFORM check_job_owners(ARRAY[holder.job_id]);
        BEGIN
            PERFORM edit(holder.job_id, CASE r.on_conflict WHEN 'replace_args' THEN jsonb_build_object('args', r.args)
                                                           WHEN 'replace' THEN jsonb_build_object('args', r.args, 'scheduled_at', r.scheduled_at)
                                                           ELSE jsonb_build_object('scheduled_at', r.scheduled_at) END);
            RETURN true;
        EXCEPTION WHEN SQLSTATE 'CL003' THEN
            NULL; -- it doesn't wait (any more)
        END;
    END IF;
    IF NOT key_holds(holder) THEN
        RETURN false;
    END IF;
    SELECT CASE WHEN j.state = 'running' THEN ' and runs' ELSE ' and waits' END INTO found_state FROM job j WHERE j.id = holder.job_id;
    RAISE EXCEPTION USING ERRCODE = 'CL004', DETAIL = holder.job_id::text,
        MESSAGE = format('unique_key: job %s has this key%s%s', holder.job_id, COALESCE(found_state, ' and has ended'),
                         CASE WHEN r.on_conflict <> 'error' THEN ': only one that waits can be changed' END);
END $$;

-- Runs at the commit, so that a job is locked for as long as the commit takes, not for as long as a producer's transaction: with many
-- producers, one of them always has a transaction open, and the job would never start. The key is locked before its job, and keys are
-- locked in their order. A transaction keeps the lock on a row that it has waited for, even if the row is no longer the wanted one;
-- so producers of one key that locked its jobs first would wait for each other in a cycle. As it is, they queue up for the key, and
-- the worker that claims the job waits for at most one of them.
CREATE OR REPLACE FUNCTION keep_promises() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    p record;
    holder bigint;
BEGIN
    FOR p IN WITH mine AS (DELETE FROM job_promise WHERE xact = pg_current_xact_id() RETURNING key, request)
             SELECT key, request FROM mine ORDER BY key LOOP
        SELECT k.job_id INTO holder FROM job_key k WHERE k.key = p.key FOR NO KEY UPDATE;
        PERFORM FROM job j WHERE j.id = holder AND j.state = 'available' FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            PERFORM enqueue_request(jsonb_populate_record(NULL::job_request, p.request));
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION unique_fields, parts_are_known, why_not_unique, key_of_parts, request_key, ended_badly,
    key_holds, take_key, meet_holder, keep_promises FROM PUBLIC, {roles};
