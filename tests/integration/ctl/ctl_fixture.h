/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the real claimctl on this test's database; its output is in `ctl.out`. */
#ifndef CLAIMD_TESTS_CTL_FIXTURE_H
#define CLAIMD_TESTS_CTL_FIXTURE_H

#include "base/buf.h"
#include "support/pg_fixture.h"

#include <jansson.h>

struct ctl_output {
    struct buf out;
    char conninfo[SERVER_PATH_MAX]; /* of this test's database, unless a test changes it */
    const char *env[6];             /* further "NAME=value", NULL-ended */
};
extern struct ctl_output ctl;
extern struct sql *db; /* a superuser's session in that database */

/* Checked fixtures, around those of pg_fixture.h. */
void ctl_setup(void);
void ctl_setup_empty(void);
void ctl_teardown(void);

/* Runs claimctl with these words, without the program's name; returns its exit code. */
int ctl_run_words(const char *const *words);
#define ctl_exit(...) ctl_run_words((const char *const[]){__VA_ARGS__, NULL})

#define assert_says(part)                                                                         \
    ck_assert_msg(strstr(ctl_text(), (part)) != NULL, "printed: %.3000s\nwanted: %s", ctl_text(), \
                  (part))
const char *ctl_text(void);

/* Returns the output as JSON; the caller owns it. */
json_t *ctl_json(void);

/* Runs doctor --json, whose report ctl_json() returns; returns its exit code. */
int ctl_doctor(void);
/* Checks that a line of that report has this result, and that part of its detail matches this
 * pattern of fnmatch(3): "*" stands for the seconds that a slow machine adds. */
void ctl_assert_check(const char *result, const char *check, const char *part);

/* Writes a file into the test's folder, readable for all. The path stays valid until the next
 * call. */
const char *ctl_write_file(const char *name, const char *text, size_t len);

#endif
