-- SPDX-License-Identifier: Apache-2.0
-- The defaults of these kinds: what a NULL in one of their jobs means.
-- params: text[]
SELECT name, max_attempts, max_crashes, (EXTRACT(EPOCH FROM timeout) * 1000000)::bigint AS timeout_us, at_most_once,
       COALESCE(backoff, '') AS backoff,
       EXISTS (SELECT FROM claimd.retention r
                WHERE r.scope = 'kind' AND r.name = kind.name AND r.state = 'completed' AND r.days = 0) AS keeps_none,
       keep_log, COALESCE((EXTRACT(EPOCH FROM grace) * 1000000)::bigint, 0) AS grace_us
  FROM claimd.kind
 WHERE name = ANY ($1)
