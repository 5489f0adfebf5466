/* SPDX-License-Identifier: Apache-2.0
 *
 * The programs as an operator starts them by hand, in a fleet's directory: with a configuration, a
 * few variables, and all that they print at hand. A failing step fails the test. */
#ifndef CLAIMD_TESTS_E2E_OPERATOR_H
#define CLAIMD_TESTS_E2E_OPERATOR_H

#include "base/buf.h"
#include "support/fleet.h"

#include <sys/stat.h>

#define OPERATOR_TEXT_SIZE (4 * SERVER_PATH_MAX)
#define OPERATOR_OUTPUT_MAX ((size_t)1 << 20)

enum program { WORKER, SCHEDULER, CTL, PROGRAMS };
extern const char *const program_names[PROGRAMS];

/* @ becomes the fleet's directory. */
void operator_expand(const struct fleet *f, const char *text, char ret_text[OPERATOR_TEXT_SIZE]);
/* A file of the fleet's directory; @ in the text stays. */
void operator_write(const struct fleet *f, const char *name, const char *text, mode_t mode);

/* Runs it to its end and returns the exit code. `config`: a file of the fleet's directory. `env`:
 * variables, parted by line feeds, with @ as above. claimctl is asked for `stats`. */
int operator_run(const struct fleet *f, enum program p, const char *config, const char *env,
                 struct buf *out);
/* claimctl with these words, parted by single spaces. */
int operator_ctl(const struct fleet *f, const char *config, const char *env, const char *words,
                 struct buf *out);
/* A daemon that goes on, its output in `log`. */
pid_t operator_start(const struct fleet *f, enum program p, const char *config, const char *env,
                     const char *log);

#endif
