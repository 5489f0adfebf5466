-- SPDX-License-Identifier: Apache-2.0
-- Sets how many jobs of a kind may run at a time, and how many may start in a period ("50/m"). NULL leaves a
-- limit as it is; none removes it.
-- params: name text kind, running text 1..1000 or none, rate text rate or none
-- then: record kind = kind_limits
-- method: POST
SELECT claimd.set_kind($1,
           CASE WHEN $2 IS NULL THEN '{}' ELSE jsonb_build_object('max_running', NULLIF($2, 'none')::integer) END
           || CASE WHEN $3 IS NULL THEN '{}' ELSE jsonb_build_object('rate', NULLIF($3, 'none')) END)
