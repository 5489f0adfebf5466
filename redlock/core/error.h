/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns the library's own errors into those of its callers. */
#ifndef CLAIMD_REDLOCK_CORE_ERROR_H
#define CLAIMD_REDLOCK_CORE_ERROR_H

#include "base/err.h"
#include "redlock/redlock_async.h"

/* Fills *ret_error, which may be NULL. Returns the code. */
int error_put(int code, const char *text, struct redlock_error *ret_error);

/* 0, or a negative errno with `err`'s text in *ret_error (may be NULL). */
int error_tell(enum status st, const struct err *err, struct redlock_error *ret_error);

/* −ESHUTDOWN */
int error_tell_closing(struct redlock_error *ret_error);

#endif
