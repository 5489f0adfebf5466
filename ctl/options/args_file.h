/* SPDX-License-Identifier: Apache-2.0
 *
 * `--args @FILE`, and other options for JSON that may be too long for a command line. No JSON
 * begins with an @. */
#ifndef CLAIMD_CTL_ARGS_FILE_H
#define CLAIMD_CTL_ARGS_FILE_H

#include "base/buf.h"

/* Returns `given`, the value of that option, or the content of the file that it names; "@-" is
 * standard input. *ret_json is borrowed from `given` or from `room`, and NULL if `given` is NULL.
 * INVALID: the file cannot be read, contains a NUL, or is longer than args may be. */
enum status args_file_read(const char *option, const char *given, struct buf *room,
                           const char **ret_json, struct err *err) MUST_USE;

#endif
