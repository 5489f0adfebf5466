-- SPDX-License-Identifier: Apache-2.0
-- How long the runs of a queue's jobs took, by kind.
-- params: text
SELECT kind, runs, mean_s, p95_s, to_char(since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS since_at
  FROM claimd.run_lengths
 WHERE queue = $1 AND kind IS NOT NULL
 ORDER BY kind
