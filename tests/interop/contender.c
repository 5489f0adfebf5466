/* SPDX-License-Identifier: Apache-2.0
 *
 * A contender of the lock's contest (tests/e2e/contest.h) that locks with this library:
 * contender DIRECTORY NAME SECONDS TTL_MS SOCKET… */
#include "base/clock.h"
#include "base/parse.h"
#include "cluster/servers.h"
#include "redlock/redlock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

static int log_fd;
static char counter_path[SERVER_PATH_MAX];
static char inside_path[SERVER_PATH_MAX];

__attribute__((noreturn)) static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "contender: %s: %s\n", what, why);
    _exit(1);
}

static void note(const char *what, int64_t deadline_us, int64_t value)
{
    char line[128];
    int len = snprintf(line, sizeof line, "%s %d %" PRId64 " %" PRId64 " %" PRId64 "\n", what,
                       (int)getpid(), clock_boot_us(), deadline_us, value);
    if (write(log_fd, line, (size_t)len) != len) {
        die("log", strerror(errno));
    }
}

/* 0 = not there, or empty. */
static int64_t read_number(const char *path)
{
    char text[32];
    int64_t number = 0;
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
    size_t len = n > 0 ? (size_t)n : 0;
    return parse_i64(text, len, 0, INT64_MAX, &number, NULL) == STATUS_OK ? number : 0;
}

static bool write_number(const char *path, int flags, int64_t number)
{
    char text[32];
    int len = snprintf(text, sizeof text, "%" PRId64, number);
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
    if (fd < 0 && errno == EEXIST) {
        return false;
    }
    if (fd < 0 || write(fd, text, (size_t)len) != len) {
        die(path, strerror(errno));
    }
    return true;
}

/* What only one may do at a time. */
static void section(const struct redlock_lock *lock)
{
    int64_t deadline_us = clock_boot_us() + redlock_left_ms(lock) * US_PER_MS;
    int64_t value = read_number(counter_path) + 1;
    note("enter", deadline_us, value);
    if (!write_number(inside_path, O_EXCL, deadline_us)) {
        if (clock_boot_us() < read_number(inside_path)) {
            note("violation", 0, 0);
        }
        (void)write_number(inside_path, O_TRUNC, deadline_us);
    }
    (void)write_number(counter_path, 0, value); /* never shorter: it is whole at any time */
    (void)unlink(inside_path);
    note("leave", deadline_us, value);
}

static int64_t number_of(const char *text)
{
    int64_t number = 0;
    if (parse_i64(text, strlen(text), 1, 1000000, &number, NULL) != STATUS_OK) {
        die("not a number", text);
    }
    return number;
}

static void contend(struct redlock_client *client, int64_t end_us)
{
    const struct redlock_request request = {.key = "contest", .wait_ms = 300, .manual = true};
    struct redlock_report report = {0};
    struct redlock_lock *lock = NULL;
    char last[REDLOCK_TEXT_SIZE] = "";
    while (clock_boot_us() < end_us) {
        if (redlock_acquire(client, &request, &lock, &report) == REDLOCK_OK) {
            section(lock);
            (void)redlock_unlock(TAKE(lock), NULL);
            wait_step(); /* the others don't hear of it, and try at random times */
            wait_step();
        } else if (strcmp(last, report.message) != 0) {
            (void)fprintf(stderr, "%s\n", report.message); /* to be read when a test fails */
            (void)snprintf(last, sizeof last, "%s", report.message);
        }
    }
}

int main(int argc, char **argv)
{
    char path[SERVER_PATH_MAX];
    char nodes[REDLOCK_NODES_MAX * (SERVER_PATH_MAX + 6)];
    size_t len = 0;
    struct redlock_client *client = NULL;
    struct redlock_report report = {0};
    if (argc < 6 || argc > 5 + REDLOCK_NODES_MAX) {
        die("usage", "contender DIRECTORY NAME SECONDS TTL_MS SOCKET…");
    }
    (void)umask(0);
    (void)snprintf(counter_path, sizeof counter_path, "%s/counter", argv[1]);
    (void)snprintf(inside_path, sizeof inside_path, "%s/inside", argv[1]);
    (void)snprintf(path, sizeof path, "%s/%s.log", argv[1], argv[2]);
    log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    for (int i = 5; i < argc; i++) {
        len += (size_t)snprintf(nodes + len, sizeof nodes - len, "%sunix:%s", i > 5 ? "," : "",
                                argv[i]);
    }
    int64_t ttl_ms = number_of(argv[4]);
    const struct redlock_options options = {
        .nodes = nodes, .ttl_ms = ttl_ms, .node_timeout_ms = ttl_ms / 10};
    int64_t end_us = clock_boot_us() + number_of(argv[3]) * US_PER_S;
    if (redlock_open(&options, &client, &report) != REDLOCK_OK) {
        die("open", report.message);
    }
    contend(client, end_us);
    redlock_close(client);
    return 0;
}
