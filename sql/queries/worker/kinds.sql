-- SPDX-License-Identifier: Apache-2.0
-- Announces the kinds that the worker's plugins serve; what operators have set stays. Writes only what differs, in the order of
-- names, so that two workers that start at once do not deadlock. Timeouts in microseconds.
-- params: text[], text[], text[], int8[], int8[], int8[], int8[], text[], int8[], int8[]
INSERT INTO claimd.kind (name, plugin, version, max_attempts, max_crashes, timeout, at_most_once, backoff, keep_log, grace)
SELECT name, plugin, version, max_attempts, max_crashes, timeout_us * interval '1 microsecond', at_most_once <> 0,
       NULLIF(backoff, ''), keep_log <> 0, NULLIF(grace_us, 0) * interval '1 microsecond'
  FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
       AS u(name, plugin, version, max_attempts, max_crashes, timeout_us, at_most_once, backoff, keep_log, grace_us)
 ORDER BY name
    ON CONFLICT (name) DO UPDATE
   SET plugin = excluded.plugin, version = excluded.version, at_most_once = excluded.at_most_once, is_announced = true,
       max_attempts = CASE WHEN kind.set_by_hand ? 'max_attempts' THEN kind.max_attempts ELSE excluded.max_attempts END,
       max_crashes = CASE WHEN kind.set_by_hand ? 'max_crashes' THEN kind.max_crashes ELSE excluded.max_crashes END,
       timeout = CASE WHEN kind.set_by_hand ? 'timeout' THEN kind.timeout ELSE excluded.timeout END,
       backoff = CASE WHEN kind.set_by_hand ? 'backoff' THEN kind.backoff ELSE excluded.backoff END,
       keep_log = CASE WHEN kind.set_by_hand ? 'keep_log' THEN kind.keep_log ELSE excluded.keep_log END,
       grace = CASE WHEN kind.set_by_hand ? 'grace' THEN kind.grace ELSE excluded.grace END,
       of_plugin = COALESCE((SELECT jsonb_object_agg(h, to_jsonb(excluded) -> h) FROM jsonb_object_keys(kind.set_by_hand) AS h), '{}'),
       updated_at = clock_timestamp()
 WHERE (kind.plugin, kind.version, kind.at_most_once) IS DISTINCT FROM (excluded.plugin, excluded.version, excluded.at_most_once)
    OR NOT kind.is_announced
    OR kind.max_attempts <> excluded.max_attempts AND NOT kind.set_by_hand ? 'max_attempts'
    OR kind.max_crashes <> excluded.max_crashes AND NOT kind.set_by_hand ? 'max_crashes'
    OR kind.timeout <> excluded.timeout AND NOT kind.set_by_hand ? 'timeout'
    OR kind.backoff IS DISTINCT FROM excluded.backoff AND NOT kind.set_by_hand ? 'backoff'
    OR kind.keep_log <> excluded.keep_log AND NOT kind.set_by_hand ? 'keep_log'
    OR kind.grace IS DISTINCT FROM excluded.grace AND NOT kind.set_by_hand ? 'grace'
