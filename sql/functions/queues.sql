-- SPDX-License-Identifier: Apache-2.0
-- The settings of queues, and the limit on their open jobs.

CREATE OR REPLACE FUNCTION why_no_rate(starts integer, per interval) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN starts NOT BETWEEN 1 AND 100000
            THEN 'starts: must be 1 to 100000, or NULL for no limit'
            WHEN (per >= interval '1 s' AND per <= interval '31 days') IS NOT TRUE
            THEN 'per: must be 1 second to 31 days' END;

-- Returns the starts per second of a rate such as {"starts": 50, "per": "1 min"} or "50/m"; NULL: no limit. Here and below, `place`
-- begins the message about a wrong value; NULL: the message begins with the field.
CREATE OR REPLACE FUNCTION rate_of(rate jsonb, place text) RETURNS double precision
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    r starts_per := ROW(NULL, '1 s');
    said text := rate #>> '{}';
    field text;
    wrong text;
BEGIN
    IF jsonb_typeof(rate) = 'string' AND said ~ '^[1-9][0-9]{0,5}/[smhd]$' THEN
        r := ROW(split_part(said, '/', 1), '1' || split_part(said, '/', 2));
    ELSIF jsonb_typeof(rate) = 'object' THEN
        FOR field IN SELECT jsonb_object_keys(rate) LOOP
            IF field NOT IN ('starts', 'per') THEN
                RAISE EXCEPTION USING ERRCODE = 'CL002',
                    MESSAGE = concat_ws('.', place, left(field, 64)) || ': ' || why_unknown(field, '{starts,per}');
            END IF;
            r := with_value(r, field, rate -> field, place);
        END LOOP;
    ELSIF jsonb_typeof(rate) <> 'null' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002',
            MESSAGE = place || ': must be 1 to 100000, then /s, /m, /h or /d, such as "50/m", or {"starts": 50, "per": "1 min"}, '
                               'or null for no limit';
    END IF;
    wrong := why_no_rate(r.starts, r.per);
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = concat_ws('.', place, wrong);
    END IF;
    RETURN r.starts / NULLIF(extract(epoch FROM r.per), 0);
END $$;

CREATE OR REPLACE FUNCTION why_no_setting(wanted queue) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT CASE WHEN (wanted).weight NOT BETWEEN 1 AND 100 THEN 'weight: must be 1 to 100, or NULL for no weight'
                WHEN (wanted).max_running NOT BETWEEN 1 AND 10000 THEN 'max_running: must be 1 to 10000, or NULL for no limit'
                WHEN (wanted).max_open NOT BETWEEN 1 AND 10000000 THEN 'max_open: must be 1 to 10000000, or NULL for no limit' END
$$;

-- Changes the settings that the patch names; null removes a setting. True if this changed something.
CREATE OR REPLACE FUNCTION change_queue(queue text, patch jsonb, place text) RETURNS boolean
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := why_no_queue(queue);
    wanted queue;
    old queue;
    new queue;
    field text;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    FOR field IN SELECT jsonb_object_keys(patch - 'rate') LOOP
        wanted := with_value(wanted, field, patch -> field, place);
    END LOOP;
    IF patch ? 'rate' THEN
        wanted.rate := rate_of(patch -> 'rate', place || '.rate');
    END IF;
    wanted.paused := NULLIF(wanted.paused, false);
    wrong := why_no_setting(wanted);
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = concat_ws('.', place, wrong);
    END IF;
    IF patch ?| '{max_running,rate}' THEN
        PERFORM require_program(2); -- an older program would claim on
    END IF;
    INSERT INTO queue (name) SELECT change_queue.queue WHERE NOT wanted IS NULL ON CONFLICT DO NOTHING;
    SELECT q.* INTO old FROM queue q WHERE q.name = change_queue.queue FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    new := jsonb_populate_record(old, (SELECT jsonb_object_agg(k, to_jsonb(wanted) -> k) FROM jsonb_object_keys(patch) AS k));
    new.paused := COALESCE(new.paused, false);
    new.limited := new.max_running IS NOT NULL OR new.rate IS NOT NULL;
    IF new.paused <> old.paused THEN
        new.paused_at := CASE WHEN new.paused THEN clock_timestamp() END;
        new.paused_by := CASE WHEN new.paused THEN session_user END;
        PERFORM pg_catalog.pg_notify('claimd', 'changed'); -- the leading scheduler makes workers look
    END IF;
    UPDATE queue q
       SET paused = new.paused, paused_at = new.paused_at, paused_by = new.paused_by, weight = new.weight, limited = new.limited,
           max_running = new.max_running, rate = new.rate, max_open = new.max_open
     WHERE q.name = change_queue.queue AND new IS DISTINCT FROM old;
    IF patch ? 'max_running' THEN
        INSERT INTO slot (queue, n) SELECT new.name, g FROM generate_series(1, new.max_running) AS g ON CONFLICT DO NOTHING;
        DELETE FROM slot s WHERE s.queue = new.name AND s.n > COALESCE(new.max_running, 0) AND s.fence = 0;
    END IF;
    IF patch ? 'rate' THEN
        DELETE FROM bucket b WHERE b.queue = new.name AND new.rate IS NULL;
        INSERT INTO bucket (queue) SELECT new.name WHERE new.rate IS NOT NULL ON CONFLICT DO NOTHING;
    END IF;
    IF patch ? 'max_open' THEN
        DELETE FROM room r WHERE r.queue = new.name AND new.max_open IS NULL;
        INSERT INTO room AS r (queue) SELECT new.name WHERE new.max_open IS NOT NULL
            ON CONFLICT ON CONSTRAINT room_pkey DO UPDATE SET jobs = 0;
    END IF;
    RETURN new IS DISTINCT FROM old;
END $$;

-- Sets all retention rules of a queue or kind, as in {"discarded": "90d", "": "7d"}, where "" means all other states. A text such as
-- "7d" is the rule for all states, and null removes all rules.
CREATE OR REPLACE FUNCTION set_rules(scope text, name text, rules jsonb, place text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    each_rule jsonb := CASE jsonb_typeof(rules) WHEN 'string' THEN jsonb_build_object('', rules) WHEN 'null' THEN '{}' ELSE rules END;
    ended text;
    keep interval;
    wrong text;
BEGIN
    IF jsonb_typeof(each_rule) <> 'object' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002',
            MESSAGE = place || ': must be a text such as "90d", or an object such as {"discarded": "90d", "": "7d"}, or null';
    END IF;
    PERFORM set_retention(scope, name, NULL, NULL);
    FOR ended IN SELECT jsonb_object_keys(jsonb_strip_nulls(each_rule)) LOOP
        keep := keep_of(each_rule ->> ended);
        wrong := CASE WHEN ended NOT IN ('', 'completed', 'discarded', 'cancelled')
                      THEN why_unknown(ended, ARRAY['completed', 'discarded', 'cancelled', '"" for all others'])
                      ELSE why_no_keep(scope, keep, ended) END;
        IF wrong IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = concat_ws('.', place, NULLIF(left(ended, 64), '')) || ': ' || wrong;
        END IF;
        PERFORM set_retention(scope, name, keep, NULLIF(ended, ''));
    END LOOP;
END $$;

-- Changes the settings of a queue: those that the patch doesn't name stay as they are, and null removes a setting.
CREATE OR REPLACE FUNCTION set_queue(queue text, patch jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := '{paused,weight,max_running,rate,max_open,retain}';
    wrong text := CASE
        WHEN patch IS NULL OR jsonb_typeof(patch) <> 'object' OR patch = '{}'
        THEN 'patch: must be a JSON object with some of ' || array_to_string(known, ', ')
        ELSE why_not_known(patch, known)
    END;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    PERFORM change_queue(queue, patch - 'retain', 'patch');
    IF patch ? 'retain' THEN
        PERFORM set_rules('queue', queue, patch -> 'retain', 'patch.retain');
    END IF;
END $$;

-- Pauses a queue: none of its jobs is fed, and none of its hints is popped; running jobs continue. True if it was not paused before.
CREATE OR REPLACE FUNCTION pause_queue(queue text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN change_queue(queue, '{"paused": true}', NULL);
END $$;

-- Resumes a queue. True if it was paused.
CREATE OR REPLACE FUNCTION resume_queue(queue text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN change_queue(queue, '{"paused": false}', NULL);
END $$;

-- Pauses each queue that has an open job, a live worker or a setting, and is not paused yet; returns their names. Queues
-- that appear later are not paused.
CREATE OR REPLACE FUNCTION pause_all_queues() RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    known text;
BEGIN
    FOR known IN WITH RECURSIVE hop(name) AS (
                     (SELECT j.queue FROM job j ORDER BY j.queue LIMIT 1)
                     UNION ALL
                     SELECT (SELECT j.queue FROM job j WHERE j.queue > h.name ORDER BY j.queue LIMIT 1) FROM hop h
                      WHERE h.name IS NOT NULL)
                 SELECT h.name FROM hop h WHERE h.name IS NOT NULL
                 UNION SELECT q.name FROM queue q
                 UNION SELECT unnest(w.queues) FROM worker w WHERE NOT w.dead AND NOT w.stopped
                 ORDER BY 1 LOOP
        IF pause_queue(known) THEN
            RETURN NEXT known;
        END IF;
    END LOOP;
END $$;

-- Resumes all paused queues; returns their names.
CREATE OR REPLACE FUNCTION resume_all_queues() RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text;
BEGIN
    FOR known IN SELECT q.name FROM queue q WHERE q.paused ORDER BY q.name LOOP
        IF resume_queue(known) THEN
            RETURN NEXT known;
        END IF;
    END LOOP;
END $$;

-- Sets the weight of a queue; NULL removes it. Workers learn the weight with their next heartbeat; workers of an older
-- release continue to pop by score.
CREATE OR REPLACE FUNCTION weigh_queue(queue text, weight integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM change_queue(queue, jsonb_build_object('weight', weight), NULL);
END $$;

-- Limits how many jobs of the queue run at a time; NULL removes the limit. Places that are held beyond a lowered limit
-- count until their runs have ended.
CREATE OR REPLACE FUNCTION limit_queue(queue text, max_running integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM change_queue(queue, jsonb_build_object('max_running', max_running), NULL);
END $$;

-- Limits the starts of jobs of the queue to `starts` in each `per`, on average; starts that were not used in the last second may be
-- made up for. NULL removes the limit.
CREATE OR REPLACE FUNCTION limit_rate(queue text, starts integer, per interval DEFAULT '1 s') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM change_queue(queue, jsonb_build_object('rate', jsonb_build_object('starts', starts, 'per', per)), NULL);
END $$;

-- Limits how many jobs of the queue may be open, waiting or running; further jobs are refused (CL005). NULL removes the limit.
CREATE OR REPLACE FUNCTION limit_open(queue text, max_open integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM change_queue(queue, jsonb_build_object('max_open', max_open), NULL);
END $$;

-- Takes room for `wanted` more jobs in a queue with max_open, or raises CL005. The limit is exact, because enqueueing
-- sessions wait for each other's transactions. Jobs that end only add room, so the jobs are counted again only when the room
-- that the last count found is used up.
CREATE OR REPLACE FUNCTION take_room(queue text, wanted bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
    most integer;
    found_open bigint;
    found_room bigint := (SELECT r.jobs FROM room r WHERE r.queue = take_room.queue FOR NO KEY UPDATE);
BEGIN
    IF found_room < wanted THEN
        SELECT q.max_open INTO most FROM queue q WHERE q.name = take_room.queue;
        SELECT count(*) INTO found_open FROM (SELECT FROM job j WHERE j.queue = take_room.queue LIMIT most + 1) AS j;
        found_room := most - found_open;
        IF found_room < wanted THEN
            RAISE EXCEPTION USING ERRCODE = 'CL005', DETAIL = found_open::text,
                MESSAGE = format('queue: %s has %s%s of at most %s open jobs: no room for %s more', queue,
                                 CASE WHEN found_open > most THEN 'more than ' ELSE '' END, LEAST(found_open, most), most, wanted);
        END IF;
    END IF;
    UPDATE room r SET jobs = found_room - wanted WHERE r.queue = take_room.queue;
END $$;

-- Does the same for all jobs of an array, in the order of the queues: in different orders, two calls would deadlock.
CREATE OR REPLACE FUNCTION take_rooms(jobs jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM take_room(w.name, w.jobs)
       FROM (SELECT q.name, count(*) AS jobs
               FROM jsonb_array_elements(take_rooms.jobs) AS e
               JOIN queue q ON q.name = COALESCE(e ->> 'queue', 'default') AND q.max_open IS NOT NULL
              GROUP BY q.name
              ORDER BY q.name) AS w;
END $$;

REVOKE ALL ON FUNCTION why_no_rate, rate_of, why_no_setting, change_queue, set_rules, set_queue, pause_queue,
    resume_queue, pause_all_queues, resume_all_queues, weigh_queue, limit_queue, limit_rate, limit_open, take_room,
    take_rooms FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION set_queue, pause_queue, resume_queue, pause_all_queues, resume_all_queues, weigh_queue,
    limit_queue, limit_rate, limit_open TO claimd_admin;
