/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of claimd-runner's main(), in their order. */
#ifndef CLAIMD_RUNNER_RUNNER_H
#define CLAIMD_RUNNER_RUNNER_H

#include "protocol/protocol.h"
#include "runner/plugin_set.h"
#include "runner/watchdog.h"

#include <sys/types.h>

/* Makes the process die with `parent` (0: no such tie) and lead a process group of its own, with
 * default signals, no descriptor above `last_fd`, a small environment, no core dumps and no way to
 * gain privileges. */
enum status confine_process(pid_t parent, int last_fd, struct err *err) MUST_USE;

/* Prints the JSON of --list. Loads the files in a child process, and again without each file that
 * ends the child. */
enum status list_plugins(const struct plugin_set_options *options, struct err *err) MUST_USE;

/* OK: the worker closed its end between jobs, or a job left something behind in the process and its
 * result was sent. */
enum status serve(struct runner_page *page, struct plugin_set *plugins, struct watchdog *w,
                  struct err *err) MUST_USE;

#endif
