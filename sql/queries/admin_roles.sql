-- SPDX-License-Identifier: Apache-2.0
-- The role of this session, which of claimd's roles are missing on this server, and which of them the session's role is a member of.
WITH wanted AS (
    SELECT unnest(ARRAY['claimd_admin', 'claimd_scheduler', 'claimd_worker', 'claimd_producer', 'claimd_reader', 'claimd_web']) AS name
)
SELECT current_user,
       (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) AS is_superuser,
       (SELECT string_agg(w.name, ', ') FROM wanted w WHERE to_regrole(w.name) IS NULL) AS missing,
       (SELECT string_agg(w.name, ', ') FROM wanted w WHERE pg_has_role(to_regrole(w.name), 'MEMBER')) AS ours
