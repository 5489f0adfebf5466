-- SPDX-License-Identifier: Apache-2.0
-- Cancels the next open jobs of a map, after the unique key $2.
-- params: text, text
SELECT last_key, jobs FROM claimd.map_cancel($1, $2)
