-- SPDX-License-Identifier: Apache-2.0
DROP FUNCTION cron_next, cron_zone, cron_last, cron_after, cron_next_moment, cron_next_reading, cron_moment, cron_change,
    cron_offset, cron_reading, cron_day, cron_time, cron_parse, cron_field;
DROP TYPE cron_fields;
