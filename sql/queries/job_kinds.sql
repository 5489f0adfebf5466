-- SPDX-License-Identifier: Apache-2.0
-- What a NULL in a job of these kinds means.
-- params: text[]
SELECT name, max_attempts, max_crashes, (EXTRACT(EPOCH FROM timeout) * 1000000)::bigint AS timeout_us, at_most_once,
       COALESCE(backoff, '') AS backoff
  FROM claimd.kind
 WHERE name = ANY ($1)
