/* SPDX-License-Identifier: Apache-2.0
 *
 * The one place where a libuv timer is armed. Before 1.45 (Debian 12 has 1.44) a loop runs timers
 * until none is due: one that rearms itself for 0 ms, or moves the loop's clock by uv_update_time()
 * while it runs, keeps the loop from its descriptors for ever. So a timer waits for 1 ms at least,
 * by the loop's own idea of the time, that of its last poll. Hence it may fire early by the time
 * that callbacks have taken since then; code that must not be early checks the clock. */
#ifndef CLAIMD_BASE_TIMER_H
#define CLAIMD_BASE_TIMER_H

#include "base/bug.h"

#include <uv.h>

/* every_ms: 0 = once. The timer must be initialised and not closing. */
static inline void timer_start(uv_timer_t *timer, uv_timer_cb callback, uint64_t wait_ms,
                               uint64_t every_ms)
{
    (void)uv_timer_start(timer, callback, wait_ms > 0 || SEEDED_BUG(16) ? wait_ms : 1, every_ms);
}

#endif
