/* SPDX-License-Identifier: Apache-2.0
 *
 * `--args @FILE`, and other options with JSON: what is too long for a command line. No JSON begins
 * with an @. */
#ifndef CLAIMD_CTL_ARGS_FILE_H
#define CLAIMD_CTL_ARGS_FILE_H

#include "base/buf.h"

/* `given`, the value of that option, itself, or the content of the file that it names; "@-" is
 * standard input. *ret_json is borrowed from `given` or from `room`, NULL where `given` is.
 * INVALID: can't be read, has a NUL, or is longer than args may be. */
enum status args_file_read(const char *option, const char *given, struct buf *room,
                           const char **ret_json, struct err *err) MUST_USE;

#endif
