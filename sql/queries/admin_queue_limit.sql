-- SPDX-License-Identifier: Apache-2.0
-- So many jobs of a queue may run at a time; NULL: no limit.
-- params: text, int4
SELECT claimd.limit_queue($1, $2)
