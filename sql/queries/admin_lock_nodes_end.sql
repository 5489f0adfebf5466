-- SPDX-License-Identifier: Apache-2.0
-- Stores the new list of lock nodes; the change is over.
-- params: text
UPDATE claimd.cluster SET lock_nodes = $1, lock_nodes_before = ''
