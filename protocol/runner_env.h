/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the worker's environment that a runner gets (fault.J4): nothing secret is stored
 * under these names. */
#ifndef CLAIMD_PROTOCOL_RUNNER_ENV_H
#define CLAIMD_PROTOCOL_RUNNER_ENV_H

#include <stddef.h>

#define RUNNER_ENV_MAX 16

/* Names for handlers; ends with NULL. */
extern const char *const RUNNER_ENV_NAMES[];

/* Lists "NAME=value" of those and of the variables that the dynamic linker and sanitizers read at
 * the start, borrowed from the environment of this process. Ends with NULL. */
void runner_env_list(char *ret_list[RUNNER_ENV_MAX]);

#endif
