/* SPDX-License-Identifier: Apache-2.0
 *
 * A wall clock that a test can step: linked into a test program, or preloaded into a server. It
 * replaces functions of the C library; CLOCK_MONOTONIC and CLOCK_BOOTTIME stay unchanged. The
 * offset in microseconds is in the first 8 bytes of the file that CLOCK_SHIM_FILE names. The file
 * is mapped, so a write to it steps the clock at once. Without the variable, there is no offset. */
#include "support/clock_shim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000
#define US_PER_S 1000000

static volatile int64_t none;
static volatile int64_t *offset_us = &none;

__attribute__((constructor)) static void map_file(void)
{
    const char *path = getenv("CLOCK_SHIM_FILE");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return;
    }
    void *at = mmap(NULL, sizeof *offset_us, PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (at != MAP_FAILED) {
        offset_us = at;
    }
}

void clock_shim_step(int64_t us)
{
    none += us;
}

static int wall(struct timespec *ts)
{
    int r = (int)syscall(SYS_clock_gettime, CLOCK_REALTIME, ts);
    int64_t us = (int64_t)ts->tv_sec * US_PER_S + ts->tv_nsec / 1000 + *offset_us;
    ts->tv_sec = us / US_PER_S;
    ts->tv_nsec = us % US_PER_S * (NS_PER_S / US_PER_S);
    return r;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) {
        return wall(ts);
    }
    return (int)syscall(SYS_clock_gettime, id, ts);
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;
    (void)zone;
    int r = wall(&ts);
    *tv = (struct timeval){.tv_sec = ts.tv_sec, .tv_usec = ts.tv_nsec / 1000};
    return r;
}

time_t time(time_t *ret)
{
    struct timespec ts;
    (void)wall(&ts);
    if (ret != NULL) {
        *ret = ts.tv_sec;
    }
    return ts.tv_sec;
}
