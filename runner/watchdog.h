/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets the runner itself enforce its lease (fault.A4): a thread kills the process group, whatever
 * the handler does, when the page's kill_at has passed while a job runs, when the worker is gone,
 * or when a handler has ended the main thread. It shares only the page and `job_runs` with the main
 * thread. */
#ifndef CLAIMD_RUNNER_WATCHDOG_H
#define CLAIMD_RUNNER_WATCHDOG_H

#include "protocol/protocol.h"

#include <sys/types.h>

#define WATCHDOG_PERIOD_US (INT64_C(250) * 1000)

struct watchdog {
    struct runner_page *page;
    pid_t parent;
    pid_t self;
    _Atomic bool job_runs;
};

/* *w must live as long as the process. */
enum status watchdog_start(struct watchdog *w, struct runner_page *page, pid_t parent,
                           struct err *err) MUST_USE;

/* True if kill_at has passed. */
bool watchdog_time_is_up(const struct runner_page *page, int64_t now_us);

#endif
