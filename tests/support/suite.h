/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of every test program's main(): runs a suite, says as much as CK_VERBOSITY asks for,
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

/* For what an event ends: no machine is as slow as that. It is less than a test's own limit, which
 * is five times what its program says (cmake/Targets.cmake). */
#define SOON_US (240 * US_PER_S)

/* The folder for what a test writes itself; ctest gives each test one of its own. */
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

/* Every fork, check's among them, dies with the process that forked it: nobody else would end it,
 * since check's time limits are kept by the parent. */
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

/* Each test in a process of its own. */
static inline int suite_run(Suite *suite)
{
    return suite_run_as(suite, CK_FORK_GETENV);
}

/* All in this one: they share servers that are its children, or go on where the last one ended. */
static inline int suite_run_in_one(Suite *suite)
{
    return suite_run_as(suite, CK_NOFORK);
}

#endif
