-- SPDX-License-Identifier: Apache-2.0
-- Sets how many jobs of a queue may run at a time, start in a period ("50/m") and be open. NULL leaves a limit as it is; none removes it.
-- params: name text queue, running text 1..10000 or none, rate text rate or none, max_open text 1..10000000 or none
-- then: record queue = queue_limits
-- method: POST
SELECT claimd.set_queue($1,
           CASE WHEN $2 IS NULL THEN '{}' ELSE jsonb_build_object('max_running', NULLIF($2, 'none')::integer) END
           || CASE WHEN $3 IS NULL THEN '{}' ELSE jsonb_build_object('rate', NULLIF($3, 'none')) END
           || CASE WHEN $4 IS NULL THEN '{}' ELSE jsonb_build_object('max_open', NULLIF($4, 'none')::integer) END)
