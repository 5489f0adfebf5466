/* SPDX-License-Identifier: Apache-2.0
 *
 * What may happen to a Redis. */
#include "base/clock.h"
#include "chaos/nemesis.h"
#include "chaos/redis_line.h"

#include <signal.h>
#include <stdio.h>

#define SAY_US (500 * US_PER_MS)

/* One that runs; WORLD_REDIS: none. */
static size_t some_redis(struct world *w, struct nemesis *n)
{
    size_t first = (size_t)rand_below(&n->rand, WORLD_REDIS);
    for (size_t i = 0; i < WORLD_REDIS; i++) {
        size_t at = (first + i) % WORLD_REDIS;
        if (w->redis[at].pid > 0) {
            return at;
        }
    }
    return WORLD_REDIS;
}

/* Most often one, sometimes a majority, sometimes all. */
static size_t how_many(struct nemesis *n)
{
    static const size_t sizes[] = {1, 1, 1, 1, 2, 2, 3, WORLD_REDIS};
    return sizes[rand_below(&n->rand, ARRAY_COUNT(sizes))];
}

static bool redis_empty(struct world *w, struct nemesis *n)
{
    static const int64_t away_ms[] = {0, 0, 500, 3000, 12000};
    size_t count = how_many(n);
    size_t first = (size_t)rand_below(&n->rand, WORLD_REDIS);
    int64_t ms = away_ms[rand_below(&n->rand, ARRAY_COUNT(away_ms))];
    char detail[64];
    (void)snprintf(detail, sizeof detail, "%zu, back after %lld ms", count, (long long)ms);
    nemesis_target(n, detail, "r%zu", first);
    for (size_t i = 0; i < count; i++) {
        size_t at = (first + i) % WORLD_REDIS;
        redis_server_kill(&w->redis[at]);
        w->redis_state[at].restart_us = clock_boot_us() + world_scaled(w, ms * US_PER_MS);
    }
    return true;
}

static bool flushall(struct world *w, struct nemesis *n)
{
    static const char *const words[] = {"FLUSHALL", NULL};
    struct err why = {0};
    size_t count = how_many(n);
    size_t first = some_redis(w, n);
    char detail[64];
    (void)snprintf(detail, sizeof detail, "%zu", count);
    nemesis_target(n, detail, "r%zu", first);
    bool is_done = false;
    for (size_t i = 0; i < count && first < WORLD_REDIS; i++) {
        const struct redis_server *r = &w->redis[(first + i) % WORLD_REDIS];
        is_done = redis_say(r->path, NULL, SAY_US, words, NULL, 0, &why) == STATUS_OK || is_done;
    }
    return is_done;
}

const struct nemesis_def nemesis_redis_defs[] = {
    {"redis_empty", "one, some or all Redis killed, back empty at once or later", COUNT_EMPTY,
     20000, 0, 0, redis_empty, NULL},
    {"flushall", "FLUSHALL of one, some or all Redis", COUNT_EMPTY, 45000, 0, 0, flushall, NULL},
};
const size_t nemesis_redis_count = ARRAY_COUNT(nemesis_redis_defs);
