-- SPDX-License-Identifier: Apache-2.0
-- Patterns, and keys that have a limit of their own or are held, at most 1,000; with $1, this key, whatever it has. `pattern`: the
-- pattern whose limits apply to the key, because it has none of its own.
-- params: key text
-- shows: key text, max_running number, running number, starts_per_s number, may_start_now number, pattern text
-- tables: keys
SELECT k.key, COALESCE(l.max_running, g.max_running, 1) AS max_running,
       CASE WHEN g.prefix || '*' = k.key THEN NULL ELSE (SELECT count(*) FROM claimd.exclusive e WHERE e.key = k.key) END AS running,
       trim_scale(round((CASE WHEN l.key IS NULL THEN g.rate ELSE l.rate END)::numeric, 6)) AS starts_per_s,
       CASE WHEN l.rate IS NOT NULL THEN floor(claimd.key_tokens(l, clock_timestamp())) END AS may_start_now,
       CASE WHEN (l.key IS NULL OR l.is_grouped) AND g.prefix || '*' <> k.key THEN g.prefix || '*' END AS pattern
  FROM (SELECT $1 COLLATE "C" AS key WHERE $1 IS NOT NULL
        UNION
        SELECT prefix || '*' FROM claimd.key_group WHERE $1 IS NULL
        UNION
        SELECT key FROM claimd.key_limit WHERE $1 IS NULL AND NOT is_grouped
        UNION
        SELECT key FROM claimd.exclusive WHERE $1 IS NULL) AS k
  LEFT JOIN claimd.key_limit l ON l.key = k.key
  LEFT JOIN LATERAL claimd.group_of(k.key) AS g ON true
 ORDER BY k.key
 LIMIT 1000
