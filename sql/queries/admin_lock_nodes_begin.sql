-- SPDX-License-Identifier: Apache-2.0
-- From now on, no daemon can join, because $1 is not a list of nodes. Workers that have not stopped are marked dead, so that one that
-- comes back starts over and is refused. One statement, in the transaction of admin_lock_nodes_hold.
-- params: text
WITH gone AS (
    UPDATE claimd.worker SET dead = true WHERE NOT dead AND NOT stopped
)
UPDATE claimd.cluster SET lock_nodes_before = CASE WHEN lock_nodes_before = '' THEN lock_nodes ELSE lock_nodes_before END,
                          lock_nodes = $1
