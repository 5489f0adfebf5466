/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the programs of examples/locks, each on five private masters, and checks their output. */
#include "base/buf.h"
#include "base/clock.h"
#include "cluster/servers.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define MASTERS 5

static char home[SERVER_PATH_MAX];
static struct redis_server masters[MASTERS];
static struct buf out;

static void setup(void)
{
    struct err err = {0};
    ck_assert_msg(dir_make(home, sizeof home, &err) == STATUS_OK, "%s", err.msg);
    for (int i = 0; i < MASTERS; i++) {
        char dir[SERVER_PATH_MAX + 16];
        (void)snprintf(dir, sizeof dir, "%s/%d", home, i);
        ck_assert_msg(redis_server_start(dir, NULL, &masters[i], &err) == STATUS_OK, "%s", err.msg);
    }
}

static void teardown(void)
{
    for (int i = 0; i < MASTERS; i++) {
        redis_server_stop(&masters[i]);
    }
    dir_remove(home);
}

/* Runs the example to its end, with exit code 0; its output is in `out`. */
static const char *run_example(const char *name)
{
    struct err err = {0};
    char program[SERVER_PATH_MAX];
    char urls[MASTERS][128];
    const char *argv[MASTERS + 2] = {program};
    int code = -1;
    const char *dir = getenv("CLAIMD_BIN_DIR");
    (void)snprintf(program, sizeof program, "%s/../examples/locks/%s", dir == NULL ? "bin" : dir,
                   name);
    for (size_t i = 0; i < MASTERS; i++) {
        (void)snprintf(urls[i], sizeof urls[i], "unix:%s", masters[i].path);
        argv[i + 1] = urls[i];
    }
    buf_init(&out, 65536);
    enum status st = program_run(argv, NULL, SOON_US, &out, &code, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    ck_assert_int_eq(buf_append(&out, "", 1, &err), STATUS_OK);
    ck_assert_msg(code == 0, "%s ended with %d:\n%s", name, code, buf_at(&out));
    (void)printf("== %s\n%s", name, buf_at(&out)); /* for the log */
    return buf_at(&out);
}

/* Returns the number after the first `label` in the output. */
static long long number_after(const char *text, const char *label)
{
    const char *at = strstr(text, label);
    ck_assert_msg(at != NULL, "no \"%s\" in:\n%s", label, text);
    return strtoll(at + strlen(label), NULL, 10);
}

static size_t times(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, part)) != NULL; p += strlen(part)) {
        n++;
    }
    return n;
}

#define assert_said(text, part)                                                 \
    do {                                                                        \
        const char *text_ = (text);                                             \
        const char *part_ = (part);                                             \
        ck_assert_msg(strstr(text_, part_), "no \"%s\" in:\n%s", part_, text_); \
    } while (0)

START_TEST(get_then_set_loses_updates)
{
    long long n = number_after(run_example("01_get_then_set"), "the counter says ");
    ck_assert_int_gt(n, 0);
    ck_assert_int_lt(n, 1000);
}
END_TEST

START_TEST(setnx_dies_with_its_holder_and_a_ttl_frees_it)
{
    const char *text = run_example("02_setnx");
    assert_said(text, "is held still; PTTL -1, for ever");
    long long ms = number_after(text, "had the lock after ");
    ck_assert_int_gt(ms, 500);
    ck_assert_int_lt(ms, 10000);
}
END_TEST

START_TEST(a_late_delete_frees_the_lock_of_another)
{
    const char *text = run_example("03_foreign_delete");
    assert_said(text, "A is done and deletes the lock: 1 deleted");
    assert_said(text, "C asks for the lock: has it");
    assert_said(text, "B and C work at once");
}
END_TEST

START_TEST(a_late_delete_with_an_owner_value_frees_nothing)
{
    const char *text = run_example("04_owner_value");
    assert_said(text, "A is done and deletes the lock if it is its own: 0 deleted");
    assert_said(text, "C asks for the lock: refused");
    assert_said(text, "B works alone");
    assert_said(text, "B is done and deletes the lock if it is its own: 1 deleted");
    ck_assert_uint_eq(times(text, "C asks for the lock: has it"), 1);
}
END_TEST

START_TEST(a_watchdog_keeps_the_lock_of_a_holder_that_outlives_its_ttl)
{
    const char *text = run_example("05_outlives");
    const char *second = strstr(text, "with watchdog");
    ck_assert_ptr_nonnull(second);
    assert_said(text, "without watchdog");
    assert_said(text, "B waits for the lock: ok after ");
    assert_said(text, "A has lost the lock, and works all the same: two at once");
    assert_said(second, "B waits for the lock: held by another client after ");
    assert_said(second, "A still has the lock");
    assert_said(second, "A gives it back: deleted on 5 nodes");
}
END_TEST

START_TEST(a_fence_refuses_the_late_write_of_a_stopped_holder)
{
    const char *text = run_example("06_fence");
    long long a = number_after(text, "A has the lock with fence ");
    long long b = number_after(text, "B writes with fence ");
    ck_assert_int_gt(a, 0);
    ck_assert_int_gt(b, a);
    assert_said(strstr(text, "B writes with"), ": accepted");
    assert_said(strstr(text, "A writes with"), ": refused, it is stale");
    assert_said(text, "A looks after its lock again: it is lost");
    assert_said(text, "the store says: written by B");
}
END_TEST

START_TEST(ten_threads_count_exactly)
{
    const char *text = run_example("07_counter");
    assert_said(text, "under the lock: 500 of 500");
    ck_assert_int_lt(number_after(text, "without a lock: "), 500);
}
END_TEST

START_TEST(a_machines_record_is_the_sum_of_its_streams)
{
    const char *text = run_example("08_merge");
    assert_said(text, "under the lock: the record has 80 of 80");
    ck_assert_int_lt(number_after(text, "without a lock: the record has "), 80);
}
END_TEST

START_TEST(a_stock_is_never_oversold)
{
    assert_said(run_example("09_stock"), "3000 pieces, 5000 buyers: 3000 sold, 2000 sent away, the "
                                         "stock is 0, its lowest was 0");
}
END_TEST

START_TEST(the_nightly_backup_runs_once_among_three_hosts)
{
    const char *text = run_example("10_nightly");
    /* On a busy machine, a host may be so late that it is the first one, or the last. */
    ck_assert_uint_eq(times(text, ": backs up\n"), 1);
    ck_assert_uint_eq(times(text, ": has backed up\n"), 1);
    ck_assert_uint_eq(times(text, ": nothing to do: "), 2);
}
END_TEST

START_TEST(an_owner_locks_again_without_the_nodes)
{
    const char *text = run_example("11_reentrant");
    assert_said(text, "check_balance() has the lock, too");
    assert_said(text, "grants by the nodes for the inner lock: 0\n");
    assert_said(text, "another host, after the inner unlock: held by another");
    assert_said(text, "another host, after the outer unlock: ok\n");
}
END_TEST

/* The bounds suit a machine that does much else; a lost wake-up would take the rest of 30 s. */
START_TEST(a_waiter_is_woken_and_does_not_poll)
{
    const char *text = run_example("12_wake_up");
    ck_assert_int_lt(number_after(text, "the waiter had the lock "), 5000000);
    ck_assert_int_lt(number_after(text, "which cost "), 40);
}
END_TEST

START_TEST(many_keys_in_one_round_have_a_result_each)
{
    const char *text = run_example("13_many");
    assert_said(text, ": 90 won, 10 held by another");
    assert_said(text, "all or none of them: held by another");
    assert_said(text, "when the other one has given its back: ok\n");
}
END_TEST

START_TEST(a_minority_of_silent_nodes_changes_nothing_and_a_majority_is_named)
{
    const char *text = run_example("14_silent_nodes");
    const char *minority = strstr(text, "2 of 5 are silent:\n");
    const char *majority = strstr(text, "3 of 5 are silent:\n");
    const char *again = strstr(text, "they will answer again");
    ck_assert_ptr_nonnull(minority);
    ck_assert_ptr_nonnull(majority);
    ck_assert_ptr_nonnull(again);
    ck_assert_int_lt(number_after(minority, "  ok after "), 5000);
    ck_assert_int_lt(number_after(majority, "  too many nodes failed after "), 5000);
    assert_said(again, "  ok after ");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("redlock_examples");
    TCase *t = tcase_create("ladder");
    tcase_set_timeout(t, 150);
    tcase_add_unchecked_fixture(t, setup, teardown);
    tcase_add_test(t, get_then_set_loses_updates);
    tcase_add_test(t, setnx_dies_with_its_holder_and_a_ttl_frees_it);
    tcase_add_test(t, a_late_delete_frees_the_lock_of_another);
    tcase_add_test(t, a_late_delete_with_an_owner_value_frees_nothing);
    tcase_add_test(t, a_watchdog_keeps_the_lock_of_a_holder_that_outlives_its_ttl);
    tcase_add_test(t, a_fence_refuses_the_late_write_of_a_stopped_holder);
    tcase_add_test(t, ten_threads_count_exactly);
    tcase_add_test(t, a_machines_record_is_the_sum_of_its_streams);
    tcase_add_test(t, a_stock_is_never_oversold);
    tcase_add_test(t, the_nightly_backup_runs_once_among_three_hosts);
    tcase_add_test(t, an_owner_locks_again_without_the_nodes);
    tcase_add_test(t, a_waiter_is_woken_and_does_not_poll);
    tcase_add_test(t, many_keys_in_one_round_have_a_result_each);
    tcase_add_test(t, a_minority_of_silent_nodes_changes_nothing_and_a_majority_is_named);
    suite_add_tcase(s, t);
    return suite_run(s);
}
