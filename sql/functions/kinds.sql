-- SPDX-License-Identifier: Apache-2.0
-- The settings of kinds.

-- Raises a notice if no worker has announced the kind, unless no kind at all was announced: then no worker has started yet, which is
-- no news. The session remembers the last known kind, because the look-up takes a sixth of the time of an enqueue(), and most
-- sessions enqueue jobs of one kind, one after the other.
CREATE OR REPLACE FUNCTION look_at_kind(kind text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM kind k WHERE k.name = look_at_kind.kind AND k.is_announced) THEN
        PERFORM set_config('claimd.kind', kind, false);
    ELSIF kind IS NOT NULL AND EXISTS (SELECT FROM kind k WHERE k.is_announced) THEN
        RAISE NOTICE USING MESSAGE = format('kind: no worker has served %L so far', kind),
            HINT = 'The job waits until one does.';
    END IF;
END $$;

-- Ensures that a kind has a row, before something is set for it.
CREATE OR REPLACE FUNCTION need_kind(kind text) RETURNS void
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

-- Deletes the row of a kind that no worker has announced, if nothing is set for it. Called after a setting was removed.
CREATE OR REPLACE FUNCTION forget_kind(kind text) RETURNS void
LANGUAGE plpgsql SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    announced text[] := '{name,plugin,version,max_attempts,max_crashes,timeout,at_most_once,backoff,keep_log,grace,updated_at}';
BEGIN
    DELETE FROM kind k
     WHERE k.name = forget_kind.kind AND NOT k.is_announced
       AND NOT EXISTS (SELECT FROM jsonb_each(to_jsonb(k) - announced) AS set WHERE set.value NOT IN ('null', 'false', '{}'))
       AND NOT EXISTS (SELECT FROM retention r WHERE r.scope = 'kind' AND r.name = k.name);
END $$;

-- Pauses a kind. Workers withdraw it with their next heartbeat: it is not claimed and, because no worker serves it, not fed either.
-- Workers of an older release would continue to serve it. True if it was not paused before.
CREATE OR REPLACE FUNCTION pause_kind(kind text) RETURNS boolean
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

CREATE OR REPLACE FUNCTION resume_kind(kind text) RETURNS boolean
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

-- Sets the columns that the patch names, in place of the plugin's values; null restores these.
CREATE OR REPLACE FUNCTION change_kind(kind text, patch jsonb) RETURNS void
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

-- Limits how many jobs of the kind may run at a time, and start per second. These are limits of the key kind:NAME, which the jobs get
-- when they are claimed. 1000 is the largest limit of a key, so with a rate alone it stands for any number.
CREATE OR REPLACE FUNCTION limit_kind(kind text, patch jsonb, rate double precision) RETURNS void
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

-- Sets what operators want for a kind, until null removes it: in place of its plugin's values, how often its jobs are tried, for how
-- long, and how long they wait in between; also whether it is paused, how many jobs run and start, and how long its jobs are kept.
-- Workers of an older release would overwrite this with their own values at their next start.
CREATE OR REPLACE FUNCTION set_kind(kind text, patch jsonb) RETURNS void
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

REVOKE ALL ON FUNCTION look_at_kind, need_kind, forget_kind, pause_kind, resume_kind, change_kind, limit_kind,
    set_kind FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION pause_kind, resume_kind, set_kind TO claimd_admin;
