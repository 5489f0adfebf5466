-- SPDX-License-Identifier: Apache-2.0
-- What jobs of a kind get that say nothing else, and which of that was set by set_kind().
-- params: name text kind
-- shows: kind text, announced bool, max_attempts number, max_crashes number, timeout_s seconds, grace_s seconds, backoff text,
-- shows: keep_log text, set_by_hand text
SELECT name AS kind, is_announced AS announced, CASE WHEN at_most_once THEN 1 ELSE max_attempts END AS max_attempts, max_crashes,
       extract(epoch FROM timeout)::float8 AS timeout_s, extract(epoch FROM grace)::float8 AS grace_s, backoff, CASE WHEN keep_log THEN 'all' ELSE 'failed' END AS keep_log,
       (SELECT string_agg(h, ',' ORDER BY h) FROM jsonb_object_keys(set_by_hand) AS h) AS set_by_hand
  FROM claimd.kind
 WHERE name = $1
