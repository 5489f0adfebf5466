-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION key_kinds, why_no_rate, group_is_set, prefix_of, tidy_groups, follow_groups, group_keys, group_of;
DROP TABLE key_group;
