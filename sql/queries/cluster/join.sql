-- SPDX-License-Identifier: Apache-2.0
-- A daemon joins: the first one's list of lock nodes stays, the largest lease in use is kept. Locks the one row for a moment.
-- params: text, int8
UPDATE claimd.cluster SET lock_nodes = CASE WHEN lock_nodes = '' THEN $1 ELSE lock_nodes END, t_max_us = GREATEST(t_max_us, $2)
RETURNING lock_nodes, t_max_us
