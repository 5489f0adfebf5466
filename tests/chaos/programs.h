/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of the load as programs: the plugin's kind c_short is p_short in a Python program
 * that serves, and o_short in one that is started for each job. */
#ifndef CLAIMD_TESTS_CHAOS_PROGRAMS_H
#define CLAIMD_TESTS_CHAOS_PROGRAMS_H

#include "base/err.h"

/* Writes handler files to DIR/handlers, for programs in DIR/programs. */
enum status programs_write(const char *dir, struct err *err) MUST_USE;

#endif
