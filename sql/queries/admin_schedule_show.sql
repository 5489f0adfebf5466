-- SPDX-License-Identifier: Apache-2.0
-- One schedule.
-- params: name text
-- shows: name text, state text, cron text, zone text, kind text, queue text, priority number, args json, max_attempts number,
-- shows: timeout_s seconds, tags text, metadata json, missed text, missed_window_s seconds, overlap text, exclusive_key text,
-- shows: second_key text, share_key text, backoff text, unique_key text, unique_by text, unique_for_s seconds,
-- shows: unique_states text, on_conflict text, jitter_s seconds, grace_s seconds, next_at text, fired_at text, created_at text,
-- shows: updated_at text, failures number, failed_at text, error text
-- tables: record schedule, next = schedule_next, fires = schedule_fires
-- none: schedule '{name}' not found
SELECT s.name, CASE WHEN s.paused THEN 'paused' WHEN s.error IS NOT NULL THEN 'failing' ELSE 'active' END AS state, s.cron, s.zone,
       s.kind, s.queue, s.priority, s.args, s.max_attempts, extract(epoch FROM s.timeout)::float8 AS timeout_s, s.tags::text,
       s.metadata, s.missed, extract(epoch FROM s.missed_window)::float8 AS missed_window_s, s.overlap,
       s.exclusive_key, s.second_key, s.share_key, s.backoff, s.unique_key, s.unique_by::text,
       extract(epoch FROM s.unique_for)::float8 AS unique_for_s, s.unique_states,
       CASE WHEN s.unique_key IS NOT NULL OR s.unique_by IS NOT NULL THEN s.on_conflict END AS on_conflict,
       extract(epoch FROM s.jitter)::float8 AS jitter_s, extract(epoch FROM s.grace)::float8 AS grace_s,
       CASE WHEN NOT s.paused THEN {utc s.next_at} END AS next_at,
       {utc s.fired_at} AS fired_at,
       {utc s.created_at} AS created_at,
       {utc s.updated_at} AS updated_at,
       s.failures, {utc s.failed_at} AS failed_at, s.error
  FROM claimd.schedule s WHERE s.name = $1
