/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the programs as an operator does by hand, in a fleet's directory: with a configuration and a
 * few variables, and with all their output available. A failing step fails the test. */
#ifndef CLAIMD_TESTS_E2E_OPERATOR_H
#define CLAIMD_TESTS_E2E_OPERATOR_H

#include "base/buf.h"
#include "support/fleet.h"

#include <sys/stat.h>

#define OPERATOR_TEXT_SIZE (4 * SERVER_PATH_MAX)
#define OPERATOR_OUTPUT_MAX ((size_t)1 << 20)

enum program { WORKER, SCHEDULER, CTL, PROGRAMS };
extern const char *const program_names[PROGRAMS];

/* Replaces @ with the fleet's directory. */
void operator_expand(const struct fleet *f, const char *text, char ret_text[OPERATOR_TEXT_SIZE]);
/* Writes a file of the fleet's directory; keeps @ in the text. */
void operator_write(const struct fleet *f, const char *name, const char *text, mode_t mode);

/* Runs the program to its end and returns its exit code. `config`: a file of the fleet's directory.
 * `env`: variables, separated by line feeds, with @ as above. claimctl runs `stats`. */
int operator_run(const struct fleet *f, enum program p, const char *config, const char *env,
                 struct buf *out);
/* Runs claimctl with these words, separated by single spaces. */
int operator_ctl(const struct fleet *f, const char *config, const char *env, const char *words,
                 struct buf *out);
/* Starts a daemon that keeps running, with its output in `log`. */
pid_t operator_start(const struct fleet *f, enum program p, const char *config, const char *env,
                     const char *log);

#endif
