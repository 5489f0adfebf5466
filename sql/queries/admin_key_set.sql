-- SPDX-License-Identifier: Apache-2.0
-- Applies a patch to the limits of an exclusive key: max_running, and rate as "50/m".
-- params: text, text
SELECT CASE WHEN p ? 'max_running' THEN claimd.limit_key($1, (p ->> 'max_running')::integer) END AS running,
       CASE WHEN p ? 'rate'
            THEN claimd.limit_key_rate($1, split_part(p ->> 'rate', '/', 1)::integer,
                                       COALESCE(('1' || split_part(p ->> 'rate', '/', 2))::interval, '1 s')) END AS rate
  FROM (SELECT $2::jsonb AS p) AS said
