-- SPDX-License-Identifier: Apache-2.0
-- The defaults of a kind, for jobs that have no value of their own, and which of these defaults set_kind() has set.
-- params: name text kind
-- shows: kind text, announced bool, max_attempts number, max_crashes number, timeout_s seconds, grace_s seconds, backoff text,
-- shows: keep_log text, set_by_hand text
SELECT name AS kind, is_announced AS announced, CASE WHEN at_most_once THEN 1 ELSE max_attempts END AS max_attempts, max_crashes,
       extract(epoch FROM timeout)::float8 AS timeout_s, extract(epoch FROM grace)::float8 AS grace_s, backoff, CASE WHEN keep_log THEN 'all' ELSE 'failed' END AS keep_log,
       (SELECT string_agg(h, ',' ORDER BY h) FROM jsonb_object_keys(set_by_hand) AS h) AS set_by_hand
  FROM claimd.kind
 WHERE name = $1
