-- SPDX-License-Identifier: Apache-2.0
-- The version of the schema, the oldest schema version that a program may be built for (see cluster_read), and how many parts of a
-- migration in progress are done. Fails with 42P01 or 3F000 in a database without a schema of claimd.
SELECT schema_version, COALESCE((to_jsonb(cluster) ->> 'oldest_program')::integer, schema_version) AS oldest_program,
       COALESCE((to_jsonb(cluster) ->> 'schema_part')::integer, 0) AS part
  FROM claimd.cluster
