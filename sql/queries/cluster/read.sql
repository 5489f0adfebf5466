-- SPDX-License-Identifier: Apache-2.0
-- The one row of the cluster: schema version, largest lease in use, fingerprint of the lock nodes, and for which schema version a
-- program must at least have been built to work with this one. As JSON, because a schema that has no such column needs its own.
SELECT schema_version, t_max_us, lock_nodes, hungry,
       COALESCE((to_jsonb(cluster) ->> 'oldest_program')::integer, schema_version) AS oldest_program
  FROM claimd.cluster
