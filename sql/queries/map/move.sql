-- SPDX-License-Identifier: Apache-2.0
-- Moves the ends of at most $1 rows of maps to map_done and returns how many. Index: map_done_pkey.
-- params: int4
SELECT claimd.move_map_ends($1)
