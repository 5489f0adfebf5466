-- SPDX-License-Identifier: Apache-2.0
-- Queued jobs are edited: by whom and when, and what they were before.
CREATE TABLE job_edit (
    job_id bigint NOT NULL,
    version integer NOT NULL, -- of the job, since this edit
    generation integer NOT NULL,
    edited_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    edited_by text NOT NULL DEFAULT session_user,
    before jsonb NOT NULL, -- what the edit was about
    after jsonb NOT NULL,
    CONSTRAINT job_edit_pkey PRIMARY KEY (job_id, version)
);
CREATE INDEX job_edit_at ON job_edit USING brin (edited_at);
GRANT SELECT ON job_edit TO claimd_admin, claimd_reader;

CREATE FUNCTION refuse_patch(patch jsonb) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := '{args,priority,scheduled_at,queue,max_attempts,timeout,tags,metadata}';
    field text;
    wrong text;
    r job_request;
BEGIN
    IF patch IS NULL OR jsonb_typeof(patch) <> 'object' OR patch = '{}' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002',
            MESSAGE = 'patch: must be a JSON object with at least one of ' || array_to_string(known, ', ');
    END IF;
    FOR field IN SELECT jsonb_object_keys(patch) LOOP
        IF field <> ALL (known) THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002',
                MESSAGE = format('patch.%s: unknown, must be one of %s', left(field, 64), array_to_string(known, ', '));
        END IF;
        BEGIN
            PERFORM jsonb_populate_record(NULL::job_request, jsonb_build_object(field, patch -> field));
        EXCEPTION WHEN data_exception THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002',
                MESSAGE = format('patch.%s: must be of type %s: %s', field,
                                 (SELECT format_type(atttypid, atttypmod) FROM pg_attribute
                                   WHERE attrelid = 'job_request'::regclass AND attname = field), SQLERRM);
        END;
    END LOOP;
    r := jsonb_populate_record(NULL::job_request, patch);
    wrong := why_refused('a', CASE WHEN patch ? 'args' THEN patch -> 'args' ELSE '{}' END,
                         CASE WHEN patch ? 'queue' THEN r.queue ELSE 'a' END,
                         CASE WHEN patch ? 'priority' THEN r.priority ELSE 4 END,
                         r.scheduled_at, r.max_attempts, r.timeout, NULL, r.tags, r.metadata);
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'patch.' || wrong;
    END IF;
END $$;

-- Changes a queued job: what runs is what the row says when it is claimed. null means the default: no tags or metadata, the kind's
-- limits, now. CL003 when it isn't queued (any more), or its version is not the expected one. Returns its new version.
-- A due job that gets another queue or priority is due anew, at the end of that lane: ahead of the feed's cursor, like a new job. Hints
-- of what it was may be left: a worker that claims it by one, and doesn't serve its queue, hands it back; older ones would run it.
CREATE FUNCTION edit(id bigint, patch jsonb, expected_version integer DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    r job_request;
    old job;
    new job;
    found_state text;
    is_moved boolean;
BEGIN
    IF id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'id: must not be NULL';
    END IF;
    PERFORM refuse_patch(patch);
    r := jsonb_populate_record(NULL::job_request, patch);
    SELECT j.* INTO old FROM job j WHERE j.id = edit.id FOR NO KEY UPDATE;
    IF old.state IS DISTINCT FROM 'available' THEN
        SELECT h.state INTO found_state FROM job_history h WHERE h.id = edit.id AND h.retried_at IS NULL;
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = 'job ' || id || CASE WHEN old.state IS NOT NULL THEN ' is ' || old.state || ': only a queued job can be edited'
                                           ELSE COALESCE(' is ' || found_state || ' already', ' not found') END;
    END IF;
    IF old.version <> expected_version THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = format('job %s has version %s, not %s: look at it again', id, old.version, expected_version);
    END IF;
    IF r.max_attempts <= old.attempt THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = format('job %s has had %s attempts: max_attempts must be more', id, old.attempt);
    END IF;
    IF r.queue <> old.queue THEN
        PERFORM require_program(15);
    END IF;
    is_moved := COALESCE(r.queue <> old.queue, false) OR COALESCE(r.priority <> old.priority, false);
    UPDATE job j
       SET version = j.version + 1,
           args = CASE WHEN patch ? 'args' THEN patch -> 'args' ELSE j.args END,
           priority = COALESCE(r.priority, j.priority), queue = COALESCE(r.queue, j.queue),
           scheduled_at = CASE WHEN patch ? 'scheduled_at' THEN GREATEST(r.scheduled_at, clock_timestamp())
                               WHEN is_moved AND j.ready_at <= clock_timestamp() THEN clock_timestamp()
                               ELSE j.scheduled_at END,
           max_attempts = CASE WHEN patch ? 'max_attempts' THEN r.max_attempts ELSE j.max_attempts END,
           timeout = CASE WHEN patch ? 'timeout' THEN r.timeout ELSE j.timeout END,
           tags = CASE WHEN patch ? 'tags' THEN r.tags ELSE j.tags END,
           metadata = CASE WHEN patch ? 'metadata' THEN r.metadata ELSE j.metadata END
     WHERE j.id = edit.id
    RETURNING j.* INTO new;
    INSERT INTO job_edit (job_id, version, generation, before, after)
    SELECT new.id, new.version, new.generation, jsonb_object_agg(k, to_jsonb(old) -> k), jsonb_object_agg(k, to_jsonb(new) -> k)
      FROM jsonb_object_keys(patch) AS k;
    IF new.ready_at <> old.ready_at AND (SELECT hungry FROM cluster) THEN
        PERFORM pg_notify('claimd', '');
    END IF;
    RETURN new.version;
END $$;
REVOKE ALL ON FUNCTION refuse_patch, edit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION edit TO claimd_admin;

-- Forgets a finished job: all its generations, failed attempts and edits. Returns its state.
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
    DELETE FROM job_edit e WHERE e.job_id = delete_job.id;
    RETURN found_state;
END $$;
