-- SPDX-License-Identifier: Apache-2.0
-- Editing jobs before they run.

CREATE OR REPLACE FUNCTION refuse_patch(patch jsonb) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := '{args, priority, scheduled_at, expires_at, queue, {given}}';
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
                MESSAGE = format('patch.%s: %s', left(field, 64), why_unknown(field, known));
        END IF;
        r := with_value(r, field, patch -> field, 'patch');
    END LOOP;
    r.kind := 'a'; -- what a patch says nothing of is right as it is
    r.on_conflict := 'error';
    r.args := CASE WHEN patch ? 'args' THEN patch -> 'args' ELSE '{}' END;
    r.queue := CASE WHEN patch ? 'queue' THEN r.queue ELSE 'a' END;
    r.priority := CASE WHEN patch ? 'priority' THEN r.priority ELSE 4 END;
    wrong := request_refusal(r);
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'patch.' || wrong;
    END IF;
END $$;

-- Applies a patch to a job's row. The caller holds the row lock, and records the edit.
-- A due job that gets another queue, priority or key becomes due again at the end of its new lane: ahead of the feed's cursor, like a
-- new job. Hints from before the edit may be left. A worker that claims the job by such a hint, and does not serve its queue, hands
-- it back; workers of an older release would run it.
CREATE OR REPLACE FUNCTION apply_patch(old job, patch jsonb, new_version integer) RETURNS job
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    r job_request := jsonb_populate_record(NULL::job_request, patch);
    wanted job := jsonb_populate_record(old, patch - '{args,priority,scheduled_at,expires_at,queue}'::text[]);
    is_parked boolean := old.flags & {flag.waits} <> 0 AND old.scheduled_at = job_waits(); -- its own time is in job_wait
    is_moved boolean := COALESCE(r.queue <> old.queue, false) OR COALESCE(r.priority <> old.priority, false) OR patch ?| '{exclusive_key,second_key,share_key}';
    new job;
BEGIN
    wanted.exclusive_key := COALESCE(wanted.exclusive_key, wanted.second_key); -- as job_checked() does
    wanted.second_key := NULLIF(wanted.second_key, wanted.exclusive_key);
    IF r.queue <> old.queue THEN
        PERFORM require_program(2);
    END IF;
    IF r.expires_at IS NOT NULL THEN
        PERFORM require_program(19); -- an older one would start it late
        INSERT INTO job_deadline AS d (job_id, expires_at) VALUES (old.id, r.expires_at)
            ON CONFLICT ON CONSTRAINT job_deadline_pkey DO UPDATE SET expires_at = excluded.expires_at;
    ELSIF patch ? 'expires_at' THEN
        DELETE FROM job_deadline d WHERE d.job_id = old.id;
    END IF;
    IF is_parked AND patch ? 'scheduled_at' THEN
        UPDATE job_wait w SET scheduled_at = GREATEST(r.scheduled_at, clock_timestamp()) WHERE w.job_id = old.id;
    END IF;
    UPDATE job j
       SET version = new_version,
           flags = CASE WHEN NOT patch ?| '{exclusive_key,second_key}' THEN j.flags
                        WHEN wanted.exclusive_key IS NULL THEN j.flags & ~{flag.key}
                        ELSE j.flags | exclusive_flag() END & ~CASE WHEN patch ? 'expires_at' THEN {flag.asked|deadline} ELSE {flag.asked} END
                   | CASE WHEN r.expires_at IS NULL THEN 0 ELSE {flag.deadline} END,
           args = CASE WHEN patch ? 'args' THEN patch -> 'args' ELSE j.args END,
           priority = COALESCE(r.priority, j.priority), queue = COALESCE(r.queue, j.queue),
           scheduled_at = CASE WHEN is_parked THEN j.scheduled_at
                               WHEN patch ? 'scheduled_at' THEN GREATEST(r.scheduled_at, clock_timestamp())
                               WHEN is_moved AND j.ready_at <= clock_timestamp() THEN clock_timestamp()
                               ELSE j.scheduled_at END,
           share = CASE WHEN patch ? 'share_key' THEN COALESCE(share_of(r.share_key), 0) ELSE j.share END,
           ({given}) = ROW({wanted.given})
     WHERE j.id = old.id
    RETURNING j.* INTO new;
    RETURN new;
END $$;

-- Returns the edits that were requested for the next attempt while the job ran, as one patch in which the newest value wins.
-- From now on they count as applied.
CREATE OR REPLACE FUNCTION take_kept_edits(j job) RETURNS jsonb
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    kept jsonb := '{}';
    patch jsonb;
BEGIN
    IF j.flags & {flag.asked} <> 0 THEN
        FOR patch IN SELECT e.after FROM job_edit e
                      WHERE e.job_id = j.id AND e.generation = j.generation AND e.applied_at IS NULL ORDER BY e.version LOOP
            kept := kept || patch;
        END LOOP;
        UPDATE job_edit e SET applied_at = clock_timestamp()
         WHERE e.job_id = j.id AND e.generation = j.generation AND e.applied_at IS NULL;
    END IF;
    RETURN kept;
END $$;

-- Returns the job's values of the fields that a patch names.
CREATE OR REPLACE FUNCTION patched_values(j job, patch jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT jsonb_object_agg(k, CASE WHEN k = 'scheduled_at' AND j.scheduled_at = job_waits()
                                            THEN COALESCE((SELECT to_jsonb(w.scheduled_at) FROM job_wait w WHERE w.job_id = j.id),
                                                          to_jsonb(j.scheduled_at))
                                            WHEN k = 'expires_at'
                                            THEN (SELECT to_jsonb(d.expires_at) FROM job_deadline d WHERE d.job_id = j.id)
                                            ELSE to_jsonb(j) -> k END)
              FROM jsonb_object_keys(patch) AS k);
END $$;

-- Changes a queued job: a run uses the row as it is at the claim. null means the default: no tags, metadata or key, the kind's limits, now,
-- no expiry. Raises CL003 if the job is not queued (any more), or its version is not the expected one; CL005 if the new queue is full of
-- open jobs. Returns the new version.
-- With apply => 'next', a running job gets the change when it is claimed for its next attempt, before anything else is decided. If there is
-- no next attempt, the change is dropped, and its row of job_edit shows that (applied_at). Its new queue must have room already.
CREATE OR REPLACE FUNCTION edit(id bigint, patch jsonb, expected_version integer DEFAULT NULL, apply text DEFAULT 'now') RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    old job;
    new job;
    found_state text;
    before jsonb;
BEGIN
    IF id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'id: must not be NULL';
    ELSIF apply IS NULL OR apply NOT IN ('now', 'next') THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'apply: must be now or next';
    END IF;
    PERFORM refuse_patch(patch);
    -- Before the job is locked: whoever enqueues takes room first, too. If the edit is refused, the room is given back.
    PERFORM take_room(q.name, 1)
       FROM queue q
       JOIN job j ON j.id = edit.id AND j.queue <> q.name
      WHERE q.name = patch ->> 'queue' AND q.max_open IS NOT NULL;
    SELECT j.* INTO old FROM job j WHERE j.id = edit.id FOR NO KEY UPDATE;
    IF old.state IS DISTINCT FROM 'available' AND (apply = 'now' OR old.state IS NULL) THEN
        SELECT h.state INTO found_state FROM job_history h WHERE h.id = edit.id AND h.retried_at IS NULL;
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = 'job ' || id || CASE WHEN old.state IS NOT NULL
                                           THEN ' is ' || old.state || ': only a queued job can be edited, or its next attempt '
                                                '(apply => ''next'')'
                                           ELSE COALESCE(' is ' || found_state || ' already', ' not found') END;
    END IF;
    IF old.version <> expected_version THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = format('job %s has version %s, not %s: look at it again', id, old.version, expected_version);
    END IF;
    IF (patch ->> 'max_attempts')::integer <= old.attempt THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = format('job %s has had %s attempts: max_attempts must be more', id, old.attempt);
    END IF;
    IF patch ->> 'expires_at' IS NOT NULL AND old.attempt > 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = format('job %s has begun: it can''t expire any more', id);
    END IF;
    before := patched_values(old, patch);
    IF old.state = 'running' THEN
        PERFORM require_program(2);
        UPDATE job j SET version = j.version + 1, flags = j.flags | {flag.asked} WHERE j.id = edit.id;
        INSERT INTO job_edit (job_id, version, generation, before, after, applied_at)
        VALUES (old.id, old.version + 1, old.generation, before, patch, NULL);
        RETURN old.version + 1;
    END IF;
    new := apply_patch(old, take_kept_edits(old) || patch, old.version + 1);
    INSERT INTO job_edit (job_id, version, generation, before, after)
    VALUES (new.id, new.version, new.generation, before, patched_values(new, patch));
    IF new.ready_at <> old.ready_at AND (SELECT hungry FROM cluster) AND may_notify() THEN
        PERFORM pg_notify('claimd', '');
    END IF;
    RETURN new.version;
END $$;

REVOKE ALL ON FUNCTION refuse_patch, apply_patch, take_kept_edits, patched_values, edit FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION edit TO claimd_admin;
