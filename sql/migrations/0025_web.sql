-- SPDX-License-Identifier: Apache-2.0
-- claimd-web: its role, and what was done through it. The functions that it may call are in sql/functions/web.sql.

-- As in 0001: roles are of the whole cluster, and another database may make them at this moment. So the way back leaves this one.
RESET ROLE;
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'claimd_web') THEN
        CREATE ROLE claimd_web NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;
END $$;
DO $$
BEGIN
    IF NOT pg_has_role('claimd_web', 'claimd_reader', 'USAGE') THEN
        GRANT claimd_reader TO claimd_web;
    END IF;
END $$;
SET LOCAL ROLE claimd_scheduler;

-- One row per act, written before it begins. `status`: the HTTP status of its answer; NULL: claimd-web ended meanwhile.
CREATE TABLE web_audit (
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    status integer,
    who text NOT NULL,
    role text NOT NULL,
    address text NOT NULL,
    method text NOT NULL,
    path text NOT NULL,
    body text NOT NULL,
    CONSTRAINT web_audit_pkey PRIMARY KEY (id)
);

GRANT SELECT ON web_audit TO claimd_admin, claimd_reader;
GRANT INSERT (who, role, address, method, path, body), UPDATE (status) ON web_audit TO claimd_web;

-- ---- down ----
DROP TABLE web_audit;
