/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs/run_stats.h"

#include <stddef.h>
#include <string.h>

/* 2 ^ (n/4), in units of 2 ^ -16. */
static const uint64_t quarters[] = {65536, 77936, 92682, 110218};

static size_t bucket_of(int64_t ran_us)
{
    uint64_t us = ran_us > 1 ? (uint64_t)ran_us : 1;
    unsigned power = 63U - (unsigned)__builtin_clzll(us);
    if (4 * power >= RUN_STATS_BUCKETS) {
        return RUN_STATS_BUCKETS - 1;
    }
    unsigned quarter = 3;
    while ((us << 16) < quarters[quarter] << power) {
        quarter--;
    }
    return 4 * power + quarter;
}

void run_stats_add(struct run_stats *s, int64_t ran_us, int64_t now_us)
{
    if (s->now.runs > 0 && now_us - s->now.since_us > RUN_STATS_WINDOW_US) {
        s->before = s->now;
        memset(&s->now, 0, sizeof s->now);
    }
    if (s->now.runs == 0) {
        s->now.since_us = now_us;
    }
    s->now.runs++;
    s->now.run_us += ran_us;
    s->now.buckets[bucket_of(ran_us)]++;
    s->changed_us = now_us;
}

void run_stats_sum(const struct run_stats *s, struct run_window *ret)
{
    *ret = s->now;
    if (s->before.runs == 0 || s->now.since_us - s->before.since_us > 2 * RUN_STATS_WINDOW_US) {
        return;
    }
    ret->since_us = s->before.since_us;
    ret->runs += s->before.runs;
    ret->run_us += s->before.run_us;
    for (size_t i = 0; i < RUN_STATS_BUCKETS; i++) {
        ret->buckets[i] += s->before.buckets[i];
    }
}
