/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a runner after its plugins are loaded: HELLO, then one RESULT per JOB until the
 * worker closes its end. Whatever isn't a valid JOB ends it: the worker starts another. */
#ifndef CLAIMD_WORKER_RUNNER_SERVE_H
#define CLAIMD_WORKER_RUNNER_SERVE_H

#include "worker/protocol.h"
#include "worker/runner/plugin_set.h"
#include "worker/runner/watchdog.h"

/* OK: the worker closed its end between jobs, or a job left the process dirty and its result was
 * sent. */
enum status serve(struct runner_page *page, const struct plugin_set *plugins, struct watchdog *w,
                  struct err *err) MUST_USE;

#endif
