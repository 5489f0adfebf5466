-- SPDX-License-Identifier: Apache-2.0
-- The cluster's list of lock nodes, the former list while it is being changed, and the largest lease in use.
SELECT lock_nodes, lock_nodes_before, t_max_us FROM claimd.cluster
