-- SPDX-License-Identifier: Apache-2.0
-- So many jobs of a queue may be open; NULL: no limit.
-- params: text, int4
SELECT claimd.limit_open($1, $2)
