-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION day_swept, sweep_day, day_to_sweep, longest_days, kept_days, retain_kind, retain_queue, set_retention, fold_counts, counted_since;
DROP TABLE completed_count, history_day, retention;
