-- SPDX-License-Identifier: Apache-2.0
-- Keys that have a limit of their own or are held, 1,000 at most; with $1: this one, whatever it has.
-- params: text
SELECT k.key, COALESCE(l.max_running, 1) AS max_running, (SELECT count(*) FROM claimd.exclusive e WHERE e.key = k.key) AS running,
       trim_scale(round(l.rate::numeric, 6)) AS starts_per_s,
       CASE WHEN l.rate IS NOT NULL THEN floor(claimd.key_tokens(l, clock_timestamp())) END AS may_start_now
  FROM (SELECT $1 COLLATE "C" AS key WHERE $1 IS NOT NULL
        UNION
        SELECT key FROM claimd.key_limit WHERE $1 IS NULL
        UNION
        SELECT key FROM claimd.exclusive WHERE $1 IS NULL) AS k
  LEFT JOIN claimd.key_limit l ON l.key = k.key
 ORDER BY k.key
 LIMIT 1000
