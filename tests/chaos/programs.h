/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of the load as programs: what is c_short of the plugin is p_short of a Python
 * program that serves, and o_short of one that is started for each job. */
#ifndef CLAIMD_TESTS_CHAOS_PROGRAMS_H
#define CLAIMD_TESTS_CHAOS_PROGRAMS_H

#include "base/err.h"

/* Handler files in DIR/handlers, for programs in DIR/programs. */
enum status programs_write(const char *dir, struct err *err) MUST_USE;

#endif
