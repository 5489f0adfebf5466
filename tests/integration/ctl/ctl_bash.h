/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs lines of bash in which claimctl is the built program, for tests without servers. */
#ifndef CLAIMD_TESTS_CTL_BASH_H
#define CLAIMD_TESTS_CTL_BASH_H

/* A checked fixture. */
void bash_setup(void);
void bash_teardown(void);

/* Runs the line; returns its exit code. */
int bash_run(const char *line);
/* Returns the output of the last line, from both descriptors. */
const char *bash_text(void);

#endif
