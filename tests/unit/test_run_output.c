/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "protocol/run_log.h"
#include "protocol/run_output.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct runner_page page;
static int printed[2]; /* output of handlers */
static int logged[2];  /* log of the process */

static void setup(void)
{
    memset(&page, 0, sizeof page);
    ck_assert_int_eq(pipe2(printed, O_NONBLOCK), 0);
    ck_assert_int_eq(pipe2(logged, O_NONBLOCK), 0);
    log_init("test", LOG_INFO);
    log_to(logged[1]);
}

static void teardown(void)
{
    for (int i = 0; i < 2; i++) {
        (void)close(printed[i]);
        (void)close(logged[i]);
    }
}

static void print(const char *text)
{
    size_t len = strlen(text);
    ck_assert_int_eq(write(printed[1], text, len), (ssize_t)len);
}

/* Returns how often `text` was logged since the last call. */
static int times_logged(const char *text)
{
    char all[65536];
    int times = 0;
    ssize_t n = read(logged[0], all, sizeof all - 1);
    all[n > 0 ? n : 0] = '\0';
    for (const char *at = strstr(all, text); at != NULL; at = strstr(at + 1, text)) {
        times++;
    }
    return times;
}

static void take_to_the_end(struct run_output *o)
{
    run_output_take(o, -1);
    run_output_end_line(o, -1);
}

START_TEST(G1_what_a_dead_runner_had_read_and_not_logged_the_worker_logs)
{
    struct run_output runner = {.fd = printed[0], .page = &page, .job = 7};
    struct run_output worker = {.fd = printed[0], .page = &page, .job = 7};
    char tail[JOB_LOG_TAIL_MAX];
    print("first\nlast words");
    run_output_take(&runner, -1);
    ck_assert_int_eq(times_logged("job=7 text=first\n"), 1);
    print(" of the runner");
    take_to_the_end(&worker);
    ck_assert_int_eq(times_logged("job=7 text=\"last words of the runner\"\n"), 1);
    size_t len = run_log_tail(&page, tail);
    ck_assert_uint_eq(len, strlen("first\nlast words of the runner"));
    ck_assert_mem_eq(tail, "first\nlast words of the runner", len);
    take_to_the_end(&worker);
    ck_assert_int_eq(times_logged("text"), 0);
}
END_TEST

START_TEST(a_line_that_is_too_long_goes_on_in_the_next_one)
{
    char text[2 * RUN_OUTPUT_LINE_MAX + 11];
    struct run_output o = {.fd = printed[0], .page = &page};
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 3; i++) {
        print(text);
        print("\n\n");
        run_output_take(&o, -1);
        ck_assert_int_eq(times_logged("text=xxxxxxxxxx"), 3);
    }
}
END_TEST

START_TEST(G5_whatever_a_handler_writes_into_the_page_reads_stay_inside)
{
    static const uint32_t ends[] = {0, 1, RUNNER_OUTPUT_BYTES, RUNNER_OUTPUT_BYTES + 1, UINT32_MAX};
    struct run_output o = {.fd = printed[0], .page = &page};
    for (size_t i = 0; i < 25; i++) {
        memset(page.output, 'y', sizeof page.output);
        page.progress_count = 0;
        atomic_store(&page.output_begin, ends[i / 5]);
        atomic_store(&page.output_end, ends[i % 5]);
        print("\nand on\n");
        take_to_the_end(&o);
        ck_assert_int_eq(times_logged("and on"), 1);
        ck_assert_uint_eq(atomic_load(&page.progress_count), 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run_output");
    TCase *tc = tcase_create("lines");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, G1_what_a_dead_runner_had_read_and_not_logged_the_worker_logs);
    tcase_add_test(tc, a_line_that_is_too_long_goes_on_in_the_next_one);
    tcase_add_test(tc, G5_whatever_a_handler_writes_into_the_page_reads_stay_inside);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
