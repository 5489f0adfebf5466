/* SPDX-License-Identifier: Apache-2.0
 *
 * The only place that arms a libuv timer. Before 1.45 (Debian 12 has 1.44), a loop runs timers
 * until none is due. A timer that rearms itself for 0 ms, or that advances the loop's clock with
 * uv_update_time() while it runs, would thus keep the loop from its descriptors forever. Therefore
 * a timer waits at least 1 ms on the loop's cached clock, which was updated at the last poll. So it
 * may fire early, by the time that callbacks have taken since that poll; code that must not run
 * early checks the clock. */
#ifndef CLAIMD_BASE_TIMER_H
#define CLAIMD_BASE_TIMER_H

#include "base/bug.h"
#include "base/err.h"

#include <uv.h>

/* Initialises a timer of `part`, which the error names. */
static inline enum status timer_open(uv_loop_t *loop, uv_timer_t *timer, void *data,
                                     const char *part, struct err *err)
{
    timer->data = data;
    int failed = uv_timer_init(loop, timer);
    if (failed != 0) {
        return err_fail(err, STATUS_INTERNAL, "%s timer: %s", part, uv_strerror(failed));
    }
    return STATUS_OK;
}

/* Arms the timer, which must be initialised and not closing; every_ms 0 = once. */
static inline void timer_start(uv_timer_t *timer, uv_timer_cb callback, uint64_t wait_ms,
                               uint64_t every_ms)
{
    (void)uv_timer_start(timer, callback, wait_ms > 0 || SEEDED_BUG(16) ? wait_ms : 1, every_ms);
}

#endif
