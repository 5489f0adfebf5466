-- SPDX-License-Identifier: Apache-2.0
-- Makes jobs of the next rows of the map $1 after the key $2. $3: their keys, $4: the rows as JSON, $5: true if they are the last.
-- params: int8, text, text[], text[], bool
SELECT made, skipped, failed FROM claimd.map_load($1, $2, $3, $4, $5)
