/* SPDX-License-Identifier: Apache-2.0
 *
 * The largest insert: a million rows by one INSERT … SELECT, whose transaction takes seconds while
 * others keep enqueueing. When it commits, all of its rows are behind the feed's cursor. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

#define MILLION 1000000
#define LOOK_AHEAD 10000
#define PAGE_ROWS 2000 /* a full pass beside the feed counts the room independently */
#define BATCH_MAX 500  /* a worker returns hints that it popped and could not claim */
#define SCHEDULER_RSS_KB_MAX (100 * 1000)
#define WRITTEN_WITHIN_US (4 * SOON_US) /* for a million rows */

static struct fleet f;

static int64_t completed(void)
{
    return sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE state = 'completed'");
}

static int64_t peak_rss_kb(pid_t pid)
{
    char path[64];
    char line[256];
    char *value = NULL;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (value == NULL && fgets(line, sizeof line, file) != NULL) {
        value = strncmp(line, "VmHWM:", 6) == 0 ? line + 6 : NULL;
    }
    ck_assert_ptr_nonnull(value);
    int64_t kb = strtoll(value, NULL, 10);
    (void)fclose(file);
    return kb;
}

START_TEST(redteam1_a_million_rows_behind_the_cursor_hold_up_nobody_and_are_fed)
{
    struct sql *bulk = sql_open(f.conninfo);
    sql_run(f.sql, "SELECT pg_advisory_lock(7)");
    sql_send(bulk,
             "BEGIN; INSERT INTO claimd.job (kind) SELECT 'noop' FROM generate_series(1, %d);"
             " SELECT pg_sleep(3); SELECT pg_advisory_xact_lock(7); COMMIT",
             MILLION);
    ck_assert(WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM pg_stat_activity"
                                           " WHERE wait_event = 'advisory'") == 1,
                         WRITTEN_WITHIN_US));
    (void)fleet_enqueue(&f, "noop", "{}", 10);
    ck_assert(WAIT_UNTIL(completed() == 10, SOON_US));
    sql_run(f.sql, "SELECT pg_advisory_unlock(7)");
    sql_wait(bulk);
    ck_assert(WAIT_UNTIL(completed() > 2 * LOOK_AHEAD, SOON_US));
    ck_assert_int_le(fleet_redis_i64(&f, 0, "ZCARD claimd:hints:default"),
                     LOOK_AHEAD + PAGE_ROWS + BATCH_MAX);
    ck_assert_int_lt(peak_rss_kb(f.schedulers[0]), SCHEDULER_RSS_KB_MAX);
    sql_close(bulk);
}
END_TEST

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.masters = 3});
    fleet_start_scheduler(&f, 0);
    fleet_start_worker(&f, 0, NULL);
}

static void teardown(void)
{
    fleet_stop(&f);
}

int main(void)
{
    Suite *suite = suite_create("a million");
    TCase *c = tcase_create("feed");
    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, redteam1_a_million_rows_behind_the_cursor_hold_up_nobody_and_are_fed);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
