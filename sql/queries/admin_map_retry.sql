-- SPDX-License-Identifier: Apache-2.0
-- Retries the next failed or cancelled rows of a map, after the key $2.
-- params: text, text
SELECT last_key, jobs, left_out FROM claimd.map_retry($1, $2)
