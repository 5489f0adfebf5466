/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of every test program's main(): runs a suite, says as much as CK_VERBOSITY asks for,
 * frees it, and returns the exit code. */
#ifndef CLAIMD_TESTS_SUPPORT_SUITE_H
#define CLAIMD_TESTS_SUPPORT_SUITE_H

#include <check.h>
#include <stdlib.h>

static inline int suite_run_as(Suite *suite, enum fork_status fork_status)
{
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
