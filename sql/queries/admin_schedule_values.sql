-- SPDX-License-Identifier: Apache-2.0
-- The settings of a schedule as text, in the order of admin_schedule_set.
-- params: text
SELECT name, kind, cron, args::text, queue, priority, zone, max_attempts, timeout::text, tags::text, metadata::text, missed,
       missed_window::text, overlap, exclusive_key, share_key, backoff, unique_key, unique_by::text, unique_for::text, unique_states,
       on_conflict, jitter::text, second_key, grace::text
  FROM claimd.schedule WHERE name = $1
