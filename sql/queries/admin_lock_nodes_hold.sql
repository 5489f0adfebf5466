-- SPDX-License-Identifier: Apache-2.0
-- As above, for a change in this transaction: daemons that register, report or join wait until its end, and see it.
SELECT lock_nodes, lock_nodes_before, t_max_us FROM claimd.cluster FOR UPDATE
