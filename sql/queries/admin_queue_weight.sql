-- SPDX-License-Identifier: Apache-2.0
-- Sets the weight of a queue among the queues of the same worker; NULL removes it.
-- params: name text queue, weight int4 1..100 or none
-- then: record queue = queue_limits
-- method: POST
SELECT claimd.weigh_queue($1, $2)
