-- SPDX-License-Identifier: Apache-2.0
-- Makes a map, or begins another pass over its query. Parameters: name, query, key, kind, template, queue, max_running, rate, into_table.
-- params: text, text, text, text, text, text, int4, text, text
SELECT claimd.map_begin($1, $2, $3, $4, $5::jsonb, $6, $7, $8, $9)
