-- SPDX-License-Identifier: Apache-2.0
-- How many jobs of a kind may run at a time, and start in a time ("50/m"). NULL: stays; none: no limit.
-- params: name text kind, running text 1..1000 or none, rate text rate or none
-- then: record kind = kind_limits
-- method: POST
SELECT claimd.set_kind($1,
           CASE WHEN $2 IS NULL THEN '{}' ELSE jsonb_build_object('max_running', NULLIF($2, 'none')::integer) END
           || CASE WHEN $3 IS NULL THEN '{}' ELSE jsonb_build_object('rate', NULLIF($3, 'none')) END)
