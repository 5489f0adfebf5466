-- SPDX-License-Identifier: Apache-2.0
-- How long the runs of a queue's jobs took, by kind.
-- params: name text queue
-- shows: kind text, runs number, mean_s seconds, p50_s seconds wide, p95_s seconds, since_at time
SELECT kind, runs, mean_s, p50_s, p95_s, {utc_seconds since} AS since_at
  FROM claimd.run_lengths
 WHERE queue = $1 AND kind IS NOT NULL
 ORDER BY kind
