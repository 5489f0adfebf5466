-- SPDX-License-Identifier: Apache-2.0
-- One kind as a worker announced it, which of its values set_kind() has set, what the plugin's values for these are, and who paused it.
-- params: name text kind
-- shows: kind text, plugin text, version text, announced bool, workers number, max_attempts number, max_crashes number,
-- shows: timeout_s seconds, grace_s seconds, backoff text, keep_log text, at_most_once bool, set_by_hand text, of_plugin json,
-- shows: max_running number, starts_per_s number, paused bool, paused_at time, paused_by text, runs number, mean_s seconds,
-- shows: p50_s seconds, p95_s seconds, since_at time, updated_at time
-- tables: record kind, retention = kind_rules
-- none: kind {name} not found: no worker has announced it, and nothing is set for it
SELECT k.name AS kind, NULLIF(k.plugin, '') AS plugin, NULLIF(k.version, '') AS version, k.is_announced AS announced,
       (SELECT count(*) FROM claimd.worker w
         WHERE NOT w.dead AND NOT w.stopped AND w.stale_at > clock_timestamp() AND k.name = ANY (w.kinds)) AS workers,
       CASE WHEN k.at_most_once THEN 1 ELSE k.max_attempts END AS max_attempts, k.max_crashes,
       extract(epoch FROM k.timeout)::float8 AS timeout_s, extract(epoch FROM k.grace)::float8 AS grace_s, k.backoff,
       CASE WHEN k.keep_log THEN 'all' ELSE 'failed' END AS keep_log, k.at_most_once,
       (SELECT string_agg(h, ',' ORDER BY h) FROM jsonb_object_keys(k.set_by_hand) AS h) AS set_by_hand,
       CASE WHEN k.is_announced THEN NULLIF(k.of_plugin, '{}') END AS of_plugin,
       NULLIF(l.max_running, 1000) AS max_running, trim_scale(round(l.rate::numeric, 6)) AS starts_per_s, k.paused,
       {utc k.paused_at} AS paused_at, k.paused_by,
       r.runs, r.mean_s, r.p50_s, r.p95_s, {utc r.since} AS since_at,
       {utc k.updated_at} AS updated_at
  FROM claimd.kind k
  LEFT JOIN claimd.key_limit l ON k.limited AND l.key = 'kind:' || k.name
  LEFT JOIN claimd.run_lengths r ON r.kind = k.name AND r.queue IS NULL
 WHERE k.name = $1
