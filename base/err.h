/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors are values. A function that can fail returns `enum status` and fills a `struct err` on its
 * caller's stack: no allocation, no global. Callers branch on the status; the text is for people.
 *
 * The first error wins: a filled `struct err` is never overwritten, and callers on the way up only
 * prefix its text. Libraries return errors; the caller that decides how to go on logs them,
 * once. */
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

/* Fills *err unless it is NULL or already filled. If `sys` isn't 0, appends the text of that errno.
 * Truncates a message that is too long. */
void err_set(struct err *err, enum status st, int sys, const char *format, ...) PRINTF_LIKE(4, 5);

/* Prepends context to the text of a filled *err: "context: text". */
void err_prefix(struct err *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Fill *err and evaluate to the status, which is a constant, so that readers and static analysers
 * both see that it is not OK. */
#define err_fail(err, st, ...) (err_set((err), (st), 0, __VA_ARGS__), (st))
#define err_fail_sys(err, st, sys, ...) (err_set((err), (st), (sys), __VA_ARGS__), (st))

#endif
