/* SPDX-License-Identifier: Apache-2.0
 *
 * claimd.cron_next: the times of an expression, compared with a definition that tests every minute,
 * and what is refused. */
#include "support/pg_fixture.h"

#include <stdio.h>

static struct sql *db;

static void setup(void)
{
    world_setup();
    db = sql_open(world.conninfo);
    sql_run(db, "SELECT set_config('TimeZone', 'UTC', false)");
}

static void teardown(void)
{
    sql_close(db);
    world_teardown();
}

/* Compares the next three times after `after`, in UTC. Only the first call looks up the zone:
 * PostgreSQL reads the files of all zones for that, which takes seconds in some containers. */
static void assert_next(const char *cron, const char *zone, const char *after, const char *expected)
{
    const char *r =
        sql_text(db,
                 "WITH RECURSIVE n(k, at) AS (SELECT 1, claimd.cron_next('%s', '%s', '%s') UNION "
                 "ALL SELECT k + 1, claimd.cron_after('%s', '%s', at, 'epoch') FROM n WHERE k < 3) "
                 "SELECT string_agg(to_char(at, 'YYYY-MM-DD HH24:MI:SS'), ', ' ORDER BY k) FROM n",
                 cron, zone, after, cron, zone);
    ck_assert_msg(strcmp(r, expected) == 0, "%s in %s after %s: %s, not %s", cron, zone, after, r,
                  expected);
}

START_TEST(the_fields_mean_what_they_mean_in_vixie_cron)
{
    /* 2026-11-22 is a Sunday. */
    static const char *const times[][3] = {
        {"* * * * *", "2026-11-22 20:07:30",
         "2026-11-22 20:08:00, 2026-11-22 20:09:00, 2026-11-22 20:10:00"},
        {"* * * * *", "2026-11-22 20:08:00",
         "2026-11-22 20:09:00, 2026-11-22 20:10:00, 2026-11-22 20:11:00"},
        {"* * * * *", "2026-11-22 20:07:59.999999",
         "2026-11-22 20:08:00, 2026-11-22 20:09:00, 2026-11-22 20:10:00"},
        {"*/20 * * * *", "2026-11-22 23:30",
         "2026-11-22 23:40:00, 2026-11-23 00:00:00, 2026-11-23 00:20:00"},
        {"5-59/20 8 * * *", "2026-11-22 08:30",
         "2026-11-22 08:45:00, 2026-11-23 08:05:00, 2026-11-23 08:25:00"},
        {"0,30 9,17 * * mon-fri", "2026-11-22 20:00",
         "2026-11-23 09:00:00, 2026-11-23 09:30:00, 2026-11-23 17:00:00"},
        {"0 0 * * fri-sun", "2026-11-22 20:00",
         "2026-11-27 00:00:00, 2026-11-28 00:00:00, 2026-11-29 00:00:00"},
        {"0 0 * * 5-7", "2026-11-22 20:00",
         "2026-11-27 00:00:00, 2026-11-28 00:00:00, 2026-11-29 00:00:00"},
        {"0 0 * * SUN", "2026-11-22 20:00",
         "2026-11-29 00:00:00, 2026-12-06 00:00:00, 2026-12-13 00:00:00"},
        {"0 0 31 * *", "2026-11-22 20:00",
         "2026-12-31 00:00:00, 2027-01-31 00:00:00, 2027-03-31 00:00:00"},
        {"0 0 29 feb *", "2096-03-01 00:00",
         "2104-02-29 00:00:00, 2108-02-29 00:00:00, 2112-02-29 00:00:00"},
        {"0 0 1 jan,jul *", "2026-11-22 20:00",
         "2027-01-01 00:00:00, 2027-07-01 00:00:00, 2028-01-01 00:00:00"},
        /* With both kinds of days, either may match. If one of them begins with *, both must
         * match. */
        {"0 0 13 * fri", "2026-11-22 20:00",
         "2026-11-27 00:00:00, 2026-12-04 00:00:00, 2026-12-11 00:00:00"},
        {"0 0 24 * fri", "2026-11-22 20:00",
         "2026-11-24 00:00:00, 2026-11-27 00:00:00, 2026-12-04 00:00:00"},
        {"0 0 */31 2 mon", "2026-11-22 20:00",
         "2027-02-01 00:00:00, 2038-02-01 00:00:00, 2044-02-01 00:00:00"},
        {"0 0 1-7 * */7", "2026-11-22 20:00",
         "2026-12-06 00:00:00, 2027-01-03 00:00:00, 2027-02-07 00:00:00"},
        {"*/15 30 4 * * *", "2026-11-22 04:30:20",
         "2026-11-22 04:30:30, 2026-11-22 04:30:45, 2026-11-23 04:30:00"},
        {"* * * * * *", "2026-11-22 23:59:58.5",
         "2026-11-22 23:59:59, 2026-11-23 00:00:00, 2026-11-23 00:00:01"},
        {"\t07  03 * *\t* ", "2026-11-22 20:00",
         "2026-11-23 03:07:00, 2026-11-24 03:07:00, 2026-11-25 03:07:00"},
        {"@hourly", "2026-11-22 20:00",
         "2026-11-22 21:00:00, 2026-11-22 22:00:00, 2026-11-22 23:00:00"},
        {"@Daily", "2026-11-22 20:00",
         "2026-11-23 00:00:00, 2026-11-24 00:00:00, 2026-11-25 00:00:00"},
        {"@weekly", "2026-11-22 20:00",
         "2026-11-29 00:00:00, 2026-12-06 00:00:00, 2026-12-13 00:00:00"},
        {"@monthly", "2026-11-22 20:00",
         "2026-12-01 00:00:00, 2027-01-01 00:00:00, 2027-02-01 00:00:00"},
        {"@yearly", "2026-11-22 20:00",
         "2027-01-01 00:00:00, 2028-01-01 00:00:00, 2029-01-01 00:00:00"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(times); i++) {
        assert_next(times[i][0], "UTC", times[i][1], times[i][2]);
    }
}
END_TEST

START_TEST(every_counts_from_its_start)
{
    static const char *const times[][4] = {
        {"every 90s", "2026-11-22 20:00:10", "2026-11-22 20:00:10", "2026-11-22 20:01:40"},
        {"every 90 s", "2026-11-22 20:00:10", "2026-11-22 20:01:39", "2026-11-22 20:01:40"},
        {"every 90s", "2026-11-22 20:00:10", "2026-11-22 20:01:40", "2026-11-22 20:03:10"},
        {"EVERY 5m", "2026-11-22 20:00:10", "2026-11-23 20:00:00", "2026-11-23 20:00:10"},
        {"every 1d", "2026-10-24 20:00:10", "2026-10-25 20:00:00", "2026-10-25 20:00:10"},
        {"every 2h", "2026-10-24 20:00:10", "2026-10-24 00:00:00", "2026-10-24 00:00:10"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(times); i++) {
        ck_assert_str_eq(sql_text(db,
                                  "SELECT to_char(claimd.cron_next('%s', 'Europe/Berlin', '%s', "
                                  "'%s'), 'YYYY-MM-DD HH24:MI:SS')",
                                  times[i][0], times[i][2], times[i][1]),
                         times[i][3]);
    }
}
END_TEST

/* ---- daylight saving ---- */

/* In Berlin the clock goes from 2:00 to 3:00 on 2026-03-29 at 1:00 UTC, and from 3:00 back to 2:00
 * on 2026-10-25 at 1:00 UTC. In New York: 2026-03-08 at 7:00 UTC, 2026-11-01 at 6:00 UTC. */
START_TEST(a_time_in_the_gap_fires_once_right_after_it)
{
    assert_next("30 2 * * *", "Europe/Berlin", "2026-03-28 01:30",
                "2026-03-29 01:00:00, 2026-03-30 00:30:00, 2026-03-31 00:30:00");
    assert_next("*/15 2 * * *", "Europe/Berlin", "2026-03-28 01:45",
                "2026-03-29 01:00:00, 2026-03-30 00:00:00, 2026-03-30 00:15:00");
    assert_next("0 2,3 * * *", "Europe/Berlin", "2026-03-28 02:00",
                "2026-03-29 01:00:00, 2026-03-30 00:00:00, 2026-03-30 01:00:00");
    assert_next("30 2 * * *", "America/New_York", "2026-03-07 07:30",
                "2026-03-08 07:00:00, 2026-03-09 06:30:00, 2026-03-10 06:30:00");
}
END_TEST

START_TEST(a_repeated_hour_fires_once_for_fixed_times)
{
    assert_next("30 2 * * *", "Europe/Berlin", "2026-10-24 00:30",
                "2026-10-25 00:30:00, 2026-10-26 01:30:00, 2026-10-27 01:30:00");
    assert_next("30 2 * * *", "Europe/Berlin", "2026-10-25 01:10",
                "2026-10-26 01:30:00, 2026-10-27 01:30:00, 2026-10-28 01:30:00");
    assert_next("0,30 1-3 * * *", "Europe/Berlin", "2026-10-25 00:00",
                "2026-10-25 00:30:00, 2026-10-25 02:00:00, 2026-10-25 02:30:00");
    assert_next("30 1 * * *", "America/New_York", "2026-10-31 05:30",
                "2026-11-01 05:30:00, 2026-11-02 06:30:00, 2026-11-03 06:30:00");
}
END_TEST

START_TEST(every_hour_of_the_day_means_every_hour_that_passes)
{
    assert_next("30 * * * *", "Europe/Berlin", "2026-03-28 23:30",
                "2026-03-29 00:30:00, 2026-03-29 01:30:00, 2026-03-29 02:30:00");
    assert_next("30 * * * *", "Europe/Berlin", "2026-10-24 23:30",
                "2026-10-25 00:30:00, 2026-10-25 01:30:00, 2026-10-25 02:30:00");
    assert_next("*/30 * * * *", "America/New_York", "2026-11-01 05:00",
                "2026-11-01 05:30:00, 2026-11-01 06:00:00, 2026-11-01 06:30:00");
    assert_next("0 * 25 10 *", "Europe/Berlin", "2026-10-24 23:00",
                "2026-10-25 00:00:00, 2026-10-25 01:00:00, 2026-10-25 02:00:00");
}
END_TEST

/* The function jumps to the next time; this query tests each minute of some days instead. An
 * expression that names its hours fires when the clock first shows that time, or has passed it; one
 * for every hour fires whenever the clock shows it. */
static const char each_minute[] =
    "WITH day(low, high) AS (VALUES ('%s'::timestamptz, '%s'::timestamptz)), "
    "clock AS (SELECT u, u AT TIME ZONE '%s' AS l FROM day, generate_series(low - interval '2 "
    "days', high + interval '2 days', interval '1 minute') u), "
    "reading AS (SELECT l FROM (SELECT generate_series(min(l), max(l), interval '1 minute') AS l "
    "FROM clock) x WHERE %s), "
    "expected AS (SELECT CASE WHEN %d = 1 THEN u ELSE (SELECT min(u) FROM clock c WHERE c.l >= "
    "r.l) END AS u FROM reading r LEFT JOIN clock USING (l)), "
    "wanted AS (SELECT array_agg(DISTINCT u ORDER BY u) AS a FROM expected, day WHERE u > low AND "
    "u <= high), "
    "found AS (SELECT array_agg(u ORDER BY u) AS a FROM (WITH RECURSIVE n(u) AS (SELECT "
    "claimd.cron_after('%s', '%s', low, 'epoch') FROM day UNION ALL SELECT claimd.cron_after('%s', "
    "'%s', u, 'epoch') FROM n, day WHERE u <= high) SELECT u FROM n, day WHERE u <= high) x) "
    "SELECT CASE WHEN f.a = w.a THEN 'same' ELSE 'found ' || COALESCE(f.a::text, '') || ' wanted ' "
    "|| COALESCE(w.a::text, '') END FROM found f, wanted w";

static const char *const days[][3] = {
    {"2026-03-28 12:00", "2026-03-30 12:00", "Europe/Berlin"},
    {"2026-10-24 12:00", "2026-10-26 12:00", "Europe/Berlin"},
    {"2026-03-07 12:00", "2026-03-09 12:00", "America/New_York"},
    {"2026-10-31 12:00", "2026-11-02 12:00", "America/New_York"},
    {"2026-10-02 12:00", "2026-10-05 12:00", "Australia/Lord_Howe"}, /* by half an hour */
    {"2026-04-03 12:00", "2026-04-06 12:00", "Australia/Lord_Howe"},
    {"2022-03-26 12:00", "2022-03-28 12:00", "Asia/Beirut"}, /* at midnight */
    {"2022-10-29 12:00", "2022-10-31 12:00", "Asia/Beirut"},
    {"2011-12-29 00:00", "2012-01-01 00:00", "Pacific/Apia"}, /* without the 30th */
    {"2026-06-01 00:00", "2026-06-03 00:00", "Asia/Kathmandu"},
};

START_TEST(the_jumps_find_what_a_look_at_each_minute_finds)
{
    static const struct {
        const char *cron;
        const char *matches;
        int every_hour;
    } texts[] = {
        {"30 2 * * *", "EXTRACT(hour FROM l) = 2 AND EXTRACT(minute FROM l) = 30", 0},
        {"*/10 0-3,23 * * *",
         "EXTRACT(hour FROM l) IN (0, 1, 2, 3, 23) AND EXTRACT(minute FROM l)::int % 10 = 0", 0},
        {"0 */2 * * *", "EXTRACT(hour FROM l)::int % 2 = 0 AND EXTRACT(minute FROM l) = 0", 0},
        {"*/15 * * * *", "EXTRACT(minute FROM l)::int % 15 = 0", 1},
        {"7 * * * *", "EXTRACT(minute FROM l) = 7", 1},
        {"59 * * * sat,sun", "EXTRACT(minute FROM l) = 59 AND EXTRACT(dow FROM l) IN (0, 6)", 1},
        {"0 12 30 12 *",
         "EXTRACT(minute FROM l) = 0 AND EXTRACT(hour FROM l) = 12 AND EXTRACT(day FROM l) = 30 "
         "AND EXTRACT(month FROM l) = 12",
         0},
    };
    for (size_t t = 0; t < ARRAY_COUNT(texts); t++) {
        const char *zone = days[_i][2];
        const char *cron = texts[t].cron;
        const char *r = sql_text(db, each_minute, days[_i][0], days[_i][1], zone, texts[t].matches,
                                 texts[t].every_hour, cron, zone, cron, zone);
        /* It is also right if neither finds a time in these days. */
        ck_assert_msg(strcmp(r, "same") == 0 || strcmp(r, "found  wanted ") == 0,
                      "%s in %s from %s: %s", cron, zone, days[_i][0], r);
    }
}
END_TEST

/* Testing each second of these waits would take minutes. */
START_TEST(a_long_wait_is_found_at_once)
{
    int64_t began_us = clock_boot_us();
    for (int i = 0; i < 3; i++) {
        assert_next("59 59 23 29 2 *", "America/New_York", "2096-03-02 00:00",
                    "2104-03-01 04:59:59, 2108-03-01 04:59:59, 2112-03-01 04:59:59");
        ASSERT_REFUSED(db, "SELECT claimd.cron_next('0 0 30 2 *')", "CL002", "no day ever matches");
    }
    ck_assert_int_lt(clock_boot_us() - began_us, 60 * US_PER_S);
}
END_TEST

START_TEST(the_last_tick_of_a_span_is_found_by_halves)
{
    static const char *const spans[][4] = {
        {"* * * * * *", "2020-01-01", "2026-03-28 12:00:30", "2026-03-28 12:00:30"},
        {"* * * * *", "2026-03-28 12:00", "2026-03-28 12:03:30", "2026-03-28 12:03:00"},
        {"0 0 1 1 *", "2020-03-01", "2026-03-28 12:00:30", "2026-01-01 00:00:00"},
        {"0 0 1 1 *", "2026-03-01", "2026-03-28 12:00:30", ""},
        {"* * 1 1 *", "2020-03-01", "2026-03-28 12:00:30", "2026-01-01 23:59:00"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(spans); i++) {
        ck_assert_str_eq(sql_text(db,
                                  "SELECT COALESCE(to_char(claimd.cron_last('%s', 'UTC', '%s', "
                                  "'%s', 'epoch'), 'YYYY-MM-DD HH24:MI:SS'), '')",
                                  spans[i][0], spans[i][1], spans[i][2]),
                         spans[i][3]);
    }
}
END_TEST

/* ---- refusals ---- */

START_TEST(what_is_no_cron_is_refused_with_the_allowed_form)
{
    static const char *const wrong[][2] = {
        {"NULL", "cron: NULL: must be five fields"},
        {"''", "cron: '': must be five fields"},
        {"'* * * *'", "cron: '* * * *': must be five fields"},
        {"'* * * * * * *'", "must be five fields (minute hour day month weekday), six"},
        {"'@reboot'", "@hourly, @daily"},
        {"repeat('* ', 501)", "must be five fields"},
        {"'60 * * * *'", "cron: '60': the minute is 0 to 59"},
        {"'* 24 * * *'", "cron: '24': the hour is 0 to 23"},
        {"'* * 0 * *'", "cron: '0': the day is 1 to 31"},
        {"'* * 32 * *'", "the day is 1 to 31"},
        {"'* * * 13 *'", "cron: '13': the month is 1 to 12 or jan to dec"},
        {"'* * * * 8'", "cron: '8': the weekday is 0 to 7 or sun to sat"},
        {"'* * * * monday'", "cron: 'monday': the weekday"},
        {"'* * * foo *'", "cron: 'foo': the month"},
        {"'* * * mon *'", "cron: 'mon': the month"},
        {"'jan * * * *'", "cron: 'jan': the minute"},
        {"'61 * * * * *'", "cron: '61': the second is 0 to 59"},
        {"'5-1 * * * *'", "cron: '5-1': the minute"},
        {"'* * * * fri-mon'", "cron: 'fri-mon': the weekday"},
        {"'-1 * * * *'", "cron: '-1': the minute"},
        {"'1, * * * *'", "cron: '': the minute"},
        {"', * * * *'", "cron: '': the minute"},
        {"'1.5 * * * *'", "cron: '1.5': the minute"},
        {"'99999 * * * *'", "cron: '99999': the minute"},
        {"'? * * * *'", "cron: '?': the minute"},
        {"'* * L * *'", "cron: 'l': the day"},
        {"'*/0 * * * *'", "cron: '*/0': a step of the minute is 1 to 59"},
        {"'*/90 * * * *'", "for longer ones see 'every 90m'"},
        {"'5/10 * * * *'", "cron: '5/10': a step of the minute is 1 to 59, of * or of a range"},
        {"'0 0 30 2 *'", "cron: no day ever matches"},
        {"'0 0 31 4,6,9,11 *'", "cron: no day ever matches"},
        {"'every 0s'", "every 1s to every 366d"},
        {"'every 999999999d'", "every 1s to every 366d"},
        {"'every 90'", "such as 'every 90s'"},
        {"'every 1.5h'", "such as 'every 90s'"},
        {"'every -5m'", "such as 'every 90s'"},
        {"'every 500ms'", "such as 'every 90s'"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "SELECT claimd.cron_next(%s)", wrong[i][0]);
        ASSERT_REFUSED(db, sql, "CL002", wrong[i][1]);
    }
}
END_TEST

START_TEST(zones_and_times_out_of_range_are_refused)
{
    static const char *const wrong[][2] = {
        {"'Europe/Berlim'", "zone: 'Europe/Berlim' is not in pg_timezone_names"},
        {"'CEST'", "zone: 'CEST' is not in"},
        {"'UTC+5'", "zone: 'UTC+5' is not in"},
        {"''", "zone: '' is not in"},
        {"NULL", "zone: NULL is not in"},
        {"'UTC', NULL", "after: must lie between"},
        {"'UTC', 'infinity'", "after: must lie between"},
        {"'UTC', '-infinity'", "after: must lie between"},
        {"'UTC', '0044-03-15 BC'", "after: must lie between"},
        {"'UTC', now(), 'infinity'", "start: must lie between"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "SELECT claimd.cron_next('@daily', %s)", wrong[i][0]);
        ASSERT_REFUSED(db, sql, "CL002", wrong[i][1]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cron");
    TCase *tc = tcase_create("cron");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_fields_mean_what_they_mean_in_vixie_cron);
    tcase_add_test(tc, every_counts_from_its_start);
    tcase_add_test(tc, a_time_in_the_gap_fires_once_right_after_it);
    tcase_add_test(tc, a_repeated_hour_fires_once_for_fixed_times);
    tcase_add_test(tc, every_hour_of_the_day_means_every_hour_that_passes);
    tcase_add_loop_test(tc, the_jumps_find_what_a_look_at_each_minute_finds, 0, ARRAY_COUNT(days));
    tcase_add_test(tc, a_long_wait_is_found_at_once);
    tcase_add_test(tc, the_last_tick_of_a_span_is_found_by_halves);
    tcase_add_test(tc, what_is_no_cron_is_refused_with_the_allowed_form);
    tcase_add_test(tc, zones_and_times_out_of_range_are_refused);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
