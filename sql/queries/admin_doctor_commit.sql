-- SPDX-License-Identifier: Apache-2.0
-- The values of synchronous_commit that sessions of this database may get: settings of the database, of roles that are members of
-- claimd's, and the server's value if the database has none and our own session shows it. Also whether there are synchronous standbys.
WITH said AS (
    SELECT CASE WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'all roles'
                WHEN s.setrole = 0 THEN format('database %I', d.datname)
                WHEN s.setdatabase = 0 THEN format('role %I', r.rolname)
                ELSE format('role %I in database %I', r.rolname, d.datname) END AS place,
           lower(split_part(c, '=', 2)) AS value
      FROM pg_catalog.pg_db_role_setting s
      LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase
      LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole
     CROSS JOIN LATERAL unnest(s.setconfig) AS c
     WHERE starts_with(c, 'synchronous_commit=') AND (s.setdatabase = 0 OR d.datname = current_database())
       AND (s.setrole = 0
            OR EXISTS (SELECT FROM pg_catalog.pg_roles o
                        WHERE o.rolname IN ('claimd_admin', 'claimd_scheduler', 'claimd_worker', 'claimd_producer')
                          AND pg_has_role(s.setrole, o.oid, 'MEMBER')))
    UNION ALL
    SELECT 'the server', reset_val FROM pg_catalog.pg_settings
     WHERE name = 'synchronous_commit' AND source IN ('default', 'environment variable', 'configuration file', 'command line')
)
SELECT place, CASE WHEN value IN ('off', 'false', 'no', '0') THEN 'off' ELSE value END AS value,
       current_setting('synchronous_standby_names') <> '' AS has_standbys
  FROM said
 ORDER BY place
