-- SPDX-License-Identifier: Apache-2.0
DROP TRIGGER keep_last_snoozes ON job_attempt;
DROP FUNCTION keep_last_snoozes, day_swept, sweep_day, day_to_sweep, longest_days, kept_days, retain_kind, retain_queue, keep_of, set_retention, why_no_keep, fold_counts, counted_since;
DROP TABLE completed_count, history_day, retention;
