/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/fault_plan.h"

#include "base/clock.h"

#define AGAIN_US (8 * US_PER_S) /* from a host's return until it may be struck again */
#define SCHEDULER_EVERY 6
#define NEW_EVERY 4
#define REDIS_AWAY_US (1 * US_PER_S)
#define PG_AWAY_US (US_PER_S / 2)
#define RUNNERS 1000 /* more than a worker has */

void fault_plan_init(struct fault_plan *p, uint64_t seed, size_t workers, size_t schedulers)
{
    *p = (struct fault_plan){.workers = workers, .schedulers = schedulers};
    rand_seed(&p->rand, seed);
    rand_seed(&p->runner_rand, ~seed);
    p->redis_at = 1 + rand_below(&p->rand, 3);
    p->pg_at = 4 + rand_below(&p->rand, 3);
}

/* Draws a host that has had no fault for AGAIN_US. There is one, since there are more hosts than
 * faults at a time. */
static size_t draw_host(struct fault_plan *p, int64_t at_us)
{
    bool is_scheduler = rand_below(&p->rand, SCHEDULER_EVERY) == 0;
    size_t first = is_scheduler ? 0 : p->schedulers;
    size_t count = is_scheduler ? p->schedulers : p->workers;
    size_t drawn = (size_t)rand_below(&p->rand, (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        size_t host = first + (drawn + i) % count;
        if (p->free_us[host] <= at_us) {
            return host;
        }
    }
    return first + drawn;
}

static struct fault draw_runner(struct fault_plan *p)
{
    return (struct fault){.kind = FAULT_RUNNER,
                          .at_us = p->count * FAULT_EVERY_US + FAULT_EVERY_US / 2,
                          .target = p->schedulers +
                                    (size_t)rand_below(&p->runner_rand, (int64_t)p->workers),
                          .nth = (size_t)rand_below(&p->runner_rand, RUNNERS)};
}

static struct fault draw_server_or_host(struct fault_plan *p)
{
    static const int64_t back_ms[] = {0, 1000, 4000, 14000};
    static const int64_t stop_ms[] = {2000, 6000, 9000, 12000, 15000};
    struct fault f = {.at_us = ++p->count * FAULT_EVERY_US};
    if (p->count == p->redis_at || p->count == p->pg_at) {
        bool is_redis = p->count == p->redis_at;
        f.kind = is_redis ? FAULT_REDIS : FAULT_PG;
        f.target = is_redis ? (size_t)rand_below(&p->rand, WORLD_REDIS) : 0;
        f.away_us = is_redis ? REDIS_AWAY_US : PG_AWAY_US;
        return f;
    }
    f.kind = rand_below(&p->rand, 2) == 0 ? FAULT_KILL : FAULT_STOP;
    f.target = draw_host(p, f.at_us);
    f.away_us =
        US_PER_MS * (f.kind == FAULT_KILL ? back_ms[rand_below(&p->rand, ARRAY_COUNT(back_ms))]
                                          : stop_ms[rand_below(&p->rand, ARRAY_COUNT(stop_ms))]);
    f.is_new = f.kind == FAULT_KILL && rand_below(&p->rand, NEW_EVERY) == 0;
    p->free_us[f.target] = f.at_us + f.away_us + AGAIN_US;
    return f;
}

struct fault fault_plan_next(struct fault_plan *p)
{
    p->is_runners_turn = !p->is_runners_turn;
    return p->is_runners_turn ? draw_runner(p) : draw_server_or_host(p);
}
