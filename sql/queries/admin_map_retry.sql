-- SPDX-License-Identifier: Apache-2.0
-- Runs the next failed rows of a map again, behind the key $2.
-- params: text, text
SELECT last_key, jobs, left_out FROM claimd.map_retry($1, $2)
