-- SPDX-License-Identifier: Apache-2.0
-- The one row of the cluster: schema version, largest lease in use, fingerprint of the lock nodes.
SELECT schema_version, t_max_us, lock_nodes, hungry FROM claimd.cluster
