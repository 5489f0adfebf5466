/* SPDX-License-Identifier: Apache-2.0
 *
 * fault.F5: the reader of the log stalls, is slow, or is gone. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/log_out.h"
#include "cluster/servers.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>

#define LINES 20000 /* several times as much as the pipe and the ring hold */
#define LATER_US (60 * US_PER_S)
#define LINE_TAKEN_MAX 8192
#define PIPE_BYTES (1 << 20)

/* ---- what descriptor 2 may be; each returns the end to read from ---- */

static int become_pipe(void)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    (void)close(ends[1]);
    log_start();
    return ends[0];
}

/* Cannot be opened again, as if another user had made it: its reader is closed at that moment. */
static int become_closed_pipe(void)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    (void)close(ends[1]);
    (void)close(ends[0]);
    log_start();
    int fd = open("/proc/self/fd/2", O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_SETFL, 0), 0);
    return fd;
}

static int become_socket(void)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    (void)close(ends[1]);
    log_start();
    return ends[0];
}

static int become_terminal(void)
{
    char name[64];
    struct termios raw;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    ck_assert_int_ge(master, 0);
    ck_assert_int_eq(grantpt(master), 0);
    ck_assert_int_eq(unlockpt(master), 0);
    ck_assert_int_eq(ptsname_r(master, name, sizeof name), 0);
    int slave = open(name, O_RDWR | O_NOCTTY);
    ck_assert_int_ge(slave, 0);
    ck_assert_int_eq(tcgetattr(slave, &raw), 0);
    cfmakeraw(&raw);
    ck_assert_int_eq(tcsetattr(slave, TCSANOW, &raw), 0);
    ck_assert_int_eq(dup2(slave, STDERR_FILENO), STDERR_FILENO);
    (void)close(slave);
    log_start();
    return master;
}

static int (*const becomes[])(void) = {become_pipe, become_closed_pipe, become_socket,
                                       become_terminal};

/* ---- a reader ---- */

struct taken {
    int64_t lines;   /* lines of this test */
    int64_t next;    /* lowest number of the next line; a higher one means a gap */
    int64_t missing; /* in all gaps */
    int64_t told;    /* as reported by log_dropped */
    int64_t warnings;
    size_t len; /* of the part of a line that has been read */
    char bytes[LINE_TAKEN_MAX + 1];
};

static int64_t number_in(const char *line, const char *name)
{
    const char *at = strstr(line, name);
    ck_assert_msg(at != NULL, "%s is not in: %s", name, line);
    return strtoll(at + strlen(name), NULL, 10);
}

static void take_line(struct taken *t, const char *line)
{
    if (strstr(line, "event=log_dropped") != NULL) {
        t->told += number_in(line, " lines=");
        ck_assert_int_eq(number_in(line, " total="), t->told);
        return;
    }
    if (strstr(line, "event=matters") != NULL) {
        t->warnings++;
        return;
    }
    int64_t n = number_in(line, "event=line n=");
    ck_assert_int_ge(n, t->next);
    t->missing += n - t->next;
    ck_assert_int_eq(t->missing, t->told); /* reported before the lines after the gap */
    t->next = n + 1;
    t->lines++;
}

/* Reads until the line `last` or a warning, or to the end. */
static void take_until(int fd, struct taken *t, int64_t last)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (t->next <= last && t->warnings == 0 && poll(&p, 1, (int)(LATER_US / US_PER_MS)) == 1) {
        ssize_t n = read(fd, t->bytes + t->len, LINE_TAKEN_MAX - t->len);
        if (n <= 0) {
            return;
        }
        t->len += (size_t)n;
        t->bytes[t->len] = '\0';
        char *line = t->bytes;
        for (char *end = strchr(line, '\n'); end != NULL; end = strchr(line, '\n')) {
            *end = '\0';
            take_line(t, line);
            line = end + 1;
        }
        t->len -= (size_t)(line - t->bytes);
        memmove(t->bytes, line, t->len + 1);
    }
}

static void say(int64_t n)
{
    log_info("line", LOG_I64("n", n), LOG_TEXT("text", "what a line of a job would be long"));
}

/* ---- tests ---- */

START_TEST(a_reader_who_stalls_stops_nobody_and_what_he_misses_is_told)
{
    struct taken t = {.lines = 0};
    log_init("p", LOG_INFO);
    int fd = becomes[_i]();
    for (int64_t n = 0; n < LINES; n++) {
        say(n);
    }
    uint64_t dropped = log_dropped();
    ck_assert_uint_gt(dropped, 0);
    ck_assert_uint_eq(log_count(LOG_INFO), LINES);
    /* The reader continues: the rest of the ring arrives, then what was missed, and then new
     * lines. */
    take_until(fd, &t, LINES - 1 - (int64_t)dropped);
    ck_assert_int_eq(t.lines, LINES - (int64_t)dropped);
    ck_assert_int_eq(t.missing, 0);
    ck_assert(WAIT_UNTIL(log_count(LOG_WARN) == 1, LATER_US));
    say(LINES);
    take_until(fd, &t, LINES);
    ck_assert_int_eq(t.told, (int64_t)dropped);
    ck_assert_int_eq(t.missing, t.told);
    ck_assert_uint_eq(log_dropped(), dropped);
    log_stop();
}
END_TEST

START_TEST(a_slow_reader_gets_the_lines_in_their_order_and_each_gap_is_told)
{
    struct taken t = {.lines = 0};
    log_init("p", LOG_INFO);
    int fd = becomes[_i]();
    for (int64_t n = 0; n < LINES; n++) {
        say(n);
        if (n % 1000 == 999) {
            take_until(fd, &t, t.next + 300);
        }
    }
    log_warn("matters", LOG_I64("n", 1));
    take_until(fd, &t, LINES);
    ck_assert_int_eq(t.warnings, 1);
    ck_assert_int_gt(t.missing, 0);
}
END_TEST

START_TEST(a_warning_has_room_where_other_lines_have_none)
{
    struct taken t = {.lines = 0};
    log_init("p", LOG_INFO);
    int fd = become_pipe();
    for (int64_t n = 0; n < LINES; n++) {
        say(n);
    }
    uint64_t dropped = log_dropped();
    for (int n = 0; n < 100; n++) {
        log_warn("matters", LOG_I64("n", n));
    }
    ck_assert_uint_eq(log_dropped(), dropped);
    ck_assert_uint_gt(dropped, 0);
    for (int64_t seen = 0; seen < 100; seen += t.warnings) {
        t.warnings = 0;
        take_until(fd, &t, LINES);
        ck_assert_int_gt(t.warnings, 0);
    }
}
END_TEST

/* Runners, a shell or a supervisor may share the open file description. */
START_TEST(the_descriptor_that_others_share_stays_as_it_was)
{
    (void)becomes[_i]();
    ck_assert_int_eq(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
}
END_TEST

START_TEST(lines_that_no_disk_takes_are_counted)
{
    int fd = open("/dev/full", O_WRONLY);
    ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    log_init("p", LOG_INFO);
    log_start();
    say(0);
    say(1);
    ck_assert_uint_eq(log_dropped(), 2);
    log_stop();
}
END_TEST

START_TEST(what_is_said_before_the_start_and_after_the_end_is_written_at_once)
{
    struct taken t = {.lines = 0};
    int ends[2];
    log_init("p", LOG_INFO);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    say(0);
    log_start();
    say(1);
    log_stop();
    say(2);
    take_until(ends[0], &t, 2);
    ck_assert_int_eq(t.lines, 3);
}
END_TEST

/* Fills the ring, then ends by the signal `number`, or 0: in an orderly way. The pipe has room for
 * a thousand lines, so that the result does not depend on the reader's speed. */
static pid_t start_doomed(int number, int64_t lines, int *ret_fd)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid != 0) {
        (void)close(ends[1]);
        *ret_fd = ends[0];
        return pid;
    }
    (void)dup2(ends[1], STDERR_FILENO);
    (void)close(ends[1]);
    log_init("p", LOG_INFO);
    log_start();
    (void)close(ends[0]); /* log_start() has found a reader */
    for (int64_t n = 0; n < lines; n++) {
        say(n);
    }
    if (number == 0) {
        log_stop();
        _exit(0);
    }
    if (number == SIGABRT) {
        abort();
    }
    (void)raise(number);
    _exit(1);
}

/* A sanitizer writes its own messages to descriptor 2, and blocks. */
static bool is_sanitizers(int number)
{
    struct sigaction present = {.sa_flags = 0};
    return number != 0 && sigaction(number, NULL, &present) == 0 && present.sa_handler != SIG_DFL;
}

static const int ends_by[] = {0, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

START_TEST(the_last_lines_of_a_process_that_dies_get_out)
{
    struct taken t = {.lines = 0};
    int fd = -1;
    int status = 0;
    if (is_sanitizers(ends_by[_i])) {
        return;
    }
    pid_t pid = start_doomed(ends_by[_i], 1200, &fd);
    take_until(fd, &t, INT64_MAX - 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WIFSIGNALED(status) ? WTERMSIG(status) : 0, ends_by[_i]);
    ck_assert_int_eq(t.lines, 1200);
}
END_TEST

START_TEST(a_process_dies_although_nobody_reads_its_last_lines)
{
    int fd = -1;
    int status = 0;
    if (is_sanitizers(ends_by[_i])) {
        return;
    }
    pid_t pid = start_doomed(ends_by[_i], LINES, &fd);
    ck_assert(WAIT_UNTIL(waitpid(pid, &status, WNOHANG) == pid, LATER_US));
    ck_assert_int_eq(WIFSIGNALED(status) ? WTERMSIG(status) : 0, ends_by[_i]);
    (void)close(fd);
}
END_TEST

int main(void)
{
    int kinds = (int)ARRAY_COUNT(becomes);
    int ends = (int)ARRAY_COUNT(ends_by);
    Suite *s = suite_create("base_log_out");
    TCase *t = tcase_create("base_log_out");
    tcase_set_timeout(t, 60);
    (void)signal(SIGPIPE, SIG_IGN);
    tcase_add_loop_test(t, a_reader_who_stalls_stops_nobody_and_what_he_misses_is_told, 0, kinds);
    tcase_add_loop_test(t, a_slow_reader_gets_the_lines_in_their_order_and_each_gap_is_told, 0,
                        kinds);
    tcase_add_test(t, a_warning_has_room_where_other_lines_have_none);
    tcase_add_loop_test(t, the_descriptor_that_others_share_stays_as_it_was, 0, kinds);
    tcase_add_test(t, lines_that_no_disk_takes_are_counted);
    tcase_add_test(t, what_is_said_before_the_start_and_after_the_end_is_written_at_once);
    tcase_add_loop_test(t, the_last_lines_of_a_process_that_dies_get_out, 0, ends);
    tcase_add_loop_test(t, a_process_dies_although_nobody_reads_its_last_lines, 0, ends);
    suite_add_tcase(s, t);
    return suite_run(s);
}
