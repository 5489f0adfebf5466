-- SPDX-License-Identifier: Apache-2.0
-- The one row of the cluster: schema version, largest lease in use, list of lock nodes, whether the leader is hungry, and the oldest
-- schema version that a program may be built for. The last one is read as JSON, because an older schema has no such column: then only
-- programs built for that very version fit.
SELECT schema_version, t_max_us, lock_nodes, hungry,
       COALESCE((to_jsonb(cluster) ->> 'oldest_program')::integer, schema_version) AS oldest_program
  FROM claimd.cluster
