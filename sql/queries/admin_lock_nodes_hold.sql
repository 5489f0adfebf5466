-- SPDX-License-Identifier: Apache-2.0
-- admin_lock_nodes for a change in this transaction: daemons that register, report or join wait until it ends, and then see the change.
SELECT lock_nodes, lock_nodes_before, t_max_us FROM claimd.cluster FOR UPDATE
