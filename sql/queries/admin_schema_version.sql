-- SPDX-License-Identifier: Apache-2.0
-- Version of the schema, for which one a program must at least have been built (see cluster_read), and parts that are done of a
-- migration under way; fails with 42P01 or 3F000 in a database without one.
SELECT schema_version, COALESCE((to_jsonb(cluster) ->> 'oldest_program')::integer, schema_version) AS oldest_program,
       COALESCE((to_jsonb(cluster) ->> 'schema_part')::integer, 0) AS part
  FROM claimd.cluster
