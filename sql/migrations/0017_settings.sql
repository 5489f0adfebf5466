-- SPDX-License-Identifier: Apache-2.0
-- What operators set for queues and kinds, by one function each. The guide: docs/guide/configuration.md, docs/guide/operating-jobs.md.

-- ---- queues ----
CREATE TYPE starts_per AS (starts integer, per interval);

-- Starts per second, of {"starts": 50, "per": "1 min"} or "50/m"; NULL: any. Here and below, `place` begins what is said of a wrong
-- value; NULL: nothing does.
CREATE FUNCTION rate_of(rate jsonb, place text) RETURNS double precision
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

CREATE FUNCTION why_no_setting(wanted queue) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT CASE WHEN (wanted).weight NOT BETWEEN 1 AND 100 THEN 'weight: must be 1 to 100, or NULL for no weight'
                WHEN (wanted).max_running NOT BETWEEN 1 AND 10000 THEN 'max_running: must be 1 to 10000, or NULL for no limit'
                WHEN (wanted).max_open NOT BETWEEN 1 AND 10000000 THEN 'max_open: must be 1 to 10000000, or NULL for no limit' END
$$;

-- What the patch names; null: as if nothing had been said. True: that changed something.
CREATE FUNCTION change_queue(queue text, patch jsonb, place text) RETURNS boolean
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

-- All rules of a queue or kind: {"discarded": "90d", "": "7d"}, "" for all others, or "7d" for {"": "7d"}; null: none.
CREATE FUNCTION set_rules(scope text, name text, rules jsonb, place text) RETURNS void
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

-- The first field of a patch that is none of the known ones; NULL: there is none.
CREATE FUNCTION why_not_known(patch jsonb, known text[]) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
    SELECT format('patch.%s: %s', left(min(k), 64), why_unknown(min(k), known)) FROM jsonb_object_keys(patch - known) AS k HAVING count(*) > 0
$$;

-- What operators say of a queue; what the patch doesn't name stays, null takes it back.
CREATE FUNCTION set_queue(queue text, patch jsonb) RETURNS void
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

-- Nothing of a paused queue is fed, and none of its hints is popped; what runs goes on. True: it was not paused before.
CREATE FUNCTION pause_queue(queue text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN change_queue(queue, '{"paused": true}', NULL);
END $$;

-- True: it was paused.
CREATE FUNCTION resume_queue(queue text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    RETURN change_queue(queue, '{"paused": false}', NULL);
END $$;

-- Pauses each queue that has an open job, a live worker or a setting, and is not paused: their names. Not those that come later.
CREATE FUNCTION pause_all_queues() RETURNS SETOF text
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

-- Resumes each queue that is paused: their names.
CREATE FUNCTION resume_all_queues() RETURNS SETOF text
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

-- NULL: no weight any more. Workers hear it with their next beat; those of an older release go on by score.
CREATE FUNCTION weigh_queue(queue text, weight integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM change_queue(queue, jsonb_build_object('weight', weight), NULL);
END $$;

-- NULL: no limit any more. Places that are held beyond a lower limit count until their runs have ended.
CREATE FUNCTION limit_queue(queue text, max_running integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM change_queue(queue, jsonb_build_object('max_running', max_running), NULL);
END $$;

-- At most `starts` jobs of the queue begin in `per`, on average; what was not used in the last second may be made up for. NULL:
-- no limit any more.
CREATE FUNCTION limit_rate(queue text, starts integer, per interval DEFAULT '1 s') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM change_queue(queue, jsonb_build_object('rate', jsonb_build_object('starts', starts, 'per', per)), NULL);
END $$;

-- So many jobs of the queue that have not ended, waiting or running; who would enqueue one more is refused. NULL: no limit any more.
CREATE FUNCTION limit_open(queue text, max_open integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM change_queue(queue, jsonb_build_object('max_open', max_open), NULL);
END $$;

-- ---- how many jobs of a queue may be open ----
-- Of queues with max_open: so many more jobs may come before the open ones are counted anew.
CREATE TABLE room (
    queue text COLLATE "C" NOT NULL,
    jobs integer NOT NULL DEFAULT 0,
    CONSTRAINT room_pkey PRIMARY KEY (queue)
) WITH (fillfactor = 50);

-- Room for so many more jobs in a queue with max_open, else CL005. Exact, since one enqueuer waits for the transaction of the other.
-- Jobs that end make room, so what a count has found can be given away before the next one.
CREATE FUNCTION take_room(queue text, wanted bigint) RETURNS void
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

-- The same for all jobs of an array, in the order of the queues: two calls would lock each other out.
CREATE FUNCTION take_rooms(jobs jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM take_room(w.name, w.jobs)
       FROM (SELECT q.name, count(*) AS jobs
               FROM jsonb_array_elements(take_rooms.jobs) AS e
               JOIN queue q ON q.name = COALESCE(e ->> 'queue', 'default') AND q.max_open IS NOT NULL
              GROUP BY q.name
              ORDER BY q.name) AS w;
END $$;

-- ---- kinds ----
-- While there is no kind at all, there was no worker yet, which is no news. The session remembers the last kind that is known, since
-- looking takes a sixth of the time of an enqueue(): most sessions make jobs of one kind, one after the other.
CREATE FUNCTION look_at_kind(kind text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM kind k WHERE k.name = look_at_kind.kind AND k.is_announced) THEN
        PERFORM set_config('claimd.kind', kind, false);
    ELSIF kind IS NOT NULL AND EXISTS (SELECT FROM kind k WHERE k.is_announced) THEN
        RAISE NOTICE USING MESSAGE = format('kind: no worker has served %L so far', kind),
            HINT = 'The job waits until one does.';
    END IF;
END $$;

CREATE FUNCTION why_no_kind(kind text) RETURNS text
LANGUAGE sql STABLE
RETURN CASE WHEN kind IS NULL OR kind !~ '^[a-z][a-z0-9_]*$' OR octet_length(kind) > 64
            THEN 'kind: must match ^[a-z][a-z0-9_]*$ and have at most 64 octets' END;

-- Before something is set for it: the row of a kind.
CREATE FUNCTION need_kind(kind text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := why_no_kind(kind);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    IF EXISTS (SELECT FROM kind k WHERE k.name = need_kind.kind) THEN
        RETURN;
    END IF;
    PERFORM require_program(17); -- an older worker would not say that it has it
    INSERT INTO kind (name, is_announced) VALUES (need_kind.kind, false) ON CONFLICT DO NOTHING;
END $$;

-- After something was taken back: a kind that no worker has announced, and for which nothing is set, is not there any more.
CREATE FUNCTION forget_kind(kind text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM kind k
     WHERE k.name = forget_kind.kind AND NOT k.is_announced AND NOT k.paused AND NOT k.limited AND k.set_by_hand = '{}'
       AND NOT EXISTS (SELECT FROM retention r WHERE r.scope = 'kind' AND r.name = k.name);
END $$;

-- Workers withdraw a paused kind with their next beat: it is not claimed, and as nobody serves it, not fed either.
-- Older workers would go on with it.
CREATE FUNCTION pause_kind(kind text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM require_program(2);
    PERFORM need_kind(kind);
    UPDATE kind k SET paused = true, paused_at = clock_timestamp(), paused_by = session_user
     WHERE k.name = pause_kind.kind AND NOT k.paused;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM pg_catalog.pg_notify('claimd', 'changed');
    RETURN true;
END $$;

CREATE FUNCTION resume_kind(kind text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := why_no_kind(kind);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    UPDATE kind k SET paused = false, paused_at = NULL, paused_by = NULL WHERE k.name = resume_kind.kind AND k.paused;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM forget_kind(kind);
    PERFORM pg_catalog.pg_notify('claimd', 'changed');
    RETURN true;
END $$;

-- In place of its plugin: the columns that the patch names; null takes them back.
CREATE FUNCTION change_kind(kind text, patch jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := '{max_attempts,max_crashes,timeout,backoff,keep_log,grace}';
    old kind;
    new kind;
    by_hand jsonb;
    own jsonb;
BEGIN
    SELECT k.* INTO old FROM kind k WHERE k.name = change_kind.kind FOR UPDATE;
    by_hand := jsonb_strip_nulls(old.set_by_hand || patch);
    own := (SELECT jsonb_object_agg(k, to_jsonb(old) -> k) FROM unnest(known) AS k) || old.of_plugin;
    new := jsonb_populate_record(old, own || by_hand);
    UPDATE kind k
       SET max_attempts = new.max_attempts, max_crashes = new.max_crashes, timeout = new.timeout, backoff = new.backoff,
           keep_log = new.keep_log, grace = new.grace, set_by_hand = by_hand, updated_at = clock_timestamp(),
           of_plugin = COALESCE((SELECT jsonb_object_agg(h, own -> h) FROM jsonb_object_keys(by_hand) AS h), '{}')
     WHERE k.name = change_kind.kind AND k.set_by_hand <> by_hand;
END $$;

-- How many of its jobs may run at a time, and start per second: limits of the key kind:NAME, which its jobs get when they are claimed.
-- 1000 is as many as a key can have, so with a rate alone any number.
CREATE FUNCTION limit_kind(kind text, patch jsonb, rate double precision) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    kind_key text := 'kind:' || kind;
    old key_limit;
BEGIN
    PERFORM require_program(20); -- an older one would claim on
    PERFORM FROM kind k WHERE k.name = limit_kind.kind FOR NO KEY UPDATE;
    SELECT l.* INTO old FROM key_limit l JOIN kind k ON k.limited AND k.name = limit_kind.kind WHERE l.key = kind_key;
    INSERT INTO key_limit AS l (key, max_running, rate)
    VALUES (kind_key, CASE WHEN patch ? 'max_running' THEN COALESCE((patch ->> 'max_running')::integer, 1000) ELSE COALESCE(old.max_running, 1000) END,
            CASE WHEN patch ? 'rate' THEN limit_kind.rate ELSE old.rate END)
        ON CONFLICT ON CONSTRAINT key_limit_pkey
        DO UPDATE SET max_running = excluded.max_running, rate = excluded.rate, is_grouped = false;
    DELETE FROM key_limit l WHERE l.key = kind_key AND l.max_running = 1000 AND l.rate IS NULL;
    UPDATE kind k SET limited = EXISTS (SELECT FROM key_limit l WHERE l.key = kind_key) WHERE k.name = limit_kind.kind;
END $$;

-- What operators say of a kind, until they take it back by null: in place of its plugin how often its jobs are tried, for how long, and
-- how long they wait in between; whether it is paused, how many run and start, and how long its jobs are kept. Older workers would say
-- their own with the next start.
CREATE FUNCTION set_kind(kind text, patch jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := '{max_attempts,max_crashes,timeout,backoff,keep_log,grace,paused,max_running,rate,retain}';
    of_plugin jsonb := patch - '{paused,max_running,rate,retain}'::text[];
    wanted kind;
    limits queue;
    field text;
    wrong text;
BEGIN
    PERFORM require_program(2);
    wrong := CASE WHEN patch IS NULL OR jsonb_typeof(patch) <> 'object' OR patch = '{}'
                  THEN 'patch: must be a JSON object with some of ' || array_to_string(known, ', ')
                  ELSE why_not_known(patch, known) END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    FOR field IN SELECT jsonb_object_keys(of_plugin || patch - '{max_running,rate,retain}'::text[]) LOOP
        wanted := with_value(wanted, field, patch -> field, 'patch');
    END LOOP;
    limits := with_value(limits, 'max_running', patch -> 'max_running', 'patch');
    limits.rate := CASE WHEN patch ? 'rate' THEN rate_of(patch -> 'rate', 'patch.rate') END;
    wrong := COALESCE(CASE WHEN limits.max_running NOT BETWEEN 1 AND 1000 THEN 'max_running: must be 1 to 1000, or NULL for no limit'
                           WHEN wanted.max_attempts < 1 THEN 'max_attempts: must be 1 or more'
                           WHEN wanted.max_crashes < 1 THEN 'max_crashes: must be 1 or more'
                           WHEN wanted.timeout <= interval '0' OR wanted.timeout > interval '366 days'
                           THEN 'timeout: must be more than 0 and at most 366 days' END,
                      why_no_grace(wanted.grace), why_no_backoff(wanted.backoff));
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'patch.' || wrong;
    END IF;
    PERFORM need_kind(kind);
    IF of_plugin <> '{}' THEN
        PERFORM change_kind(kind, of_plugin);
    END IF;
    IF patch ?| '{max_running,rate}' THEN
        PERFORM limit_kind(kind, patch, limits.rate);
    END IF;
    IF patch ? 'retain' THEN
        PERFORM set_rules('kind', kind, patch -> 'retain', 'patch.retain');
    END IF;
    IF wanted.paused THEN
        PERFORM pause_kind(kind);
    ELSIF patch ? 'paused' THEN
        PERFORM resume_kind(kind);
    END IF;
    PERFORM forget_kind(kind);
END $$;

REVOKE ALL ON FUNCTION why_not_known, rate_of, why_no_setting, change_queue, set_rules, set_queue, pause_queue, resume_queue, pause_all_queues,
    resume_all_queues, weigh_queue, limit_queue, limit_rate, limit_open, take_room, take_rooms, look_at_kind, why_no_kind, need_kind,
    forget_kind, pause_kind, resume_kind, change_kind, limit_kind, set_kind FROM PUBLIC;
REVOKE ALL ON TYPE starts_per FROM PUBLIC;
GRANT SELECT ON room TO claimd_admin, claimd_reader;
GRANT EXECUTE ON FUNCTION set_queue, pause_queue, resume_queue, pause_all_queues, resume_all_queues, weigh_queue, limit_queue, limit_rate,
    limit_open, pause_kind, resume_kind, set_kind TO claimd_admin;

-- ---- down ----
DROP FUNCTION why_not_known, set_kind, limit_kind, change_kind, resume_kind, pause_kind, forget_kind, need_kind, why_no_kind, look_at_kind, take_rooms, take_room, limit_open,
    limit_rate, limit_queue, weigh_queue, resume_all_queues, pause_all_queues, resume_queue, pause_queue, set_queue, set_rules, change_queue,
    why_no_setting, rate_of;
DROP TYPE starts_per;
DROP TABLE room;
