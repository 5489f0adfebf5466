-- SPDX-License-Identifier: Apache-2.0
-- Lets a daemon join: stores its list of lock nodes if it is the first, and its lease if that is the largest.
-- Locks the one row for a moment.
-- params: text, int8
UPDATE claimd.cluster SET lock_nodes = CASE WHEN lock_nodes = '' THEN $1 ELSE lock_nodes END, t_max_us = GREATEST(t_max_us, $2)
RETURNING lock_nodes, t_max_us
