/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts the library's internal errors into those of its interface. */
#ifndef CLAIMD_REDLOCK_CORE_ERROR_H
#define CLAIMD_REDLOCK_CORE_ERROR_H

#include "base/err.h"
#include "redlock/redlock_async.h"

/* Fills *ret_error, which may be NULL. Returns the code. */
int error_put(int code, const char *text, struct redlock_error *ret_error);

/* Returns 0, or a negative errno with the text of `err` in *ret_error (may be NULL). */
int error_tell(enum status st, const struct err *err, struct redlock_error *ret_error);

/* Returns −ESHUTDOWN. */
int error_tell_closing(struct redlock_error *ret_error);

#endif
