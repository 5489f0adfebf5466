-- SPDX-License-Identifier: Apache-2.0
-- The cluster as a whole: its fences, which programs may join, and requests to workers.

-- Returns a text that a failover changes: the WAL timeline or, if the server does not report its timeline, the server's start time, which
-- differs between a primary and its standby. A restart changes the start time too, which only skips numbers. pg_control_checkpoint()
-- would not do: after a promotion it shows the former timeline until the first checkpoint. Fails on a server that is in recovery.
CREATE OR REPLACE FUNCTION server_epoch() RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN left(pg_walfile_name(pg_current_wal_lsn()), 8);
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR object_not_in_prerequisite_state THEN
    IF pg_is_in_recovery() THEN
        RAISE;
    END IF;
    RETURN 'start ' || (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint;
END $$;

CREATE OR REPLACE FUNCTION guard_fence() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    now_on text := claimd.server_epoch();
BEGIN
    IF (SELECT timeline = now_on FROM claimd.cluster) THEN
        RETURN false;
    END IF;
    UPDATE claimd.cluster SET timeline = now_on WHERE timeline <> now_on;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM setval('claimd.fence', nextval('claimd.fence') + 4294967296);
    PERFORM setval('claimd.job_id_seq', nextval('claimd.job_id_seq') + 4294967296);
    RETURN true;
END $$;

-- For doctor: fails if PostgreSQL can't write. Needs new pages on the disk and a commit, and leaves nothing behind.
CREATE OR REPLACE FUNCTION probe_write() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    CREATE UNLOGGED TABLE doctor_probe (n integer, filler text);
    INSERT INTO doctor_probe SELECT n, repeat(md5(n::text), 60) FROM generate_series(1, 4000) AS n;
    DROP TABLE doctor_probe;
END $$;

-- Raises CL003 while programs built for a schema below `version` may join; for functions whose effect such programs would break.
CREATE OR REPLACE FUNCTION require_program(version integer) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT oldest_program < version FROM cluster) THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = 'programs of an older release may still work, which would break this: run `claimctl db finish` once all '
                      'schedulers and workers are replaced';
    END IF;
END $$;

-- Finishes an upgrade: programs that were built for an older schema can't start any more. Raises CL003 while one is
-- running. Returns the schema's version.
CREATE OR REPLACE FUNCTION finish_upgrade() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    newest integer;
    older text;
BEGIN
    -- program_joins() waits for this row: whoever joins now is seen, or sees what is written here.
    SELECT schema_version INTO newest FROM cluster FOR UPDATE;
    SELECT string_agg(who, ', ' ORDER BY who) INTO older
      FROM (SELECT format('worker %s on %s', w.pid, w.host) AS who FROM worker w
             WHERE w.built_for < newest AND NOT w.stopped AND NOT w.dead
            UNION ALL
            SELECT format('scheduler %s on %s', s.pid, s.host) FROM scheduler s
             WHERE s.built_for < newest AND s.stale_at > clock_timestamp()) AS p;
    IF older IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'still at work, of an older release: ' || older;
    END IF;
    UPDATE cluster SET oldest_program = newest WHERE oldest_program <> newest;
    RETURN newest;
END $$;

CREATE OR REPLACE FUNCTION program_joins() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    oldest integer;
BEGIN
    SELECT oldest_program INTO oldest FROM cluster FOR KEY SHARE;
    IF NEW.built_for < oldest THEN
        RAISE EXCEPTION USING ERRCODE = 'CL003',
            MESSAGE = format('this program was built for version %s of the schema, %s is needed: use a newer build', NEW.built_for,
                             oldest);
    END IF;
    RETURN NEW;
END $$;

-- True if this session may send a NOTIFY. After a NOTIFY, a transaction can't be prepared (PREPARE TRANSACTION), so a session may
-- turn NOTIFY off: SET claimd.notify = off. The feed's pass, which runs each second, then finds the jobs of the session, and a worker
-- learns of a cancel request with its next heartbeat.
CREATE OR REPLACE FUNCTION may_notify() RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    setting text := COALESCE(NULLIF(current_setting('claimd.notify', true), ''), 'on');
BEGIN
    IF setting NOT IN ('on', 'off') THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'claimd.notify: must be on or off';
    END IF;
    RETURN setting = 'on';
END $$;

-- Asks a worker to take no new jobs ('quiet'), to continue if it was asked to be quiet ('resume'), or to finish its
-- running jobs and then exit ('drain').
CREATE OR REPLACE FUNCTION ask_worker(worker_id uuid, what text) RETURNS void
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

REVOKE ALL ON FUNCTION server_epoch, guard_fence, probe_write, require_program, finish_upgrade, program_joins,
    may_notify, ask_worker FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION guard_fence TO claimd_worker;
GRANT EXECUTE ON FUNCTION probe_write, finish_upgrade, ask_worker TO claimd_admin;
GRANT EXECUTE ON FUNCTION may_notify TO claimd_admin, claimd_producer;
