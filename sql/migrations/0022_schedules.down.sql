-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION mend_schedules, schedules_beyond, schedule_should_wait_until, schedule_set, schedule_enqueue_unique, schedule_offset;
ALTER TABLE schedule
    DROP COLUMN exclusive_key,
    DROP COLUMN share_key,
    DROP COLUMN backoff,
    DROP COLUMN unique_key,
    DROP COLUMN unique_by,
    DROP COLUMN unique_for,
    DROP COLUMN unique_states,
    DROP COLUMN on_conflict,
    DROP COLUMN jitter;

CREATE FUNCTION schedule_set(name text, kind text, cron text, args jsonb DEFAULT '{}', queue text DEFAULT 'default',
                             priority integer DEFAULT 4, zone text DEFAULT 'UTC', max_attempts integer DEFAULT NULL,
                             timeout interval DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
                             missed text DEFAULT 'latest', missed_window interval DEFAULT '1 day', overlap text DEFAULT 'run')
RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    wrong text := CASE
        WHEN name IS NULL OR name !~ '^[a-z][a-z0-9_.-]*$' OR octet_length(name) > 64
        THEN 'name: must match ^[a-z][a-z0-9_.-]*$ and have at most 64 octets'
        WHEN kind IS NULL OR kind !~ '^[a-z][a-z0-9_]*$' OR octet_length(kind) > 64
        THEN 'kind: must match ^[a-z][a-z0-9_]*$ and have at most 64 octets'
        WHEN why_no_queue(queue) IS NOT NULL
        THEN why_no_queue(queue)
        WHEN priority IS NULL OR priority NOT BETWEEN 0 AND 9
        THEN 'priority: must be 0 (first) to 9'
        WHEN args IS NULL
        THEN 'args: must be a JSON value, not NULL'
        WHEN is_too_long(args, 1048576)
        THEN 'args: at most 1048576 octets as JSON text, or 65536 if long numbers such as 1e9999 are written out in it'
        WHEN max_attempts < 1
        THEN 'max_attempts: must be 1 or more'
        WHEN timeout <= interval '0' OR timeout > interval '366 days'
        THEN 'timeout: must be more than 0 and at most 366 days'
        WHEN pg_column_size(tags) > 8192
        THEN 'tags: at most 8192 octets together'
        WHEN is_too_long(metadata, 65536)
        THEN 'metadata: at most 65536 octets as JSON text'
        WHEN why_no_labels(tags, metadata) IS NOT NULL
        THEN why_no_labels(tags, metadata)
        WHEN missed IS NULL OR missed NOT IN ('none', 'latest', 'all')
        THEN 'missed: must be none, latest or all'
        WHEN missed_window IS NULL OR missed_window <= interval '0' OR missed_window > interval '366 days'
        THEN 'missed_window: must be more than 0 and at most 366 days'
        WHEN overlap IS NULL OR overlap NOT IN ('run', 'skip')
        THEN 'overlap: must be run or skip'
    END;
    at timestamptz := date_trunc('second', clock_timestamp()); -- ticks are whole seconds, those of "every" too
    the_zone text;
    tick timestamptz;
BEGIN
    PERFORM require_program(2); -- an older scheduler would fire nothing
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    the_zone := CASE WHEN zone = 'UTC' OR EXISTS (SELECT FROM schedule s WHERE s.zone = schedule_set.zone) THEN zone
                     ELSE cron_zone(zone) END;
    tick := cron_after(cron, the_zone, at, at);
    INSERT INTO schedule AS s (name, kind, cron, args, queue, priority, zone, max_attempts, timeout, tags, metadata, missed,
                               missed_window, overlap, start_at, next_at, wake_at)
    VALUES (name, kind, cron, args, queue, priority, the_zone, max_attempts, timeout, tags, metadata, missed, missed_window,
            overlap, at, tick, tick)
    ON CONFLICT ON CONSTRAINT schedule_pkey DO UPDATE
       SET kind = excluded.kind, cron = excluded.cron, args = excluded.args, queue = excluded.queue,
           priority = excluded.priority, zone = excluded.zone, max_attempts = excluded.max_attempts, timeout = excluded.timeout,
           tags = excluded.tags, metadata = excluded.metadata, missed = excluded.missed, missed_window = excluded.missed_window,
           overlap = excluded.overlap, updated_at = at, failures = 0, failed_at = NULL, error = NULL,
           start_at = CASE WHEN (s.cron, s.zone) = (excluded.cron, excluded.zone) THEN s.start_at ELSE at END,
           next_at = CASE WHEN (s.cron, s.zone) = (excluded.cron, excluded.zone) THEN s.next_at ELSE tick END,
           wake_at = CASE WHEN (s.cron, s.zone) = (excluded.cron, excluded.zone) THEN s.next_at ELSE tick END
    RETURNING next_at INTO tick;
    RETURN tick;
END $$;

CREATE OR REPLACE FUNCTION schedule_enqueue(s schedule, due_at timestamptz, outcome text) RETURNS bigint
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    new_id bigint;
BEGIN
    INSERT INTO schedule_fire AS f (schedule, due_at, outcome) VALUES (s.name, schedule_enqueue.due_at, schedule_enqueue.outcome)
    ON CONFLICT ON CONSTRAINT schedule_fire_pkey DO NOTHING;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    new_id := enqueue(kind => s.kind, args => s.args, queue => s.queue, priority => s.priority::integer,
                      scheduled_at => due_at, max_attempts => s.max_attempts, timeout => s.timeout, tags => s.tags,
                      metadata => s.metadata);
    UPDATE schedule_fire f SET job_id = new_id WHERE f.schedule = s.name AND f.due_at = schedule_enqueue.due_at;
    RETURN new_id;
END $$;

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
            outcome := 'fired';
            job_id := schedule_enqueue(s, tick, 'fired');
            IF job_id IS NOT NULL THEN
                open_ids := CASE s.overlap WHEN 'skip' THEN open_ids ELSE '{}' END || job_id;
                fired := fired || job_id;
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

REVOKE ALL ON FUNCTION schedule_set FROM PUBLIC;
GRANT EXECUTE ON FUNCTION schedule_set TO claimd_admin;
