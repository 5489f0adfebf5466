-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION next_of_rates, give_up_places, keep_places, both_or_none, take_key_places, fit_keys, leave_lines, next_of_lines, first_of_lines,
    may_start, is_kept;
DROP INDEX key_waiting_two;
DROP TABLE key_reserved;
