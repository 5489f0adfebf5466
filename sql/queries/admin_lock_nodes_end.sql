-- SPDX-License-Identifier: Apache-2.0
-- The new list.
-- params: text
UPDATE claimd.cluster SET lock_nodes = $1, lock_nodes_before = ''
