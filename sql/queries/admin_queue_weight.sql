-- SPDX-License-Identifier: Apache-2.0
-- The weight of a queue among those of the same worker; NULL: none.
-- params: name text queue, weight int4 1..100 or none
-- then: record queue = queue_limits
-- method: POST
SELECT claimd.weigh_queue($1, $2)
