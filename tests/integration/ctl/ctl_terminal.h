/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the real claimctl on a terminal of its own, 80 columns by 24 lines. */
#ifndef CLAIMD_TESTS_CTL_TERMINAL_H
#define CLAIMD_TESTS_CTL_TERMINAL_H

#include "base/buf.h"

#include <sys/types.h>
#include <termios.h>

struct terminal {
    int master; /* bytes written to it are keys */
    pid_t pid;
    struct termios before;
    struct buf seen; /* everything that was printed */
};

/* Starts it. `env`: one more "NAME=value". */
void terminal_run(struct terminal *t, const char *const *words, const char *env);
/* Reads until `wanted` has been printed. */
void terminal_await(struct terminal *t, const char *wanted);
/* Reads until `last` is printed and the program ends; returns its exit code. The terminal must
 * have the same settings as before. */
int terminal_end(struct terminal *t, const char *last);
/* Reads to the end of the program. */
void terminal_read_all(struct terminal *t);
/* Returns the number of printed lines. */
size_t terminal_lines(const struct terminal *t);
/* Reads to the end, which must have exit code 0; no line may have more than `columns`
 * characters. */
void terminal_assert_width(struct terminal *t, size_t columns);

#endif
