/* SPDX-License-Identifier: Apache-2.0
 *
 * Failures are values. A function that can fail returns `enum status` and fills a `struct err` that
 * its caller keeps on the stack: no allocation, no global. A status is what callers branch on; the
 * text says what happened. The first error wins: a filled `struct err` is not overwritten, only
 * prefixed while it climbs. Libraries return errors; the caller that decides what follows logs
 * them, once. */
#ifndef CLAIMD_BASE_ERR_H
#define CLAIMD_BASE_ERR_H

#include "base/cleanup.h"

#include <stdbool.h>

#define STATUS_MAP(X)                                                   \
    X(OK, "ok")                                                         \
    X(INVALID, "invalid input")                                         \
    X(NOT_FOUND, "not found")                                           \
    X(CONFLICT, "not possible in this state, or lost to another owner") \
    X(UNAVAILABLE, "dependency unavailable; nothing was done")          \
    X(TIMEOUT, "deadline passed")                                       \
    X(UNKNOWN, "outcome unknown: read back before acting on it")        \
    X(LIMIT, "a bound was reached")                                     \
    X(NOMEM, "out of memory")                                           \
    X(INTERNAL, "internal error")

enum status {
#define X(name, text) STATUS_##name,
    STATUS_MAP(X)
#undef X
};

#define ERR_TEXT_MAX 512

/* The zero value means "no error". `code` is an SQLSTATE or "". */
struct err {
    enum status status;
    char code[6];
    char msg[ERR_TEXT_MAX];
};

const char *status_text(enum status st);

/* Fills *err unless it is NULL or already filled. A sys other than 0 appends its text. Cuts the
 * tail when too long. */
void err_set(struct err *err, enum status st, int sys, const char *format, ...) PRINTF_LIKE(4, 5);

/* Puts context before the text of a filled *err: "context: text". */
void err_prefix(struct err *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Fill and evaluate to the status, a constant: readers and static analysers both see that it is not
 * OK. */
#define err_fail(err, st, ...) (err_set((err), (st), 0, __VA_ARGS__), (st))
#define err_fail_sys(err, st, sys, ...) (err_set((err), (st), (sys), __VA_ARGS__), (st))

#endif
