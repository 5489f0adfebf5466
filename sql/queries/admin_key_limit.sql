-- SPDX-License-Identifier: Apache-2.0
-- Sets how many jobs with a key may run at a time, and how many may start in a period ("50/m"). NULL leaves a
-- setting as it is; none removes it.
-- params: key text, running text 1..1000 or none, rate text rate or none
-- then: record key = keys
-- method: POST
SELECT CASE WHEN $2 IS NOT NULL THEN claimd.limit_key($1, NULLIF($2, 'none')::integer) END AS running,
       CASE WHEN $3 IS NOT NULL
            THEN claimd.limit_key_rate($1, NULLIF(split_part($3, '/', 1), 'none')::integer,
                                       COALESCE(('1' || NULLIF(split_part($3, '/', 2), ''))::interval, '1 s')) END AS rate
