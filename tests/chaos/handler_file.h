/* SPDX-License-Identifier: Apache-2.0
 *
 * Handler files for Python programs (--programs). */
#ifndef CLAIMD_TESTS_CHAOS_HANDLER_FILE_H
#define CLAIMD_TESTS_CHAOS_HANDLER_FILE_H

#include "base/err.h"

#include <jansson.h>

/* The kit kills runners itself: that must not use up a job's attempts and crashes. */
#define HANDLER_FILE_MANY 1000

/* Writes DIR/handlers/MODE.json for DIR/programs/handlers.py, beside which the SDK is. The program
 * is called with the mode ("serve" or "once") and the names of the kinds. Takes ownership of
 * `kinds`. */
enum status handler_file_write(const char *dir, const char *mode, json_t *kinds,
                               struct err *err) MUST_USE;

#endif
