-- SPDX-License-Identifier: Apache-2.0
-- What was set for kinds that no worker has announced goes with them.
DELETE FROM retention r USING kind k WHERE r.scope = 'kind' AND r.name = k.name AND NOT k.is_announced;
DELETE FROM kind WHERE NOT is_announced;

CREATE OR REPLACE FUNCTION pause_queue(queue text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := why_no_queue(queue);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    INSERT INTO queue AS q (name, paused, paused_at, paused_by)
    VALUES (pause_queue.queue, true, clock_timestamp(), session_user)
        ON CONFLICT (name) DO UPDATE SET paused = true, paused_at = excluded.paused_at, paused_by = excluded.paused_by
         WHERE NOT q.paused;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM pg_catalog.pg_notify('claimd', 'changed'); -- the leading scheduler makes workers look
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION resume_queue(queue text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := why_no_queue(queue);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    UPDATE queue q SET paused = false, paused_at = NULL, paused_by = NULL WHERE q.name = resume_queue.queue AND q.paused;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM pg_catalog.pg_notify('claimd', 'changed');
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION weigh_queue(queue text, weight integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := COALESCE(why_no_queue(queue),
                           CASE WHEN weight NOT BETWEEN 1 AND 100 THEN 'weight: must be 1 to 100, or NULL for no weight' END);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    INSERT INTO queue AS q (name, weight) VALUES (weigh_queue.queue, weigh_queue.weight)
        ON CONFLICT (name) DO UPDATE SET weight = excluded.weight;
END $$;

CREATE OR REPLACE FUNCTION limit_queue(queue text, max_running integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := COALESCE(why_no_queue(queue),
                           CASE WHEN max_running NOT BETWEEN 1 AND 10000 THEN 'max_running: must be 1 to 10000, or NULL for no limit' END);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    PERFORM require_program(2); -- an older program would claim on
    INSERT INTO queue AS q (name, max_running, limited)
    VALUES (limit_queue.queue, limit_queue.max_running, limit_queue.max_running IS NOT NULL)
        ON CONFLICT (name) DO UPDATE SET max_running = excluded.max_running, limited = excluded.limited OR q.rate IS NOT NULL;
    INSERT INTO slot (queue, n) SELECT limit_queue.queue, g FROM generate_series(1, limit_queue.max_running) AS g
        ON CONFLICT DO NOTHING;
    DELETE FROM slot s WHERE s.queue = limit_queue.queue AND s.n > COALESCE(limit_queue.max_running, 0) AND s.fence = 0;
END $$;

CREATE OR REPLACE FUNCTION limit_rate(queue text, starts integer, per interval DEFAULT '1 s') RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := COALESCE(why_no_queue(queue), why_no_rate(starts, per));
    per_second double precision := starts / NULLIF(extract(epoch FROM per), 0);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    PERFORM require_program(2); -- an older program would claim on
    INSERT INTO queue AS q (name, rate, limited) VALUES (limit_rate.queue, per_second, per_second IS NOT NULL)
        ON CONFLICT (name) DO UPDATE SET rate = excluded.rate, limited = excluded.limited OR q.max_running IS NOT NULL;
    DELETE FROM bucket b WHERE b.queue = limit_rate.queue AND per_second IS NULL;
    INSERT INTO bucket (queue) SELECT limit_rate.queue WHERE per_second IS NOT NULL ON CONFLICT DO NOTHING;
END $$;

CREATE OR REPLACE FUNCTION limit_open(queue text, max_open integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    wrong text := COALESCE(why_no_queue(queue),
                           CASE WHEN max_open NOT BETWEEN 1 AND 10000000 THEN 'max_open: must be 1 to 10000000, or NULL for no limit' END);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    INSERT INTO queue AS q (name, max_open) VALUES (limit_open.queue, limit_open.max_open)
        ON CONFLICT (name) DO UPDATE SET max_open = excluded.max_open;
    DELETE FROM room r WHERE r.queue = limit_open.queue AND limit_open.max_open IS NULL;
    INSERT INTO room AS r (queue) SELECT limit_open.queue WHERE limit_open.max_open IS NOT NULL
        ON CONFLICT ON CONSTRAINT room_pkey DO UPDATE SET jobs = 0;
END $$;

CREATE OR REPLACE FUNCTION pause_kind(kind text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    PERFORM require_program(2);
    UPDATE kind k SET paused = true, paused_at = clock_timestamp(), paused_by = session_user
     WHERE k.name = pause_kind.kind AND NOT k.paused;
    IF FOUND THEN
        PERFORM pg_catalog.pg_notify('claimd', 'changed');
        RETURN true;
    END IF;
    IF NOT EXISTS (SELECT FROM kind k WHERE k.name = pause_kind.kind) THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'kind: must be one that a worker has announced (claimctl kinds list)';
    END IF;
    RETURN false;
END $$;

CREATE OR REPLACE FUNCTION resume_kind(kind text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    UPDATE kind k SET paused = false, paused_at = NULL, paused_by = NULL WHERE k.name = resume_kind.kind AND k.paused;
    IF FOUND THEN
        PERFORM pg_catalog.pg_notify('claimd', 'changed');
        RETURN true;
    END IF;
    IF NOT EXISTS (SELECT FROM kind k WHERE k.name = resume_kind.kind) THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'kind: must be one that a worker has announced (claimctl kinds list)';
    END IF;
    RETURN false;
END $$;

CREATE OR REPLACE FUNCTION set_kind(kind text, patch jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    known text[] := '{max_attempts,max_crashes,timeout,backoff,keep_log}';
    wanted kind;
    old kind;
    new kind;
    by_hand jsonb;
    own jsonb;
    field text;
    wrong text;
BEGIN
    PERFORM require_program(2);
    IF patch IS NULL OR jsonb_typeof(patch) <> 'object' OR patch = '{}' OR patch - known <> '{}' THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002',
            MESSAGE = 'patch: must be a JSON object with some of ' || array_to_string(known, ', ') || ', and nothing else';
    END IF;
    FOR field IN SELECT jsonb_object_keys(patch) LOOP
        wanted := with_value(wanted, field, patch -> field, 'patch');
    END LOOP;
    wrong := COALESCE(CASE WHEN wanted.max_attempts < 1 THEN 'max_attempts: must be 1 or more'
                           WHEN wanted.max_crashes < 1 THEN 'max_crashes: must be 1 or more'
                           WHEN wanted.timeout <= interval '0' OR wanted.timeout > interval '366 days'
                           THEN 'timeout: must be more than 0 and at most 366 days' END, why_no_backoff(wanted.backoff));
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'patch.' || wrong;
    END IF;
    SELECT k.* INTO old FROM kind k WHERE k.name = set_kind.kind FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'kind: must be one that a worker has announced (claimctl kinds list)';
    END IF;
    by_hand := jsonb_strip_nulls(old.set_by_hand || patch);
    own := (SELECT jsonb_object_agg(k, to_jsonb(old) -> k) FROM unnest(known) AS k) || old.of_plugin;
    new := jsonb_populate_record(old, own || by_hand);
    UPDATE kind k
       SET max_attempts = new.max_attempts, max_crashes = new.max_crashes, timeout = new.timeout, backoff = new.backoff,
           keep_log = new.keep_log, set_by_hand = by_hand, updated_at = clock_timestamp(),
           of_plugin = COALESCE((SELECT jsonb_object_agg(h, own -> h) FROM jsonb_object_keys(by_hand) AS h), '{}')
     WHERE k.name = set_kind.kind;
END $$;

CREATE OR REPLACE FUNCTION set_retention(scope text, name text, keep interval, state text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    seconds numeric := extract(epoch FROM keep);
    wrong text := CASE
        WHEN set_retention.state NOT IN ('completed', 'discarded', 'cancelled')
        THEN 'state: must be completed, discarded or cancelled, or NULL for all'
        WHEN keep = interval '0' AND (set_retention.scope = 'kind' AND set_retention.state = 'completed') IS NOT TRUE
        THEN 'keep: must be 1 to 3650 days, or NULL for the default; only completed jobs of a kind may be kept for 0 days'
        WHEN seconds % 86400 <> 0 OR seconds NOT BETWEEN 0 AND 3650 * 86400::bigint
        THEN 'keep: must be 1 to 3650 whole days, or NULL for the default'
    END;
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = wrong;
    END IF;
    PERFORM require_program(2); -- an older scheduler would drop days that are to be kept
    IF keep IS NULL THEN
        DELETE FROM retention r WHERE r.scope = set_retention.scope AND r.name = set_retention.name
           AND r.state = COALESCE(set_retention.state, r.state);
        RETURN;
    END IF;
    INSERT INTO retention (scope, name, state, days)
    VALUES (set_retention.scope, set_retention.name, COALESCE(set_retention.state, ''), seconds / 86400)
        ON CONFLICT ON CONSTRAINT retention_pkey DO UPDATE SET days = excluded.days;
END $$;

CREATE OR REPLACE FUNCTION retain_kind(kind text, keep interval, state text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM kind k WHERE k.name = retain_kind.kind) THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'kind: must be one that a worker has announced (claimctl kinds list)';
    END IF;
    PERFORM set_retention('kind', kind, keep, state);
END $$;

CREATE OR REPLACE FUNCTION look_at_kind(kind text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM kind k WHERE k.name = look_at_kind.kind) THEN
        PERFORM set_config('claimd.kind', kind, false);
    ELSIF kind IS NOT NULL AND EXISTS (SELECT FROM kind) THEN
        RAISE NOTICE USING MESSAGE = format('kind: no worker has served %L so far', kind),
            HINT = 'The job waits until one does.';
    END IF;
END $$;

DROP FUNCTION set_queue, change_queue, rate_of, why_no_setting, set_rules, keep_of, why_no_keep, need_kind, forget_kind, why_no_kind,
    change_kind;
DROP TYPE starts_per;
ALTER TABLE kind DROP COLUMN is_announced, DROP COLUMN grace;
