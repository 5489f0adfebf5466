-- SPDX-License-Identifier: Apache-2.0
-- The weight of a queue among those of the same worker; NULL: none.
-- params: text, int4
SELECT claimd.weigh_queue($1, $2)
