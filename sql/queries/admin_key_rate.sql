-- SPDX-License-Identifier: Apache-2.0
-- So many jobs with a key may start in a time; NULL: no limit.
-- params: text, int4, text
SELECT claimd.limit_key_rate($1, $2, $3::interval)
