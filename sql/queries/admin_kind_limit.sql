-- SPDX-License-Identifier: Apache-2.0
-- So many jobs of a kind may run at a time; NULL: no limit.
-- params: text, int4
SELECT claimd.set_kind($1, jsonb_build_object('max_running', $2))
