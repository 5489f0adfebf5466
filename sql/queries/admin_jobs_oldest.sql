-- SPDX-License-Identifier: Apache-2.0
-- Of the jobs of admin_jobs_list, whose parameters come first, the $19 oldest, these first. $13 is NULL, so all jobs of the range are
-- read. Indexes: those of admin_jobs_list.
-- params: bool, bool, int8, int8, timestamptz, timestamptz, text[], text[], text[], text[], text, text, int4, text[], text, int8, text,
-- params: text, int4
SELECT * FROM ({admin_jobs_list}) AS all_jobs ORDER BY id LIMIT $19
