/* SPDX-License-Identifier: Apache-2.0
 *
 * How a runner ends: by its own timer, with its worker, or because a handler left it dirty; and
 * what a handler cannot see. */
#include "base/clock.h"
#include "cluster/servers.h"
#include "runner_harness.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static struct harness h;

static void start_with(const char *directory)
{
    size_t len = 0;
    harness_start(&h, directory);
    (void)harness_hello(&h, &len);
}

static void start_shipped(void)
{
    start_with(harness_plugins());
}

static void start_misbehaving(void)
{
    start_with(harness_test_plugins());
}

static void stop(void)
{
    harness_stop(&h);
}

static bool has_started(void)
{
    return atomic_load(&h.page->started_nonce) == h.last_id + 100;
}

static void send_and_wait_for_start(const char *kind, const char *args)
{
    harness_send(&h, kind, args);
    ck_assert(WAIT_UNTIL(has_started(), 5 * US_PER_S));
}

START_TEST(A4_an_endless_loop_is_ended_by_the_runners_own_timer)
{
    int64_t kill_at_us = clock_boot_us() + 300 * US_PER_MS;
    atomic_store(&h.page->kill_at_us, kill_at_us);
    harness_send(&h, "spin", "{}");
    int status = harness_wait(&h);
    int64_t late_us = clock_boot_us() - kill_at_us;
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_msg(late_us >= 0 && late_us < 5 * US_PER_S, "%" PRId64 " us late", late_us);
}
END_TEST

START_TEST(A4_a_time_that_is_moved_nearer_during_the_job_counts)
{
    atomic_store(&h.page->kill_at_us, clock_boot_us() + 3600 * US_PER_S);
    send_and_wait_for_start("spin", "{}");
    int64_t kill_at_us = clock_boot_us();
    atomic_store(&h.page->kill_at_us, kill_at_us);
    int status = harness_wait(&h);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_int_lt(clock_boot_us() - kill_at_us, 5 * US_PER_S);
}
END_TEST

START_TEST(A4_a_time_that_is_moved_on_lets_the_job_finish)
{
    atomic_store(&h.page->kill_at_us, clock_boot_us() + 500 * US_PER_MS);
    send_and_wait_for_start("sleep", "{\"ms\": 900}");
    atomic_store(&h.page->kill_at_us, clock_boot_us() + 3600 * US_PER_S);
    struct result_frame r;
    harness_result(&h, &r);
    ck_assert_int_eq(r.outcome, CLAIMD_DONE);
    ck_assert_int_ge(r.ran_us, 900 * US_PER_MS);
}
END_TEST

START_TEST(A4_a_time_that_passed_ends_no_idle_runner_but_starts_no_job)
{
    struct result_frame r;
    atomic_store(&h.page->kill_at_us, clock_boot_us() + 100 * US_PER_MS);
    harness_run(&h, "sleep", "{\"ms\": 0}", &r);
    int64_t later_us = clock_boot_us() + 500 * US_PER_MS;
    ck_assert(WAIT_UNTIL(clock_boot_us() > later_us, 5 * US_PER_S));
    int64_t before = atomic_load(&h.page->started_nonce);
    harness_send(&h, "noop", "{}");
    (void)harness_wait(&h);
    ck_assert_int_eq(atomic_load(&h.page->started_nonce), before);
}
END_TEST

START_TEST(TERM_wakes_a_handler_and_sets_its_stop_flag)
{
    send_and_wait_for_start("sleep", "{\"ms\": 60000}");
    int64_t told_us = clock_boot_us();
    ck_assert_int_eq(kill(h.pid, SIGTERM), 0);
    struct result_frame r;
    harness_result(&h, &r);
    ck_assert_int_eq(r.outcome, CLAIMD_RETRY);
    ck_assert_int_lt(clock_boot_us() - told_us, 5 * US_PER_S);
    atomic_store(&h.page->should_stop, 0);
    harness_run(&h, "sleep", "{\"ms\": 1}", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_DONE);
}
END_TEST

START_TEST(the_workers_stop_flag_is_seen_without_a_signal)
{
    send_and_wait_for_start("sleep", "{\"ms\": 60000}");
    atomic_store(&h.page->should_stop, 1);
    struct result_frame r;
    harness_result(&h, &r);
    ck_assert_int_eq(r.outcome, CLAIMD_RETRY);
}
END_TEST

/* Plays a worker in its own process: starts a runner with a job, reports that, and waits to be
 * killed. */
static _Noreturn void be_a_worker(const char *kind, const char *args, int out)
{
    start_misbehaving();
    send_and_wait_for_start(kind, args);
    ck_assert_int_eq(write(out, &h.pid, sizeof h.pid), (ssize_t)sizeof h.pid);
    for (;;) {
        (void)pause();
    }
}

START_TEST(A1_a_runner_dies_with_its_worker_even_in_an_endless_loop)
{
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* so that this process reaps it */
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t worker = fork();
    ck_assert_int_ge(worker, 0);
    if (worker == 0) {
        be_a_worker("spin", "{}", ends[1]);
    }
    pid_t runner = 0;
    ck_assert_int_eq(read(ends[0], &runner, sizeof runner), (ssize_t)sizeof runner);
    int64_t killed_us = clock_boot_us();
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    ck_assert_int_eq(waitpid(worker, NULL, 0), worker);
    h = (struct harness){.pid = runner};
    int status = harness_wait(&h);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_int_lt(clock_boot_us() - killed_us, 5 * US_PER_S);
}
END_TEST

START_TEST(a_runner_of_another_parent_does_not_start)
{
    struct buf out = BUF_INIT(65536);
    const char *args[] = {"--parent", "1", "--plugins", harness_plugins(), NULL};
    ck_assert_int_eq(harness_program(args, &out), 1);
    ck_assert_ptr_nonnull(strstr(buf_at(&out), "parent is process"));
    buf_release(&out);
}
END_TEST

START_TEST(G4_what_a_handler_leaves_behind_ends_its_runner_after_the_result)
{
    static const char *const left[] = {
        "another working directory",  "another umask",
        "descriptors open",           "a thread",
        "changed signals or a timer", "another environment",
        "changed signals or a timer", "a descriptor of the runner closed"};
    char args[32];
    char note[128];
    (void)snprintf(args, sizeof args, "{\"what\": %d}", _i);
    (void)snprintf(note, sizeof note, "claimd: the handler left %s; its runner is replaced\n",
                   left[_i]);
    struct result_frame r;
    harness_run(&h, "dirty", args, &r);
    ck_assert_int_eq(r.outcome, CLAIMD_DONE);
    ck_assert(r.leaving);
    ck_assert_msg(r.log_tail_len == strlen(note) && memcmp(r.log_tail, note, r.log_tail_len) == 0,
                  "log tail is '%.*s', wanted '%s'", (int)r.log_tail_len, r.log_tail, note);
    int status = harness_wait(&h);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

/* However a handler is left, there is a result, or the runner ends. */
START_TEST(G1_a_handler_that_is_left_by_another_way_ends_its_runner)
{
    char args[32];
    struct result_frame r;
    enum frame_type type = FRAME_HELLO;
    const char *body = NULL;
    size_t len = 0;
    harness_run(&h, "stay", "{}", &r);
    (void)snprintf(args, sizeof args, "{\"how\": %d}", _i);
    int64_t sent_us = clock_boot_us();
    harness_send(&h, "leave", args);
    enum status st = harness_read(&h, &type, &body, &len);
    ck_assert_int_eq(st, STATUS_UNAVAILABLE);
    ck_assert_int_eq(atomic_load(&h.page->started_nonce), h.last_id + 100);
    ck_assert_int_lt(clock_boot_us() - sent_us, 5 * US_PER_S);
}
END_TEST

static bool is_gone(pid_t pid)
{
    return kill(pid, 0) != 0 && errno == ESRCH;
}

START_TEST(G4_a_daemon_that_left_the_group_is_found_and_ended)
{
    struct result_frame r;
    harness_run(&h, "daemonize", "{}", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_DONE);
    ck_assert(r.leaving);
    char text[16] = "";
    ck_assert_uint_lt(r.result_len, sizeof text);
    memcpy(text, r.result, r.result_len);
    pid_t left = (pid_t)strtol(text, NULL, 10);
    ck_assert_int_gt(left, 1);
    (void)harness_wait(&h);
    ck_assert(WAIT_UNTIL(is_gone(left), 5 * US_PER_S));
}
END_TEST

START_TEST(J4_a_handler_sees_no_secret_of_the_workers_environment)
{
    harness_stop(&h);
    ck_assert_int_eq(setenv("CLAIMD_POSTGRES_PASSWORD", "canary", 1), 0);
    start_misbehaving();
    struct result_frame r;
    int64_t timeout_us = clock_boot_us() + 30 * US_PER_S; /* the harness sends it */
    harness_run(&h, "inspect", "{}", &r);
    json_t *seen = json_loadb(r.result, r.result_len, 0, NULL);
    ck_assert(json_is_false(json_object_get(seen, "secret")));
    ck_assert(json_is_true(json_object_get(seen, "path")));
    ck_assert_int_eq(json_integer_value(json_object_get(seen, "group")), h.pid);
    ck_assert_int_ge(json_integer_value(json_object_get(seen, "deadline_us")), timeout_us);
    ck_assert_int_le(json_integer_value(json_object_get(seen, "deadline_us")),
                     clock_boot_us() + 30 * US_PER_S);
    ck_assert_str_eq(json_string_value(json_object_get(seen, "key")), "job:1");
    ck_assert_str_eq(json_string_value(json_object_get(seen, "kind")), "inspect");
    json_decref(seen);
}
END_TEST

START_TEST(J4_no_descriptor_of_the_worker_reaches_a_handler)
{
    harness_stop(&h);
    char path[96];
    (void)snprintf(path, sizeof path, "%s/leak-XXXXXX", suite_tmp());
    int fd = mkstemp(path); /* intentionally without CLOEXEC */
    ck_assert_int_ge(fd, 0);
    start_misbehaving();
    (void)close(fd);
    (void)unlink(path);
    struct result_frame r;
    harness_run(&h, "descriptors", "{}", &r);
    ck_assert_int_eq(r.outcome, CLAIMD_DONE);
    ck_assert_ptr_nonnull(memmem(r.result, r.result_len, "socket:", 7)); /* its frames */
    ck_assert_ptr_null(memmem(r.result, r.result_len, "/leak-", 6));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runner's end");
    TCase *shipped = tcase_create("shipped plugins");
    tcase_set_timeout(shipped, 30);
    tcase_add_checked_fixture(shipped, start_shipped, stop);
    tcase_add_test(shipped, A4_a_time_that_is_moved_on_lets_the_job_finish);
    tcase_add_test(shipped, A4_a_time_that_passed_ends_no_idle_runner_but_starts_no_job);
    tcase_add_test(shipped, TERM_wakes_a_handler_and_sets_its_stop_flag);
    tcase_add_test(shipped, the_workers_stop_flag_is_seen_without_a_signal);
    suite_add_tcase(suite, shipped);

    TCase *bad = tcase_create("misbehaving plugins");
    tcase_set_timeout(bad, 30);
    tcase_add_checked_fixture(bad, start_misbehaving, stop);
    tcase_add_test(bad, A4_an_endless_loop_is_ended_by_the_runners_own_timer);
    tcase_add_test(bad, A4_a_time_that_is_moved_nearer_during_the_job_counts);
    tcase_add_loop_test(bad, G4_what_a_handler_leaves_behind_ends_its_runner_after_the_result, 0,
                        8);
    tcase_add_loop_test(bad, G1_a_handler_that_is_left_by_another_way_ends_its_runner, 0, 4);
    tcase_add_test(bad, G4_a_daemon_that_left_the_group_is_found_and_ended);
    tcase_add_test(bad, J4_a_handler_sees_no_secret_of_the_workers_environment);
    tcase_add_test(bad, J4_no_descriptor_of_the_worker_reaches_a_handler);
    suite_add_tcase(suite, bad);

    TCase *alone = tcase_create("without a runner at first");
    tcase_set_timeout(alone, 30);
    tcase_add_checked_fixture(alone, NULL, stop);
    tcase_add_test(alone, A1_a_runner_dies_with_its_worker_even_in_an_endless_loop);
    tcase_add_test(alone, a_runner_of_another_parent_does_not_start);
    suite_add_tcase(suite, alone);

    return suite_run(suite);
}
