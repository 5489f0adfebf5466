/* SPDX-License-Identifier: Apache-2.0
 *
 * fault.F5: daemons whose log is no longer read. */
#include "base/buf.h"
#include "cluster/scrape.h"
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define JOBS 3000 /* several times as much as a pipe and the ring hold */
#define ANSWER_MAX ((size_t)4 << 20)
#define LINE_TAKEN_MAX 65536

static struct fleet f;

struct reader {
    int fd;
    size_t len;
    char bytes[LINE_TAKEN_MAX + 1];
    char line[4096]; /* the last line */
};

static struct reader reader;

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.slots = 2});
    fleet_start_scheduler(&f, 0);
}

static void teardown(void)
{
    fleet_stop(&f);
}

/* Makes the log of the worker that is started next a pipe of ours. */
static void reader_open(mode_t mode)
{
    char path[SERVER_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/claimd-worker-0.log", f.dir);
    ck_assert_int_eq(mkfifo(path, mode), 0);
    ck_assert_int_eq(chmod(path, mode), 0);
    reader = (struct reader){.fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    ck_assert_int_ge(reader.fd, 0);
}

static bool next_line(void)
{
    char *end = memchr(reader.bytes, '\n', reader.len);
    if (end == NULL) {
        return false;
    }
    size_t len = (size_t)(end - reader.bytes);
    ck_assert_uint_lt(len, sizeof reader.line);
    memcpy(reader.line, reader.bytes, len);
    reader.line[len] = '\0';
    reader.len -= len + 1;
    memmove(reader.bytes, end + 1, reader.len);
    return true;
}

/* Reads until a line contains `text`; reader.line then has it. */
static void read_until(const char *text)
{
    struct pollfd p = {.fd = reader.fd, .events = POLLIN};
    int64_t end_us = clock_boot_us() + SOON_US;
    while (clock_boot_us() < end_us) {
        while (next_line()) {
            if (strstr(reader.line, text) != NULL) {
                return;
            }
        }
        if (poll(&p, 1, 100) == 1) {
            ssize_t n = read(reader.fd, reader.bytes + reader.len, LINE_TAKEN_MAX - reader.len);
            ck_assert_int_ge(n, 0);
            reader.len += (size_t)n;
        }
    }
    ck_abort_msg("no line with %s, the last was: %s", text, reader.line);
}

static int64_t heartbeats_until(void)
{
    return sql_number(f.sql, "SELECT (extract(epoch FROM max(stale_at)) * 1000)::bigint"
                             " FROM claimd.worker");
}

static double lines_lost(const char *address)
{
    struct err err = {0};
    autobuf struct buf out = BUF_INIT(ANSWER_MAX);
    ck_assert_msg(scrape_get(address, "/metrics", SOON_US, &out, &err) == STATUS_OK, "%s", err.msg);
    return scrape_sum(buf_at(&out), "claimd_log_lines_dropped_total", NULL);
}

/* As root, the fleet runs as another user than the owner of the pipe: the worker cannot open it a
 * second time. */
static const mode_t modes[] = {0666, 0600};

START_TEST(F5_a_worker_works_and_sends_heartbeats_and_ends_while_nobody_reads_its_log)
{
    char address[64] = "";
    reader_open(modes[_i]);
    fleet_launch_worker(&f, 0, (const char *const[]){"CLAIMD_LOG_LEVEL=debug", NULL});
    read_until("event=ready");
    ck_assert_int_eq(sscanf(strstr(reader.line, "http=") + 5, "%63s", address), 1);
    (void)fleet_enqueue(&f, "noop", "{}", JOBS);
    fleet_wait_finished(&f, JOBS, "completed", 3 * SOON_US);
    int64_t beats_ms = heartbeats_until();
    ck_assert(WAIT_UNTIL(heartbeats_until() > beats_ms, SOON_US));
    ck_assert(WAIT_UNTIL(lines_lost(address) > 0, SOON_US));
    read_until("event=log_dropped");
    (void)fleet_enqueue(&f, "noop", "{}", 1);
    read_until("event=job_finished");
    (void)fleet_enqueue(&f, "noop", "{}", JOBS);
    fleet_wait_finished(&f, 2 * JOBS + 1, "completed", 3 * SOON_US);
    fleet_signal(f.workers[0], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[0]), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("log");
    TCase *t = tcase_create("log");
    tcase_set_timeout(t, 200);
    tcase_add_unchecked_fixture(t, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t,
                        F5_a_worker_works_and_sends_heartbeats_and_ends_while_nobody_reads_its_log,
                        0, (int)ARRAY_COUNT(modes));
    suite_add_tcase(s, t);
    return suite_run(s);
}
