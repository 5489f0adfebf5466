/* SPDX-License-Identifier: Apache-2.0
 *
 * The queries of sql/check.sql, one by one; the head of the file describes its form. Pure. */
#ifndef CLAIMD_CTL_CHECKS_H
#define CLAIMD_CTL_CHECKS_H

#include "base/err.h"

#include <stddef.h>

#define CHECKS_MAX 32

struct check {
    char name[32];
    char rule[16];   /* docs/guarantees.md */
    char says[128];  /* what a row of the result means */
    bool is_suspect; /* its rows are not violations yet */
    bool is_warning; /* … or are never violations */
    const char *sql;
};

struct checks {
    struct check list[CHECKS_MAX];
    size_t count;
    char *text; /* owns the queries */
};

/* INVALID names the first line that is not of the form. */
enum status checks_read(const char *text, struct checks *ret, struct err *err) MUST_USE;
void checks_release(struct checks *checks);
/* Returns NULL if there is no check of that name. */
const struct check *checks_find(const struct checks *checks, const char *name);

#define auto_checks CLEANUP(checks_release)

#endif
