/* SPDX-License-Identifier: Apache-2.0
 *
 * The first acts of a runner (INTERFACES rule 11, fault.J4, J6): whatever was inherited from the
 * worker and could harm it, or outlive it, is gone before a plugin is looked at. */
#ifndef CLAIMD_WORKER_RUNNER_CONFINE_H
#define CLAIMD_WORKER_RUNNER_CONFINE_H

#include "base/err.h"

#include <sys/types.h>

/* Dies with `parent` (0: with nobody), leads a process group of its own, has default signals, no
 * descriptor above `last_fd`, a small environment, no core dumps and no way to new privileges. */
enum status confine_process(pid_t parent, int last_fd, struct err *err) MUST_USE;

#endif
