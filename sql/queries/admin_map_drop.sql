-- SPDX-License-Identifier: Apache-2.0
-- Forgets the next rows of a map, $2 at most; 0: the map is gone.
-- params: text, int4
SELECT claimd.map_drop($1, $2)
