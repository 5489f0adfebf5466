-- SPDX-License-Identifier: Apache-2.0
-- What is done to jobs that are there, by people and by their own handlers. The guide: docs/guide/operating-jobs.md,
-- docs/guide/effects.md, docs/guide/first-job.md.

-- ---- how it is doing ----
-- Nothing is there of a job of this id, but it may have been: it was given out, and there are kinds of which nothing is kept.
CREATE FUNCTION may_be_gone(id bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM retention r WHERE r.days = 0) AND may_be_gone.id BETWEEN 1 AND (SELECT last_value FROM job_id_seq);
END $$;

-- No row: there is no such job, or its history has been dropped. State 'gone': where kinds keep no completed jobs, nobody can tell that
-- from a job that was completed.
CREATE FUNCTION job_status(id bigint)
RETURNS TABLE (state text, attempt integer, result jsonb, error text, finalized_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
BEGIN
    PERFORM check_job_owners(ARRAY[job_status.id], reads => true);
    RETURN QUERY SELECT j.state, j.attempt, j.result, j.error, j.finalized_at FROM jobs j WHERE j.id = job_status.id;
    IF NOT FOUND AND may_be_gone(job_status.id) THEN
        state := 'gone';
        RETURN NEXT;
    END IF;
END $$;

-- The same as soon as the job has ended, or as it is when the time is over. Looks every 5 ms, then ever less often, up to 4 times a
-- second. Holds a snapshot meanwhile, which keeps vacuum from its work: hence the short limit.
CREATE FUNCTION wait(id bigint, timeout interval DEFAULT '30 s')
RETURNS TABLE (state text, attempt integer, result jsonb, error text, finalized_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    until_at timestamptz;
    pause float8 := 0.005;
    mine xid := pg_current_xact_id_if_assigned()::xid;
    found_job record;
BEGIN
    IF wait.timeout IS NULL OR wait.timeout < interval '0' OR wait.timeout > interval '60 s' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'timeout: must be 0 to 60 s';
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'only a READ COMMITTED transaction can see how the job goes on';
    END IF;
    until_at := clock_timestamp() + wait.timeout;
    IF EXISTS (SELECT FROM job j WHERE j.id = wait.id AND j.xmin = mine) THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'job ' || wait.id || ' is of this transaction: commit first';
    END IF;
    LOOP
        SELECT * INTO found_job FROM job_status(wait.id);
        EXIT WHEN found_job IS NULL OR found_job.finalized_at IS NOT NULL OR found_job.state = 'gone' OR clock_timestamp() >= until_at;
        PERFORM pg_sleep(LEAST(pause, extract(epoch FROM until_at - clock_timestamp())));
        pause := LEAST(pause * 1.5, 0.25);
    END LOOP;
    IF found_job.state IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'job ' || COALESCE(wait.id::text, 'NULL') || ' not found';
    END IF;
    RETURN QUERY SELECT found_job.state, found_job.attempt, found_job.result, found_job.error, found_job.finalized_at;
END $$;

-- ---- its end ----
-- A job that does not run is cancelled at once; one that runs is asked to end, and 'cancelling'. A second time is no error.
CREATE OR REPLACE FUNCTION cancel(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    found_state text;
    run_fence bigint;
BEGIN
    IF id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'id: must not be NULL';
    END IF;
    PERFORM check_job_owners(ARRAY[id]);
    FOR try IN 1..10 LOOP -- it may come from one state into the other meanwhile
        WITH gone AS (
            DELETE FROM job j WHERE j.id = cancel.id AND j.state = 'available' RETURNING j.*
        ), unwatched AS (
            DELETE FROM job_live l USING gone g WHERE l.id = g.id
        )
        INSERT INTO job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, crashes,
                                 generation, priority, share, state, queue, kind, args, max_attempts, timeout, tags, metadata,
                                 flags, version, unique_key, backoff, exclusive_key, share_key, second_key, grace, owner)
        SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.crashes,
               g.generation, g.priority, g.share, 'cancelled', g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags,
               g.metadata, g.flags, g.version, g.unique_key, g.backoff, g.exclusive_key, g.share_key, g.second_key,
               g.grace, g.owner
          FROM gone g;
        IF FOUND THEN
            RETURN 'cancelled';
        END IF;
        -- The lock keeps its end from coming between: what is written here would be left behind.
        SELECT j.fence INTO run_fence FROM job j WHERE j.id = cancel.id AND j.state = 'running' FOR NO KEY UPDATE;
        IF FOUND THEN
            -- Its end takes away what is written here, though its worker may not have heard of it by then.
            UPDATE job j SET flags = j.flags | 64 WHERE j.id = cancel.id AND j.flags & 64 = 0;
            INSERT INTO job_live AS l (id, fence, cancel_requested) VALUES (cancel.id, run_fence, true)
                ON CONFLICT ON CONSTRAINT job_live_pkey DO UPDATE SET fence = excluded.fence, cancel_requested = true;
            PERFORM pg_notify('claimd_cancel', cancel.id::text) WHERE may_notify();
            RETURN 'cancelling';
        END IF;
        EXIT WHEN NOT EXISTS (SELECT FROM job j WHERE j.id = cancel.id);
    END LOOP;
    SELECT j.state INTO found_state FROM job j WHERE j.id = cancel.id;
    IF NOT FOUND THEN
        SELECT h.state INTO found_state FROM job_history h WHERE h.id = cancel.id ORDER BY h.finalized_at DESC LIMIT 1;
    END IF;
    IF found_state = 'cancelled' THEN
        RETURN 'cancelled';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'CL003',
        MESSAGE = 'job ' || id || CASE
            WHEN found_state IN ('available', 'running') THEN ' has just changed: try again'
            ELSE COALESCE(' is ' || found_state || ' already', ' not found') END;
END $$;

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
                             queue, kind, args, max_attempts, timeout, tags, metadata, flags, version, unique_key, backoff, exclusive_key, share_key,
                             second_key, grace, owner, crashes, state, result)
    SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.generation, g.priority,
           g.share, g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags, g.metadata, g.flags, g.version, g.unique_key, g.backoff, g.exclusive_key, g.share_key,
           g.second_key, g.grace, g.owner, g.crashes, 'completed', complete_in_tx.result
      FROM gone g;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'CL001',
            MESSAGE = format('job %s does not run under fence %s (any more): roll back', id, fence);
    END IF;
END $$;

-- Forgets a finished job: all its generations, failed attempts and edits. Returns its state.
CREATE FUNCTION delete_job(id bigint) RETURNS text
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
    DELETE FROM job_waited w WHERE w.job_id = delete_job.id;
    RETURN found_state;
END $$;

-- ---- again ----
-- Finished jobs become available again, and jobs that wait for their time (scheduled, retryable) are due from now on; what is due
-- already stays as it is. All or none: refused with the reason of the first that can't be retried, or where a queue is full of open
-- jobs. Returns how many. The history may have been small when this was planned.
CREATE FUNCTION retry_many(ids bigint[], even_completed boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    wanted bigint[] := ARRAY(SELECT DISTINCT u.id FROM unnest(ids) AS u(id) ORDER BY u.id);
    parked bigint;
    refused bigint;
    found_state text;
BEGIN
    IF ids IS NULL OR EXISTS (SELECT FROM unnest(ids) AS u(id) WHERE u.id IS NULL) OR even_completed IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002',
            MESSAGE = CASE WHEN even_completed IS NULL THEN 'even_completed: must be true or false' ELSE 'id: must not be NULL' END;
    END IF;
    IF EXISTS (SELECT FROM queue q WHERE q.max_open IS NOT NULL) THEN
        -- In the order of the queues, as in enqueue_many().
        PERFORM take_room(w.queue, w.jobs)
           FROM (SELECT h.queue, count(*) AS jobs
                   FROM job_history h
                   JOIN queue q ON q.name = h.queue AND q.max_open IS NOT NULL
                  WHERE h.id = ANY (wanted) AND h.retried_at IS NULL AND (even_completed OR h.state <> 'completed')
                  GROUP BY h.queue
                  ORDER BY h.queue) AS w;
    END IF;
    WITH former AS (
        UPDATE job_history h SET retried_at = clock_timestamp()
         WHERE h.id = ANY (wanted) AND h.retried_at IS NULL AND (even_completed OR h.state <> 'completed')
        RETURNING h.*
    )
    INSERT INTO job (id, fence, created_at, generation, priority, share, queue, kind, args, max_attempts, timeout, tags, metadata,
                     flags, version, unique_key, backoff, exclusive_key, share_key, second_key, grace, owner)
    OVERRIDING SYSTEM VALUE
    SELECT f.id, f.fence, f.created_at, f.generation + 1, f.priority, f.share, f.queue, f.kind, f.args, f.max_attempts, f.timeout,
           f.tags, f.metadata, f.flags & ~3012, f.version, f.unique_key, f.backoff, f.exclusive_key, f.share_key, f.second_key,
           f.grace, f.owner
      FROM former f
     ORDER BY f.id;
    -- Its attempts, crashes and generation stay. An edit, which is put on record, and which the feed meets ahead of its cursor.
    FOR parked IN SELECT j.id FROM job j
                   WHERE j.id = ANY (wanted) AND j.state = 'available' AND j.ready_at > clock_timestamp()
                     AND NOT (j.flags & 32 <> 0 AND j.scheduled_at = job_waits())
                   ORDER BY j.id FOR NO KEY UPDATE LOOP
        PERFORM edit(parked, '{"scheduled_at": null}');
    END LOOP;
    SELECT u.id, CASE WHEN j.ready_at = job_waits() AND j.state = 'available' THEN 'waiting' ELSE j.state END INTO refused, found_state
      FROM unnest(wanted) AS u(id)
      LEFT JOIN job j ON j.id = u.id
     WHERE j.id IS NULL OR j.state <> 'available' OR j.ready_at > clock_timestamp()
     ORDER BY u.id
     LIMIT 1;
    IF NOT FOUND THEN
        RETURN cardinality(wanted);
    END IF;
    IF found_state IS NULL THEN
        SELECT h.state INTO found_state FROM job_history h WHERE h.id = refused AND h.retried_at IS NULL;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'CL003',
        MESSAGE = 'job ' || refused || CASE
            WHEN found_state = 'running' THEN ' is running: only a finished, retryable or scheduled job can be retried'
            WHEN found_state = 'waiting'
            THEN ' is waiting for other jobs: only a finished, retryable or scheduled job can be retried'
            WHEN found_state = 'completed' AND NOT even_completed THEN ' is completed: only even_completed => true retries it'
            WHEN found_state IS NOT NULL THEN ' has just changed: try again'
            ELSE ' not found' END;
END $$;

-- Makes one finished job available again: see retry_many().
CREATE FUNCTION retry(id bigint, even_completed boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM retry_many(ARRAY[id], even_completed);
    RETURN id;
END $$;

-- ---- changed while it is queued ----
CREATE TABLE job_edit (
    job_id bigint NOT NULL,
    version integer NOT NULL, -- of the job, since this edit
    generation integer NOT NULL,
    edited_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    edited_by text NOT NULL DEFAULT session_user,
    applied_at timestamptz DEFAULT clock_timestamp(), -- NULL: it waits for the next attempt of a job that ran, or there was none
    before jsonb NOT NULL, -- what the edit was about
    after jsonb NOT NULL,
    CONSTRAINT job_edit_pkey PRIMARY KEY (job_id, version)
);
CREATE INDEX job_edit_at ON job_edit USING brin (edited_at);

CREATE FUNCTION refuse_patch(patch jsonb) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := '{args,priority,scheduled_at,expires_at,queue,max_attempts,timeout,grace,tags,metadata,backoff,exclusive_key,'
                    'second_key,share_key}';
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
    wrong := COALESCE(why_refused('a', CASE WHEN patch ? 'args' THEN patch -> 'args' ELSE '{}' END,
                         CASE WHEN patch ? 'queue' THEN r.queue ELSE 'a' END,
                         CASE WHEN patch ? 'priority' THEN r.priority ELSE 4 END,
                         r.scheduled_at, r.max_attempts, r.timeout, r.exclusive_key, r.second_key, r.share_key, r.tags, r.metadata),
                      why_no_backoff(r.backoff), why_no_grace(r.grace), why_no_expiry(r.expires_at, r.scheduled_at));
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'patch.' || wrong;
    END IF;
END $$;

-- Makes of a job's row, which the caller has locked, what the patch says; the caller records it.
-- A due job that gets another queue, priority or key is due anew, at the end of that lane: ahead of the feed's cursor, like a new job.
-- Hints of what it was may be left: a worker that claims it by one, and doesn't serve its queue, hands it back; older ones would run it.
CREATE FUNCTION apply_patch(old job, patch jsonb, new_version integer) RETURNS job
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    r job_request := jsonb_populate_record(NULL::job_request, patch);
    is_parked boolean := old.flags & 32 <> 0 AND old.scheduled_at = job_waits(); -- its own time is in job_wait
    is_moved boolean := COALESCE(r.queue <> old.queue, false) OR COALESCE(r.priority <> old.priority, false) OR patch ?| '{exclusive_key,second_key,share_key}';
    first_key text := CASE WHEN patch ? 'exclusive_key' THEN r.exclusive_key ELSE old.exclusive_key END;
    other_key text := CASE WHEN patch ? 'second_key' THEN r.second_key ELSE old.second_key END;
    new job;
BEGIN
    IF first_key IS NULL THEN -- as job_checked() does
        first_key := other_key;
    END IF;
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
                        WHEN first_key IS NULL THEN j.flags & ~2
                        ELSE j.flags | exclusive_flag() END & ~CASE WHEN patch ? 'expires_at' THEN 2112 ELSE 64 END
                   | CASE WHEN r.expires_at IS NULL THEN 0 ELSE 2048 END,
           args = CASE WHEN patch ? 'args' THEN patch -> 'args' ELSE j.args END,
           priority = COALESCE(r.priority, j.priority), queue = COALESCE(r.queue, j.queue),
           scheduled_at = CASE WHEN is_parked THEN j.scheduled_at
                               WHEN patch ? 'scheduled_at' THEN GREATEST(r.scheduled_at, clock_timestamp())
                               WHEN is_moved AND j.ready_at <= clock_timestamp() THEN clock_timestamp()
                               ELSE j.scheduled_at END,
           max_attempts = CASE WHEN patch ? 'max_attempts' THEN r.max_attempts ELSE j.max_attempts END,
           timeout = CASE WHEN patch ? 'timeout' THEN r.timeout ELSE j.timeout END,
           grace = CASE WHEN patch ? 'grace' THEN r.grace ELSE j.grace END,
           backoff = CASE WHEN patch ? 'backoff' THEN r.backoff ELSE j.backoff END,
           exclusive_key = first_key, second_key = NULLIF(other_key, first_key),
           share_key = CASE WHEN patch ? 'share_key' THEN r.share_key ELSE j.share_key END,
           share = CASE WHEN patch ? 'share_key' THEN COALESCE(share_of(r.share_key), 0) ELSE j.share END,
           tags = CASE WHEN patch ? 'tags' THEN r.tags ELSE j.tags END,
           metadata = CASE WHEN patch ? 'metadata' THEN r.metadata ELSE j.metadata END
     WHERE j.id = old.id
    RETURNING j.* INTO new;
    RETURN new;
END $$;

-- What was asked for while it ran, for its next attempt, the newest last. From now on it counts as applied.
CREATE FUNCTION take_kept_edits(j job) RETURNS jsonb
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    kept jsonb := '{}';
    patch jsonb;
BEGIN
    IF j.flags & 64 <> 0 THEN
        FOR patch IN SELECT e.after FROM job_edit e
                      WHERE e.job_id = j.id AND e.generation = j.generation AND e.applied_at IS NULL ORDER BY e.version LOOP
            kept := kept || patch;
        END LOOP;
        UPDATE job_edit e SET applied_at = clock_timestamp()
         WHERE e.job_id = j.id AND e.generation = j.generation AND e.applied_at IS NULL;
    END IF;
    RETURN kept;
END $$;

-- The values that a patch is about.
CREATE FUNCTION patched_values(j job, patch jsonb) RETURNS jsonb
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

-- Changes a queued job: what runs is what the row says when it is claimed. null means the default: no tags, metadata or key, the
-- kind's limits, now, no expiry. CL003 when it isn't queued (any more), or its version is not the expected one; CL005 where the new
-- queue is full of open jobs. Returns its new version.
-- apply => 'next': a job that runs gets the change when it is claimed for its next attempt, before anything else is decided; if there
-- is none, it is dropped, and its row of job_edit says so (applied_at). Its new queue must have room already.
CREATE FUNCTION edit(id bigint, patch jsonb, expected_version integer DEFAULT NULL, apply text DEFAULT 'now') RETURNS integer
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
        UPDATE job j SET version = j.version + 1, flags = j.flags | 64 WHERE j.id = edit.id;
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

-- ---- queues, kinds, workers ----
-- Asks a worker to take nothing new ('quiet'), to go on if it was asked to be quiet ('resume'), or to end what runs and then itself
-- ('drain').
CREATE FUNCTION ask_worker(worker_id uuid, what text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    why text;
BEGIN
    IF what IS NULL OR what NOT IN ('quiet', 'resume', 'drain') THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'what: must be quiet, resume or drain';
    END IF;
    SELECT CASE WHEN w.dead OR w.stopped THEN format('worker %s has ended', w.worker_id)
                WHEN w.stale_at < clock_timestamp() THEN format('worker %s is silent: it would not hear', w.worker_id)
                WHEN what = 'resume' AND w.asked = 'drain' THEN format('worker %s was asked to drain: start another', w.worker_id)
                WHEN what = 'resume' AND w.built_for < 17
                THEN format('worker %s is of an older release: it would not go on, restart it', w.worker_id)
                WHEN what = 'resume' AND w.quiet AND w.asked = ''
                THEN format('worker %s is quiet by a signal, or drains: ask it to be quiet, and then to resume', w.worker_id)
                WHEN w.built_for < 2 THEN format('worker %s is of an older release: send it SIGUSR1 or SIGTERM', w.worker_id)
           ELSE '' END
      INTO why
      FROM worker w
     WHERE w.worker_id = ask_worker.worker_id
       FOR UPDATE;
    IF why IS DISTINCT FROM '' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = COALESCE(why, format('worker %s not found', COALESCE(ask_worker.worker_id::text, 'NULL')));
    END IF;
    -- A drain is the last word.
    UPDATE worker w SET asked = CASE what WHEN 'resume' THEN '' ELSE what END
     WHERE w.worker_id = ask_worker.worker_id AND w.asked <> 'drain';
END $$;

REVOKE ALL ON FUNCTION may_be_gone, job_status, wait, complete_in_tx, delete_job, retry_many, retry, refuse_patch, apply_patch, take_kept_edits,
    patched_values, edit, ask_worker FROM PUBLIC;
GRANT EXECUTE ON FUNCTION may_be_gone TO claimd_admin, claimd_reader;
GRANT EXECUTE ON FUNCTION job_status, wait TO claimd_admin, claimd_producer, claimd_reader;
GRANT EXECUTE ON FUNCTION complete_in_tx, delete_job, retry_many, retry, edit, ask_worker TO claimd_admin;
GRANT SELECT ON job_edit TO claimd_admin, claimd_reader;

-- ---- down ----
DROP FUNCTION job_status, may_be_gone, wait, complete_in_tx, delete_job, retry_many, retry, edit, patched_values, take_kept_edits, apply_patch, refuse_patch,
    ask_worker;
DROP TABLE job_edit;

-- Cancels a job that is not running; a second time is no error.
CREATE OR REPLACE FUNCTION cancel(id bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    found_state text;
BEGIN
    IF id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'id: must not be NULL';
    END IF;
    WITH gone AS (
        DELETE FROM job j WHERE j.id = cancel.id AND j.state = 'available' RETURNING j.*
    )
    INSERT INTO job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, crashes,
                             generation, priority, share, state, queue, kind, args, max_attempts, timeout, tags, metadata)
    SELECT g.id, g.fence, g.created_at, g.scheduled_at, g.ready_at, g.attempted_at, g.worker_id, g.attempt, g.crashes,
           g.generation, g.priority, g.share, 'cancelled', g.queue, g.kind, g.args, g.max_attempts, g.timeout, g.tags, g.metadata
      FROM gone g;
    IF FOUND THEN
        RETURN 'cancelled';
    END IF;
    SELECT j.state INTO found_state FROM job j WHERE j.id = cancel.id;
    IF NOT FOUND THEN
        SELECT h.state INTO found_state FROM job_history h WHERE h.id = cancel.id ORDER BY h.finalized_at DESC LIMIT 1;
    END IF;
    IF found_state = 'cancelled' THEN
        RETURN 'cancelled';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'CL003',
        MESSAGE = 'job ' || id || CASE found_state
            WHEN 'running' THEN ' is running: only a job that is not running can be cancelled'
            WHEN 'available' THEN ' has just changed: try again'
            ELSE COALESCE(' is ' || found_state || ' already', ' not found') END;
END $$;
