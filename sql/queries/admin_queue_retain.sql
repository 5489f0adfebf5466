-- SPDX-License-Identifier: Apache-2.0
-- Sets how long finished jobs of a queue are kept. $2: NULL = the default; $3: only jobs that ended in this state, NULL = all.
-- params: name text queue, keep text days or default, state text completed|discarded|cancelled
-- then: rules = queue_rules
-- method: POST
SELECT claimd.retain_queue($1, NULLIF($2, 'default')::interval, $3)
