/* SPDX-License-Identifier: Apache-2.0
 *
 * The main() of a test program whose tests share a directory, which is removed at the end. */
#ifndef CLAIMD_TESTS_SUITE_DIR_H
#define CLAIMD_TESTS_SUITE_DIR_H

#include "cluster/servers.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

struct suite_in_dir {
    const char *name;
    char *ret_dir; /* receives the directory's path before the first test */
    size_t dir_size;
    int timeout_s; /* of each test */
    void (*setup)(void);
    void (*teardown)(void);
    void (*add_tests)(TCase *t);
};

static inline int suite_run_in_dir(const struct suite_in_dir *in)
{
    Suite *s = suite_create(in->name);
    TCase *t = tcase_create(in->name);
    struct err err = {0};
    if (dir_make(in->ret_dir, in->dir_size, &err) != STATUS_OK) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return EXIT_FAILURE;
    }
    tcase_set_timeout(t, in->timeout_s);
    tcase_add_checked_fixture(t, in->setup, in->teardown);
    in->add_tests(t);
    suite_add_tcase(s, t);
    int code = suite_run(s);
    dir_remove(in->ret_dir);
    return code;
}

#endif
