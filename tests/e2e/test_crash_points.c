/* SPDX-License-Identifier: Apache-2.0
 *
 * kill -9 of a worker between any two steps of a job's way (docs/guarantees.md, crash points):
 * every job is completed once, and the dead worker's jobs run again within 15 s × time_scale, while
 * another worker continues. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define JOBS 60
#define SCALE 0.25

/* The limit for a rescue is 15 s by default (GUARANTEES G7), scaled; this is much more, since two
 * cores serve the whole fleet here. */
#define RESCUED_WITHIN_US (60 * US_PER_S)

static const char *const points[] = {"W1=kill", "W2=kill", "W3=kill", "W4=kill",  "W5=kill",
                                     "W6=kill", "W7=kill", "W8=kill", "W9=kill:3"};

START_TEST(every_job_completes_once_though_a_worker_dies_at_this_point)
{
    struct fleet f;
    char args[SERVER_PATH_MAX + 64];
    char path[SERVER_PATH_MAX];
    fleet_start(&f, &(struct fleet_options){.masters = 3, .time_scale = SCALE, .slots = 2});
    fleet_ledger_path(&f, path, sizeof path);
    (void)snprintf(args, sizeof args, "{\"path\": \"%s\", \"ms\": 5}", path);
    fleet_start_worker(&f, 0, points[_i]);
    fleet_start_scheduler(&f, 0);
    (void)fleet_enqueue(&f, "ledger", args, JOBS);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[0]), 128 + SIGKILL);
    fleet_start_worker(&f, 1, NULL);
    fleet_wait_finished(&f, JOBS, "completed", RESCUED_WITHIN_US);
    ck_assert_int_ge(fleet_ledger_count(&f, " end"), JOBS);
    /* No run started without a claim of its own: runs never outnumber the charged attempts. */
    ck_assert_int_le(fleet_ledger_count(&f, " start"),
                     sql_number(f.sql, "SELECT sum(attempt) FROM claimd.job_history"));
    ck_assert(WAIT_UNTIL(fleet_lock_keys(&f) == 0, RESCUED_WITHIN_US));
    fleet_stop(&f);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("crash points");
    TCase *c = tcase_create("worker");
    tcase_set_timeout(c, 60);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_loop_test(c, every_job_completes_once_though_a_worker_dies_at_this_point, 0,
                        (int)ARRAY_COUNT(points));
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
