/* SPDX-License-Identifier: Apache-2.0
 *
 * What claimd-runner's main() calls, one after the other. */
#ifndef CLAIMD_WORKER_RUNNER_RUNNER_H
#define CLAIMD_WORKER_RUNNER_RUNNER_H

#include "worker/protocol.h"
#include "worker/runner/plugin_set.h"
#include "worker/runner/watchdog.h"

#include <sys/types.h>

/* Dies with `parent` (0: with nobody), leads a process group of its own, has default signals, no
 * descriptor above `last_fd`, a small environment, no core dumps and no way to new privileges. */
enum status confine_process(pid_t parent, int last_fd, struct err *err) MUST_USE;

/* Prints what --list shows, as JSON. Loads the files in children of this process, anew without each
 * that ends one. */
enum status list_plugins(const struct plugin_set_options *options, struct err *err) MUST_USE;

/* OK: the worker closed its end between jobs, or a job left the process dirty and its result was
 * sent. */
enum status serve(struct runner_page *page, struct plugin_set *plugins, struct watchdog *w,
                  struct err *err) MUST_USE;

#endif
