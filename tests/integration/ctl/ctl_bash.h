/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of bash in which claimctl is the built one, for tests without servers. */
#ifndef CLAIMD_TESTS_CTL_BASH_H
#define CLAIMD_TESTS_CTL_BASH_H

/* A checked fixture. */
void bash_setup(void);
void bash_teardown(void);

/* Runs it; returns its exit code. */
int bash_run(const char *line);
/* What the last one has printed, on both descriptors. */
const char *bash_text(void);

#endif
