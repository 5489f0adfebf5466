/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl_terminal.h"

#include "ctl_fixture.h"

#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

void terminal_run(struct terminal *t, const char *const *words, const char *no_colour)
{
    const struct winsize size = {.ws_row = 24, .ws_col = 80};
    char program[SERVER_PATH_MAX];
    char conninfo[SERVER_PATH_MAX + 64];
    (void)snprintf(program, sizeof program, "%s/claimctl", getenv("CLAIMD_BIN_DIR"));
    (void)snprintf(conninfo, sizeof conninfo, "CLAIMD_POSTGRES_CONNINFO=%s", ctl.conninfo);
    char term[] = "TERM=xterm";
    char colour[256];
    (void)snprintf(colour, sizeof colour, "%s", no_colour);
    char no_file[] = "CLAIMD_CONFIG=";
    char *env[] = {conninfo, term, no_file, colour, NULL};
    char copies[7][256];
    char *argv[8] = {program};
    for (size_t i = 0; words[i] != NULL; i++) {
        ck_assert_uint_lt(i + 1, ARRAY_COUNT(argv) - 1);
        (void)snprintf(copies[i], sizeof copies[i], "%s", words[i]);
        argv[i + 1] = copies[i];
    }
    buf_init(&t->seen, 1 << 20);
    t->pid = forkpty(&t->master, NULL, NULL, &size);
    ck_assert_int_ge(t->pid, 0);
    if (t->pid == 0) {
        (void)execve(program, argv, env);
        _exit(127);
    }
    ck_assert_int_eq(tcgetattr(t->master, &t->before), 0);
}

void terminal_await(struct terminal *t, const char *wanted)
{
    int64_t end_us = clock_boot_us() + LIMIT_US;
    while (t->seen.len == 0 || strstr(buf_at(&t->seen), wanted) == NULL) {
        struct pollfd p = {.fd = t->master, .events = POLLIN};
        ck_assert_msg(clock_boot_us() < end_us && poll(&p, 1, 1000) >= 0, "no '%s' in: %.2000s",
                      wanted, t->seen.len > 0 ? buf_at(&t->seen) : "");
        ck_assert_int_eq(buf_reserve(&t->seen, 4096, NULL), STATUS_OK);
        ssize_t n = p.revents != 0 ? read(t->master, buf_at(&t->seen) + t->seen.len, 4096) : 0;
        ck_assert_msg(n >= 0, "the program ended before it said '%s': %.2000s", wanted,
                      t->seen.len > 0 ? buf_at(&t->seen) : "");
        buf_grew(&t->seen, (size_t)n);
    }
}

int terminal_end(struct terminal *t, const char *last)
{
    int status = 0;
    struct termios after;
    terminal_await(t, last);
    ck_assert_int_eq(waitpid(t->pid, &status, 0), t->pid);
    ck_assert_int_eq(tcgetattr(t->master, &after), 0);
    ck_assert_uint_eq(after.c_lflag, t->before.c_lflag);
    (void)close(t->master);
    buf_release(&t->seen);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void terminal_read_all(struct terminal *t)
{
    int64_t end_us = clock_boot_us() + LIMIT_US;
    ssize_t n = 1;
    while (n > 0) {
        struct pollfd p = {.fd = t->master, .events = POLLIN};
        ck_assert(clock_boot_us() < end_us && poll(&p, 1, 1000) >= 0);
        ck_assert_int_eq(buf_reserve(&t->seen, 4096, NULL), STATUS_OK);
        /* EIO when the program has ended. */
        n = read(t->master, buf_at(&t->seen) + t->seen.len, 4096);
        buf_grew(&t->seen, n > 0 ? (size_t)n : 0);
    }
}

size_t terminal_lines(const struct terminal *t)
{
    size_t lines = 1;
    for (const char *p = buf_at(&t->seen); *p != '\0'; p++) {
        lines += *p == '\n';
    }
    return lines;
}

void terminal_assert_width(struct terminal *t, size_t columns)
{
    int status = 0;
    terminal_read_all(t);
    ck_assert_int_eq(waitpid(t->pid, &status, 0), t->pid);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_gt(t->seen.len, 0);
    for (const char *line = buf_at(&t->seen); *line != '\0';) {
        size_t len = strcspn(line, "\r\n");
        size_t width = 0;
        for (size_t i = 0; i < len; i++) {
            while (i < len && line[i] == '\x1b') { /* takes no space on the screen */
                i += strcspn(line + i, "HJKhlm") + 1;
            }
            /* First byte of a character. */
            bool is_first = i < len && ((unsigned char)line[i] & 0xc0) != 0x80;
            width += is_first;
        }
        ck_assert_msg(width <= columns, "%zu wide: %.*s", width, (int)len, line);
        line += len + strspn(line + len, "\r\n");
    }
    (void)close(t->master);
    buf_release(&t->seen);
}
