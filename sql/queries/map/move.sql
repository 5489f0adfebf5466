-- SPDX-License-Identifier: Apache-2.0
-- Writes what has happened to at most $1 rows of maps to where it stays; how many that were. Index: map_done_pkey.
-- params: int4
SELECT claimd.move_map_ends($1)
