-- SPDX-License-Identifier: Apache-2.0
-- Login roles for claimd's programs, each with the rights of its group role and no more. For psql, as a superuser or a role that may
-- create roles, before or after `claimctl db migrate` and as often as you like: a second run sets new passwords.
--
-- A role is made if its variable is set:
--     scheduler_password   claimd_scheduler_login   claimd-scheduler; its group owns the schema
--     worker_password      claimd_worker_login      claimd-worker: claims and finishes jobs
--     producer_password    claimd_producer_login    your programs: put jobs in, cancel them
--     admin_password       claimd_admin_login       claimctl: as producer, sees everything, pauses queues
--     web_password         claimd_web_login         claimd-web: sees everything, and does what its page offers
--     reader_password      claimd_reader_login      sees everything
--     replication_password claimd_replication_login a standby: copies the whole server (docs/ha.md)
--
-- Everybody sees a program's arguments, so let psql read the passwords from files:
--     psql -X DATABASE <<'END'
--     \set worker_password `cat /etc/claimd/secrets/postgres_worker`
--     \i deploy/postgres/roles.sql
--     END
-- In place of a password a verifier will do ('SCRAM-SHA-256$…').
\set ON_ERROR_STOP on
\set QUIET on
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp; -- what others may have put into `public` must not run as a superuser
SET LOCAL password_encryption = 'scram-sha-256';
SET LOCAL client_min_messages = warning;

-- A function, because a statement log set to 'ddl' would show the passwords of CREATE ROLE.
CREATE FUNCTION pg_temp.make_login(group_name text, password text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    login_name text := group_name || '_login';
BEGIN
    IF coalesce(password, '') = '' THEN
        RAISE EXCEPTION '%: its password is empty', login_name;
    END IF;
    IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = login_name
                  AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)) THEN
        RAISE EXCEPTION '%: this role exists and may do more than a program of claimd needs: drop or rename it', login_name;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = group_name) THEN
        EXECUTE format('CREATE ROLE %I NOLOGIN', group_name); -- the migration gives it its rights
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = login_name) THEN
        EXECUTE format('CREATE ROLE %I', login_name);
    END IF;
    EXECUTE format('ALTER ROLE %I LOGIN PASSWORD %L', login_name, password);
    EXECUTE format('GRANT %I TO %I', group_name, login_name);
END $$;

CREATE FUNCTION pg_temp.make_replication_login(password text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(password, '') = '' THEN
        RAISE EXCEPTION 'claimd_replication_login: its password is empty';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'claimd_replication_login') THEN
        CREATE ROLE claimd_replication_login;
    END IF;
    EXECUTE format('ALTER ROLE claimd_replication_login LOGIN REPLICATION PASSWORD %L', password);
END $$;

\if :{?scheduler_password}
    SELECT pg_temp.make_login('claimd_scheduler', :'scheduler_password') AS given \gset
    \echo claimd_scheduler_login
\endif
\if :{?worker_password}
    SELECT pg_temp.make_login('claimd_worker', :'worker_password') AS given \gset
    \echo claimd_worker_login
\endif
\if :{?producer_password}
    SELECT pg_temp.make_login('claimd_producer', :'producer_password') AS given \gset
    \echo claimd_producer_login
\endif
\if :{?admin_password}
    SELECT pg_temp.make_login('claimd_admin', :'admin_password') AS given \gset
    \echo claimd_admin_login
\endif
\if :{?web_password}
    SELECT pg_temp.make_login('claimd_web', :'web_password') AS given \gset
    \echo claimd_web_login
\endif
\if :{?reader_password}
    SELECT pg_temp.make_login('claimd_reader', :'reader_password') AS given \gset
    \echo claimd_reader_login
\endif
\if :{?replication_password}
    SELECT pg_temp.make_replication_login(:'replication_password') AS given \gset
    \echo claimd_replication_login
\endif
\if :{?given}
\else
    DO $$ BEGIN RAISE EXCEPTION 'no password is given: set scheduler_password, worker_password, producer_password, admin_password, web_password, reader_password or replication_password'; END $$;
\endif
COMMIT;
