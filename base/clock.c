/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

int64_t clock_boot_us(void)
{
    struct timespec ts;
    if (clock_gettime(CLOCK_BOOTTIME, &ts) != 0) {
        (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* lock.A2 */
    }
    return (int64_t)ts.tv_sec * US_PER_S + ts.tv_nsec / 1000;
}

int64_t clock_wall_us(void)
{
    struct timespec ts = {0};
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * US_PER_S + ts.tv_nsec / 1000;
}

void clock_wall_text(char *ret_text, size_t size)
{
    struct timespec ts = {0};
    struct tm tm = {0};
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    (void)gmtime_r(&ts.tv_sec, &tm);
    size_t n = strftime(ret_text, size, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(ret_text + n, size - n, ".%06ldZ", ts.tv_nsec / 1000);
}
