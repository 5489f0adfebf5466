-- SPDX-License-Identifier: Apache-2.0
-- Schedules: their settings, and the jobs that they create.

-- Returns the row of a schedule, locked. Raises CL003 if there is none.
CREATE OR REPLACE FUNCTION schedule_lock(name text) RETURNS schedule
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    s schedule;
BEGIN
    SELECT * INTO s FROM schedule r WHERE r.name = schedule_lock.name FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'schedule ' || COALESCE(quote_literal(name), 'NULL') || ' not found';
    END IF;
    RETURN s;
END $$;

-- Creates a schedule, or changes the one of this name; returns its next tick. Setting the same values again changes nothing: the
-- ticks start over only if cron or zone differ.
CREATE OR REPLACE FUNCTION schedule_set(name text, kind text, cron text, args jsonb DEFAULT '{}', queue text DEFAULT 'default',
                             priority integer DEFAULT 4, zone text DEFAULT 'UTC', max_attempts integer DEFAULT NULL,
                             timeout interval DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
                             missed text DEFAULT 'latest', missed_window interval DEFAULT '1 day', overlap text DEFAULT 'run',
                             exclusive_key text DEFAULT NULL, share_key text DEFAULT NULL, backoff text DEFAULT NULL,
                             unique_key text DEFAULT NULL, unique_by text[] DEFAULT NULL, unique_for interval DEFAULT NULL,
                             unique_states text DEFAULT NULL, on_conflict text DEFAULT 'ignore', jitter interval DEFAULT NULL,
                             second_key text DEFAULT NULL, grace interval DEFAULT NULL)
RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    s schedule;
    request job_request;
    wrong text;
    at timestamptz := date_trunc('second', clock_timestamp()); -- ticks are whole seconds, those of "every" too
    tick timestamptz;
BEGIN
    PERFORM require_program(2); -- an older scheduler would fire nothing
    s.name := name; s.kind := kind; s.cron := cron; s.args := args; s.queue := queue; s.max_attempts := max_attempts;
    s.timeout := timeout; s.tags := tags; s.metadata := metadata; s.missed := missed; s.missed_window := missed_window;
    s.overlap := overlap; s.exclusive_key := exclusive_key; s.share_key := share_key; s.backoff := backoff;
    s.unique_key := unique_key; s.unique_by := unique_by; s.unique_for := unique_for; s.unique_states := unique_states;
    s.on_conflict := on_conflict; s.jitter := NULLIF(jitter, interval '0'); s.second_key := second_key;
    s.grace := grace;
    request := schedule_request(s, NULL);
    request.priority := priority; -- which may be too large for the table
    wrong := CASE
        WHEN name IS NULL OR name !~ '^[a-z][a-z0-9_.-]*$' OR octet_length(name) > 64
        THEN 'name: must match ^[a-z][a-z0-9_.-]*$ and have at most 64 bytes'
        WHEN on_conflict IS NULL OR on_conflict NOT IN ('ignore', 'replace_args', 'reschedule', 'replace')
        THEN 'on_conflict: must be ignore, replace_args, reschedule or replace, since a tick has nobody to refuse'
        WHEN request_refusal(request) IS NOT NULL
        THEN request_refusal(request)
        WHEN missed IS NULL OR missed NOT IN ('none', 'latest', 'all')
        THEN 'missed: must be none, latest or all'
        WHEN missed_window IS NULL OR missed_window <= interval '0' OR missed_window > interval '366 days'
        THEN 'missed_window: must be more than 0 and at most 366 days'
        WHEN overlap IS NULL OR overlap NOT IN ('run', 'skip')
        THEN 'overlap: must be run or skip'
        WHEN jitter < interval '0' OR jitter > interval '1 day'
        THEN 'jitter: must be 0 to 1 day, or NULL for none'
    END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    s.priority := priority;
    s.zone := CASE WHEN zone = 'UTC' OR EXISTS (SELECT FROM schedule o WHERE o.zone = schedule_set.zone) THEN zone
                   ELSE cron_zone(zone) END;
    tick := cron_after(cron, s.zone, at, at);
    INSERT INTO schedule AS o (name, {scheduled}, start_at, next_at, wake_at)
    VALUES (name, {s.scheduled}, at, tick, tick)
    ON CONFLICT ON CONSTRAINT schedule_pkey DO UPDATE
       SET ({scheduled}) = ROW({excluded.scheduled}), updated_at = at, failures = 0, failed_at = NULL, error = NULL,
           start_at = CASE WHEN (o.cron, o.zone) = (excluded.cron, excluded.zone) THEN o.start_at ELSE at END,
           next_at = CASE WHEN (o.cron, o.zone) = (excluded.cron, excluded.zone) THEN o.next_at ELSE tick END,
           wake_at = CASE WHEN (o.cron, o.zone) = (excluded.cron, excluded.zone) THEN o.next_at ELSE tick END
    RETURNING o.next_at INTO tick;
    RETURN tick;
END $$;

-- Pauses a schedule. The ticks during the pause are not made up for. Repeating the call is no error, here and for resume.
CREATE OR REPLACE FUNCTION schedule_pause(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF NOT (schedule_lock(name)).paused THEN
        UPDATE schedule s SET paused = true, updated_at = clock_timestamp() WHERE s.name = schedule_pause.name;
    END IF;
END $$;

-- Resumes a schedule; returns its next tick.
CREATE OR REPLACE FUNCTION schedule_resume(name text) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    s schedule := schedule_lock(name);
BEGIN
    IF s.paused THEN
        s.next_at := cron_after(s.cron, s.zone, clock_timestamp(), s.start_at);
        UPDATE schedule r
           SET paused = false, next_at = s.next_at, wake_at = s.next_at, updated_at = clock_timestamp(), failures = 0,
               failed_at = NULL, error = NULL
         WHERE r.name = s.name;
    END IF;
    RETURN s.next_at;
END $$;

CREATE OR REPLACE FUNCTION schedule_delete(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM schedule_lock(name);
    DELETE FROM schedule s WHERE s.name = schedule_delete.name;
END $$;

-- Returns how much later than its tick a job becomes due. Depends only on name and tick, so it is the same whichever scheduler fires it.
CREATE OR REPLACE FUNCTION schedule_offset(s schedule, tick timestamptz) RETURNS interval
LANGUAGE sql IMMUTABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT COALESCE((hashtextextended(s.name || ' ' || extract(epoch FROM tick)::bigint, 0) & 9223372036854775807)
                    % (extract(epoch FROM s.jitter) * 1000 + 1)::bigint, 0) * interval '1 ms'
$$;

-- Returns the request for a job of the schedule: all attributes for which `schedule` has a column of that name. A tick has no caller
-- to inform of a job that stands in its way, so 'ignore' means to skip the tick.
CREATE OR REPLACE FUNCTION schedule_request(s schedule, scheduled_at timestamptz) RETURNS job_request
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    r job_request := jsonb_populate_record(NULL::job_request, to_jsonb(s));
BEGIN
    r.args := s.args; -- null is a value
    r.scheduled_at := scheduled_at;
    r.on_conflict := CASE WHEN s.on_conflict = 'ignore' THEN 'error' ELSE s.on_conflict END;
    RETURN r;
END $$;

-- Enqueues one job of the schedule for the time `due_at`, and records the fire. NULL if another session has already done so. A manual
-- run has no jitter, and is refused if its unique job exists.
CREATE OR REPLACE FUNCTION schedule_enqueue(s schedule, due_at timestamptz, outcome text) RETURNS bigint
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    request job_request := schedule_request(s, CASE WHEN outcome = 'run' THEN due_at ELSE due_at + schedule_offset(s, due_at) END);
    new_id bigint;
BEGIN
    INSERT INTO schedule_fire AS f (schedule, due_at, outcome) VALUES (s.name, schedule_enqueue.due_at, schedule_enqueue.outcome)
    ON CONFLICT ON CONSTRAINT schedule_fire_pkey DO NOTHING;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    request.on_conflict := 'error';
    new_id := (enqueue_request(request)).id;
    UPDATE schedule_fire f SET job_id = new_id WHERE f.schedule = s.name AND f.due_at = schedule_enqueue.due_at;
    RETURN new_id;
END $$;

-- Does the same for a tick of a schedule with a unique key. `why`: the tick was skipped, because another job stands in the way. That
-- job may start before our commit, so no promise is made. A transaction that holds the key must not keep all other schedules waiting:
-- the tick fails soon, and is tried again.
CREATE OR REPLACE FUNCTION schedule_enqueue_unique(s schedule, due_at timestamptz, OUT id bigint, OUT why text)
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    request job_request := schedule_request(s, due_at + schedule_offset(s, due_at));
    inserted boolean;
BEGIN
    INSERT INTO schedule_fire AS f (schedule, due_at, outcome) VALUES (s.name, schedule_enqueue_unique.due_at, 'skipped')
    ON CONFLICT ON CONSTRAINT schedule_fire_pkey DO NOTHING;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    BEGIN
        SELECT e.id, e.inserted INTO id, inserted FROM enqueue_request(request) AS e;
    EXCEPTION
        WHEN SQLSTATE 'CL004' THEN
            GET STACKED DIAGNOSTICS why = MESSAGE_TEXT;
            RETURN;
        WHEN lock_not_available THEN
            RAISE EXCEPTION USING ERRCODE = 'lock_not_available',
                MESSAGE = 'an open transaction holds its unique_key, or the room in its queue';
    END;
    IF inserted THEN
        UPDATE schedule_fire f SET job_id = schedule_enqueue_unique.id, outcome = 'fired'
         WHERE f.schedule = s.name AND f.due_at = schedule_enqueue_unique.due_at;
    ELSE
        why := format('unique_key: job %s has this key and was changed', id);
        id := NULL;
    END IF;
END $$;

-- Enqueues one job now, even if the schedule is paused, and whatever its overlap is; returns the job's id. The ticks stay as they are.
CREATE OR REPLACE FUNCTION schedule_run(name text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    s schedule := schedule_lock(name);
    at timestamptz := clock_timestamp();
    new_id bigint;
BEGIN
    -- Never the time of a tick: those are whole seconds.
    at := CASE date_trunc('second', at) WHEN at THEN at + interval '1 us' ELSE at END;
    new_id := schedule_enqueue(s, at, 'run');
    IF new_id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'schedule ' || quote_literal(name) || ' was run at this very moment: try again';
    END IF;
    UPDATE schedule r
       SET fired_at = at, job_ids = CASE overlap WHEN 'skip' THEN s.job_ids ELSE '{}' END || new_id
     WHERE r.name = s.name;
    RETURN new_id;
END $$;

-- Returns the next n ticks of a schedule, in its zone as well. For a paused schedule: those that it would have if it were resumed now.
CREATE OR REPLACE FUNCTION schedule_next(name text, n integer DEFAULT 5) RETURNS TABLE (due_at timestamptz, local_time text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    s schedule;
    ahead interval;
BEGIN
    IF n IS NULL OR n NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'n: must be 1 to 1000';
    END IF;
    SELECT * INTO s FROM schedule r WHERE r.name = schedule_next.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'schedule ' || COALESCE(quote_literal(name), 'NULL') || ' not found';
    END IF;
    due_at := CASE WHEN s.paused THEN cron_after(s.cron, s.zone, clock_timestamp(), s.start_at) ELSE s.next_at END;
    FOR i IN 1..n LOOP
        ahead := cron_offset(due_at, s.zone);
        local_time := to_char(due_at AT TIME ZONE s.zone, 'YYYY-MM-DD HH24:MI:SS')
                      || CASE WHEN ahead < interval '0' THEN '-' ELSE '+' END
                      || to_char(GREATEST(ahead, -ahead), 'HH24:MI');
        RETURN NEXT;
        due_at := cron_after(s.cron, s.zone, due_at, s.start_at);
    END LOOP;
END $$;

-- Fires the due ticks of one schedule, whose row the caller has locked: at most 10 ticks, the others follow in the next call. A tick
-- is missed when it is more than a minute late; until then it fires, whatever `missed` says.
CREATE OR REPLACE FUNCTION fire_schedule(s schedule, at timestamptz)
RETURNS TABLE (schedule text, due_at timestamptz, outcome text, job_id bigint, error text)
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    in_time timestamptz := at - interval '1 minute';
    oldest timestamptz := at - s.missed_window;
    tick timestamptz := s.next_at;
    fired bigint[] := '{}';
    open_ids bigint[];
    latest timestamptz;
BEGIN
    IF tick < in_time THEN
        IF s.missed = 'latest' THEN
            latest := cron_last(s.cron, s.zone, tick - interval '1 us', at, s.start_at);
        END IF;
        IF s.missed = 'latest' AND latest < in_time AND latest >= oldest THEN
            tick := latest;
        ELSIF s.missed = 'all' AND oldest < in_time THEN
            tick := CASE WHEN tick >= oldest THEN tick ELSE cron_after(s.cron, s.zone, oldest - interval '1 us', s.start_at) END;
        ELSE
            tick := cron_after(s.cron, s.zone, in_time - interval '1 us', s.start_at);
        END IF;
    END IF;
    IF tick > s.next_at THEN
        RETURN QUERY SELECT s.name, s.next_at, 'missed'::text, NULL::bigint, NULL::text;
    END IF;
    open_ids := s.job_ids;
    FOR n IN 1..10 LOOP
        EXIT WHEN tick > at;
        IF s.overlap = 'skip' THEN
            open_ids := ARRAY(SELECT j.id FROM job j WHERE j.id = ANY (open_ids));
        END IF;
        schedule := s.name;
        due_at := tick;
        error := NULL;
        job_id := NULL;
        IF s.overlap = 'skip' AND cardinality(open_ids) > 0 THEN
            outcome := 'skipped';
            INSERT INTO schedule_fire AS f (schedule, due_at, outcome) VALUES (s.name, tick, 'skipped')
            ON CONFLICT ON CONSTRAINT schedule_fire_pkey DO NOTHING;
            IF FOUND THEN
                RETURN NEXT;
            END IF;
        ELSE
            IF s.unique_key IS NULL AND s.unique_by IS NULL THEN
                job_id := schedule_enqueue(s, tick, 'fired');
            ELSE
                SELECT e.id, e.why INTO job_id, error FROM schedule_enqueue_unique(s, tick) AS e;
            END IF;
            outcome := CASE WHEN error IS NULL THEN 'fired' ELSE 'skipped' END;
            IF job_id IS NOT NULL THEN
                open_ids := CASE s.overlap WHEN 'skip' THEN open_ids ELSE '{}' END || job_id;
                fired := fired || job_id;
            END IF;
            IF job_id IS NOT NULL OR error IS NOT NULL THEN
                RETURN NEXT;
            END IF;
        END IF;
        tick := cron_after(s.cron, s.zone, tick, s.start_at);
    END LOOP;
    UPDATE schedule r
       SET next_at = tick, wake_at = GREATEST(tick, at), job_ids = open_ids, failures = 0, failed_at = NULL, error = NULL,
           fired_at = CASE WHEN cardinality(fired) > 0 THEN clock_timestamp() ELSE r.fired_at END
     WHERE r.name = s.name;
END $$;

-- Called by the leading scheduler: fires the due ticks of at most `at_most` schedules, the one that has waited longest first.
-- Rows that another session has locked are left for the next time. An error affects only its own schedule, which is tried again
-- after 2, 4, 8, … 300 s. Returns one row per tick, then one with outcome 'next': when the function must be called again (NULL:
-- never; a time in the past: now).
CREATE OR REPLACE FUNCTION fire_schedules(at_most integer DEFAULT 100)
RETURNS TABLE (schedule text, due_at timestamptz, outcome text, job_id bigint, error text)
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    at timestamptz := clock_timestamp();
    s schedule;
    why text;
BEGIN
    IF at_most IS NULL OR at_most NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'at_most: must be 1 to 1000 schedules';
    END IF;
    FOR s IN SELECT r.* FROM schedule r WHERE NOT r.paused AND r.wake_at <= at ORDER BY r.wake_at LIMIT at_most
                FOR UPDATE SKIP LOCKED LOOP
        BEGIN
            RETURN QUERY SELECT f.* FROM fire_schedule(s, at) f;
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS why = MESSAGE_TEXT;
            UPDATE schedule r
               SET failures = s.failures + 1, failed_at = at, error = left(why, 1000),
                   wake_at = at + LEAST(interval '300 s', interval '2 s' * power(2, LEAST(s.failures, 10)))
             WHERE r.name = s.name;
            RETURN QUERY SELECT s.name, s.next_at, 'failed'::text, NULL::bigint, left(why, 1000);
        END;
    END LOOP;
    RETURN QUERY SELECT NULL::text, min(r.wake_at), 'next'::text, NULL::bigint, NULL::text FROM schedule r WHERE NOT r.paused;
END $$;

-- Returns when the schedule has something to do, if that is earlier than the time that it waits for; NULL if it waits for the right
-- time. Ticks within the next minute may be earlier than next_at, because the clock may have been put back a little since they fired;
-- and after a failure, wake_at is up to 300 s away. If cron or zone can no longer be parsed, that is reported when the schedule is due.
CREATE OR REPLACE FUNCTION schedule_should_wait_until(s schedule, at timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN CASE WHEN s.paused THEN NULL
                WHEN s.next_at > cron_after(s.cron, s.zone, at + interval '1 minute', s.start_at)
                THEN cron_after(s.cron, s.zone, at, s.start_at)
                WHEN s.wake_at > GREATEST(s.next_at, at + interval '6 minutes')
                THEN s.next_at END;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

-- Returns the schedules that wait beyond their next tick, which is due_at.
CREATE OR REPLACE FUNCTION schedules_beyond() RETURNS TABLE (schedule text, next_at timestamptz, due_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT s.name, GREATEST(s.next_at, s.wake_at), u.due_at
      FROM schedule s CROSS JOIN LATERAL (SELECT schedule_should_wait_until(s, clock_timestamp()) OFFSET 0) AS u(due_at)
     WHERE u.due_at IS NOT NULL
     ORDER BY s.name;
END;

-- Called by the leading scheduler: corrects such schedules among the next `at_most` ones behind the name `behind`. Returns one
-- row per corrected schedule, then one without next_at: the name to continue behind, or NULL if all have been looked at.
-- Locked schedules are left out.
CREATE OR REPLACE FUNCTION mend_schedules(behind text DEFAULT '', at_most integer DEFAULT 100)
RETURNS TABLE (schedule text, was timestamptz, next_at timestamptz)
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    s schedule;
    seen integer := 0;
BEGIN
    FOR s IN SELECT r.* FROM schedule r WHERE r.name > behind ORDER BY r.name LIMIT at_most LOOP
        seen := seen + 1;
        schedule := s.name;
        was := GREATEST(s.next_at, s.wake_at);
        next_at := schedule_should_wait_until(s, clock_timestamp());
        CONTINUE WHEN next_at IS NULL;
        PERFORM FROM schedule r
          WHERE r.name = s.name AND NOT r.paused AND (r.next_at, r.wake_at) = (s.next_at, s.wake_at) FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        UPDATE schedule r SET next_at = mend_schedules.next_at, wake_at = mend_schedules.next_at WHERE r.name = s.name;
        RETURN NEXT;
    END LOOP;
    schedule := CASE WHEN seen = at_most THEN schedule END;
    was := NULL;
    next_at := NULL;
    RETURN NEXT;
END $$;

REVOKE ALL ON FUNCTION schedule_lock, schedule_set, schedule_pause, schedule_resume, schedule_delete, schedule_offset, schedule_request,
    schedule_enqueue, schedule_enqueue_unique, schedule_run, schedule_next, fire_schedule, fire_schedules,
    schedule_should_wait_until, schedules_beyond, mend_schedules FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION schedule_set, schedule_pause, schedule_resume, schedule_delete, schedule_run, schedule_next
    TO claimd_admin;
GRANT EXECUTE ON FUNCTION schedules_beyond TO claimd_admin, claimd_reader;
