-- SPDX-License-Identifier: Apache-2.0
-- The limits of a kind, and how much of each is used; NULL: no limit.
-- params: name text kind
-- shows: kind text, max_running number, running number, starts_per_s number, may_start_now number
SELECT k.name AS kind, NULLIF(l.max_running, 1000) AS max_running,
       CASE WHEN k.limited THEN (SELECT count(*) FROM claimd.exclusive e WHERE e.key = 'kind:' || k.name) END AS running,
       trim_scale(round(l.rate::numeric, 6)) AS starts_per_s,
       CASE WHEN l.rate IS NOT NULL THEN floor(claimd.key_tokens(l, clock_timestamp())) END AS may_start_now
  FROM (SELECT $1 COLLATE "C" AS name) AS n
  LEFT JOIN claimd.kind t ON t.name = n.name
 CROSS JOIN LATERAL (SELECT n.name, COALESCE(t.limited, false) AS limited) AS k
  LEFT JOIN claimd.key_limit l ON k.limited AND l.key = 'kind:' || k.name
