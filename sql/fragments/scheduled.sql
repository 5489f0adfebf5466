-- SPDX-License-Identifier: Apache-2.0
-- The columns of `schedule` that schedule_set() sets, besides its name and its times.
kind, cron, args, queue, priority, zone, max_attempts, timeout, tags, metadata, missed, missed_window, overlap, exclusive_key, share_key, backoff, unique_key, unique_by, unique_for, unique_states, on_conflict, jitter, second_key, grace
