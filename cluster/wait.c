/* SPDX-License-Identifier: Apache-2.0
 *
 * The clock and the pause of WAIT_UNTIL. */
#include "base/clock.h"
#include "cluster/servers.h"

#include <time.h>

#define STEP_NS 2000000

int64_t wait_now_us(void)
{
    return clock_boot_us();
}

void wait_step(void)
{
    const struct timespec step = {.tv_nsec = STEP_NS};
    (void)nanosleep(&step, NULL);
}
