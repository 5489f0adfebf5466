/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a soak's faults: every 5 s a SIGKILL or SIGSTOP of a worker or a scheduler, and half
 * way to the next one a SIGKILL of a runner; once a Redis is emptied, once PostgreSQL is killed.
 * Drawn from the seed alone: the same seed, the same faults, targets and times. */
#ifndef CLAIMD_TESTS_SOAK_FAULT_PLAN_H
#define CLAIMD_TESTS_SOAK_FAULT_PLAN_H

#include "base/rand.h"
#include "chaos/world.h"

#define FAULT_EVERY_US (5 * INT64_C(1000000))

enum fault_kind { FAULT_KILL, FAULT_STOP, FAULT_REDIS, FAULT_PG, FAULT_RUNNER };

struct fault {
    enum fault_kind kind;
    size_t target;   /* a host, or a Redis */
    int64_t at_us;   /* since the beginning */
    int64_t away_us; /* until it is started again or goes on */
    bool is_new;     /* in a new state directory */
    size_t nth;      /* of the host's runners, from the first one again after the last */
};

struct fault_plan {
    struct rand rand;
    struct rand runner_rand; /* of its own: the others stay as they are */
    size_t workers;
    size_t schedulers;
    int64_t count; /* drawn so far, without those of runners */
    bool is_runners_turn;
    int64_t redis_at;
    int64_t pg_at;
    int64_t free_us[WORLD_HOSTS_MAX]; /* when a host may be struck again */
};

void fault_plan_init(struct fault_plan *p, uint64_t seed, size_t workers, size_t schedulers);
struct fault fault_plan_next(struct fault_plan *p);

#endif
