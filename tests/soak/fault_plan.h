/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a soak's faults. Every 5 s a worker or scheduler gets SIGKILL or SIGSTOP, and halfway
 * to the next fault a runner gets SIGKILL; once a Redis is emptied, and once PostgreSQL is killed.
 * The plan depends on the seed alone: the same seed gives the same faults, targets and times. */
#ifndef CLAIMD_TESTS_SOAK_FAULT_PLAN_H
#define CLAIMD_TESTS_SOAK_FAULT_PLAN_H

#include "base/rand.h"
#include "chaos/world.h"

#define FAULT_EVERY_US (5 * INT64_C(1000000))

enum fault_kind { FAULT_KILL, FAULT_STOP, FAULT_REDIS, FAULT_PG, FAULT_RUNNER };

struct fault {
    enum fault_kind kind;
    size_t target;   /* index of a host or a Redis */
    int64_t at_us;   /* since the beginning */
    int64_t away_us; /* until it is restarted or resumed */
    bool is_new;     /* restarts in a new state directory */
    size_t nth;      /* of the host's runners; counts on from the first after the last */
};

struct fault_plan {
    struct rand rand;
    struct rand runner_rand; /* separate, so that it doesn't change the other faults */
    size_t workers;
    size_t schedulers;
    int64_t count; /* drawn so far, except faults of runners */
    bool is_runners_turn;
    int64_t redis_at;
    int64_t pg_at;
    int64_t free_us[WORLD_HOSTS_MAX]; /* when a host may be struck again */
};

void fault_plan_init(struct fault_plan *p, uint64_t seed, size_t workers, size_t schedulers);
struct fault fault_plan_next(struct fault_plan *p);

#endif
