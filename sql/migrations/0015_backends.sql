-- SPDX-License-Identifier: Apache-2.0
-- Some managed servers refuse what tells the WAL timeline: then the server's start stands in for it.

-- What a failover changes: the WAL timeline, or where that is not told, the moment at which this server was started. A standby was
-- started at another one than its primary. A restart changes it, too, which only skips numbers. Not pg_control_checkpoint(): after
-- a promotion it shows the former timeline until the first checkpoint. Fails on a server that is in recovery.
CREATE FUNCTION server_epoch() RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN left(pg_walfile_name(pg_current_wal_lsn()), 8);
EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR object_not_in_prerequisite_state THEN
    IF pg_is_in_recovery() THEN
        RAISE;
    END IF;
    RETURN 'start ' || (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint;
END $$;
REVOKE ALL ON FUNCTION server_epoch() FROM PUBLIC;

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

UPDATE cluster SET timeline = server_epoch() WHERE timeline = '';

-- ---- down ----
CREATE OR REPLACE FUNCTION guard_fence() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp AS $$
DECLARE
    now_on text := left(pg_walfile_name(pg_current_wal_lsn()), 8);
BEGIN
    IF (SELECT timeline = now_on FROM cluster) THEN
        RETURN false;
    END IF;
    UPDATE cluster SET timeline = now_on WHERE timeline <> now_on;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM setval('fence', nextval('fence') + 4294967296);
    PERFORM setval('job_id_seq', nextval('job_id_seq') + 4294967296);
    RETURN true;
END $$;
DROP FUNCTION server_epoch();
