/* SPDX-License-Identifier: Apache-2.0
 *
 * What a runner gets of its worker's environment (fault.J4): nothing secret lives under these
 * names. */
#ifndef CLAIMD_WORKER_RUNNER_ENV_H
#define CLAIMD_WORKER_RUNNER_ENV_H

#include <stddef.h>

#define RUNNER_ENV_MAX 16

/* For handlers: NULL-ended. */
extern const char *const RUNNER_ENV_NAMES[];

/* "NAME=value" of those and of what the dynamic linker and sanitizers read at the start, borrowed
 * from the environment of this process. NULL-ended. */
void runner_env_list(char *ret_list[RUNNER_ENV_MAX]);

#endif
