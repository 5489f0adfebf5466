/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs/jobs.h"

enum status jobs_open(struct jobs *j, const struct jobs_env *env, struct err *err)
{
    j->env = *env;
    deadlines_open(j);
    return dispatch_open(j, err);
}

void jobs_close(struct jobs *j)
{
    dispatch_close(j);
}

void jobs_tick(struct jobs *j, int64_t now_us)
{
    dispatch_take_results(j); /* also finds pages that were written over */
    deadlines_tick(j, now_us);
    dispatch_tick(j, now_us);
    run_tick(j, now_us);
    live_tick(j, now_us);
    run_stats_save_tick(j, now_us);
    cancel_tick(j, now_us);
}
