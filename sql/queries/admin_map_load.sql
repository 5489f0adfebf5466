-- SPDX-License-Identifier: Apache-2.0
-- Makes jobs of the next rows ($3 their keys, $4 as JSON) behind the key $2; $5: there are no more.
-- params: int8, text, text[], text[], bool
SELECT made, skipped, failed FROM claimd.map_load($1, $2, $3, $4, $5)
