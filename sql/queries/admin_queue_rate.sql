-- SPDX-License-Identifier: Apache-2.0
-- So many jobs of a queue may start in a time; NULL: no limit.
-- params: text, int4, text
SELECT claimd.limit_rate($1, $2, $3::interval)
