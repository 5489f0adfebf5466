/* SPDX-License-Identifier: Apache-2.0
 *
 * `claimd-runner --list`: what the plugins of a folder serve, and why files are refused, as a
 * runner would find it: a file that would end one is named too. */
#ifndef CLAIMD_WORKER_RUNNER_LIST_H
#define CLAIMD_WORKER_RUNNER_LIST_H

#include "worker/runner/plugin_set.h"

/* Prints it as JSON. Loads the files in children of this process, anew without each that ends
 * one. */
enum status list_plugins(const struct plugin_set_options *options, struct err *err) MUST_USE;

#endif
