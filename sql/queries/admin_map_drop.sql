-- SPDX-License-Identifier: Apache-2.0
-- Deletes at most $2 rows of a map and returns how many; 0: no rows were left, and the map is deleted.
-- params: text, int4
SELECT claimd.map_drop($1, $2)
