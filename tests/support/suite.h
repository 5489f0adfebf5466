/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of every test program's main(): runs a suite, prints as much as CK_VERBOSITY requests,
 * frees it, and returns the exit code. */
#ifndef CLAIMD_TESTS_SUPPORT_SUITE_H
#define CLAIMD_TESTS_SUPPORT_SUITE_H

#include "base/clock.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Limit for waits that an event ends: no machine is that slow. It is less than a test's own limit,
 * which is five times the timeout of its program (cmake/Targets.cmake). */
#define SOON_US (240 * US_PER_S)

/* Returns the folder for files that a test writes itself; ctest gives each test its own. */
static inline const char *suite_tmp(void)
{
    const char *own = getenv("TMPDIR");
    return own != NULL ? own : "/tmp";
}

static pid_t suite_forker;

static inline void suite_before_fork(void)
{
    suite_forker = getpid();
}

static inline void suite_in_fork(void)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != suite_forker) {
        _exit(EXIT_FAILURE);
    }
}

/* Every fork, including those of check, dies with the process that forked it. Otherwise nothing
 * would end it, since the parent enforces check's time limits. */
static inline int suite_run_as(Suite *suite, enum fork_status fork_status)
{
    if (pthread_atfork(suite_before_fork, NULL, suite_in_fork) != 0) {
        return EXIT_FAILURE;
    }
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, fork_status);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Runs each test in a process of its own. */
static inline int suite_run(Suite *suite)
{
    return suite_run_as(suite, CK_FORK_GETENV);
}

/* Runs all tests in this process: they share servers that are its children, or continue where the
 * last one ended. */
static inline int suite_run_in_one(Suite *suite)
{
    return suite_run_as(suite, CK_NOFORK);
}

#endif
