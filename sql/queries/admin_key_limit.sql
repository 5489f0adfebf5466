-- SPDX-License-Identifier: Apache-2.0
-- So many jobs with a key may run at a time; NULL: one.
-- params: text, int4
SELECT claimd.limit_key($1, $2)
