-- SPDX-License-Identifier: Apache-2.0
-- The roles that jobs and batches belong to, and who may act for them.

-- Returns the role that the session acts as, even within a function that runs as the owner of this schema.
CREATE OR REPLACE FUNCTION acting_role() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE current_setting('role') WHEN 'none' THEN session_user::text ELSE current_setting('role') END;

-- Returns the roles that the session may act for: its own, and those that it could become by SET ROLE. So a login may come and go
-- while its role keeps the jobs.
CREATE OR REPLACE FUNCTION own_roles() RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.rolname FROM pg_roles r
     WHERE pg_has_role(claimd.acting_role(), r.oid, CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END)
$$;

-- Raises 42501 unless the session may act for the owner of this thing. claimd's own programs and admins always may; readers may if
-- the session only reads (`reads`).
CREATE OR REPLACE FUNCTION check_owner(thing text, owner text, reads boolean) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM unnest('{claimd_admin,claimd_scheduler,claimd_worker,claimd_reader}'::text[]) AS u(role)
                WHERE (reads OR u.role <> 'claimd_reader') AND pg_has_role(acting_role(), u.role, 'USAGE'))
       OR owner IN (SELECT own_roles()) THEN
        RETURN;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
        MESSAGE = format('%s belongs to %s: role %s may not act for it', thing, COALESCE('role ' || owner, 'nobody'), acting_role()),
        HINT = CASE WHEN owner IS NULL THEN 'It was made while the cluster had no owners: ask an admin.'
                    ELSE format('GRANT %I TO %I', owner, acting_role()) END;
END $$;

CREATE OR REPLACE FUNCTION check_job_owners(ids bigint[], reads boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
    IF (SELECT owners FROM cluster) THEN
        PERFORM check_owner('job ' || j.id, j.owner, reads)
           FROM (SELECT o.id, o.owner FROM job o WHERE o.id = ANY (ids)
                  UNION ALL
                 SELECT h.id, h.owner FROM job_history h WHERE h.id = ANY (ids)) AS j;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION check_batch_owner(batch bigint, reads boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = claimd, pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT owners FROM cluster) THEN
        PERFORM check_owner('batch ' || b.id, b.owner, reads) FROM batch b WHERE b.id = check_batch_owner.batch;
    END IF;
END $$;

-- Turns owners on or off. Waits for open transactions that have created jobs; sessions that create jobs meanwhile wait behind
-- it, hence the short lock_timeout.
CREATE OR REPLACE FUNCTION set_owners(are_on boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = claimd, pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    change text := CASE WHEN are_on THEN 'SET DEFAULT claimd.acting_role()' ELSE 'DROP DEFAULT' END;
BEGIN
    IF are_on IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'CL002', MESSAGE = 'are_on: must be true or false';
    END IF;
    PERFORM require_program(2); -- an older one would lose them when a job ends
    EXECUTE 'ALTER TABLE claimd.job ALTER COLUMN owner ' || change;
    EXECUTE 'ALTER TABLE claimd.batch ALTER COLUMN owner ' || change;
    UPDATE cluster SET owners = are_on WHERE owners <> are_on;
END $$;

REVOKE ALL ON FUNCTION acting_role, own_roles, check_owner, check_job_owners, check_batch_owner, set_owners
    FROM PUBLIC, {roles};
GRANT EXECUTE ON FUNCTION acting_role, own_roles TO claimd_admin, claimd_producer, claimd_reader;
GRANT EXECUTE ON FUNCTION set_owners TO claimd_admin;
