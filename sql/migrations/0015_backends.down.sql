-- SPDX-License-Identifier: Apache-2.0
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
