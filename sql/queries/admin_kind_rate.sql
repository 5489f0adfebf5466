-- SPDX-License-Identifier: Apache-2.0
-- So many jobs of a kind may start in a time; NULL: no limit.
-- params: text, int4, text
SELECT claimd.set_kind($1, jsonb_build_object('rate', CASE WHEN $2 IS NOT NULL THEN jsonb_build_object('starts', $2, 'per', $3) END))
