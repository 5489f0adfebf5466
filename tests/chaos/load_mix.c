/* SPDX-License-Identifier: Apache-2.0
 *
 * Which jobs the load inserts, in which proportions. */
#include "base/rand.h"
#include "chaos/load.h"

#include <assert.h>

struct part {
    int weight;
    const char *kind;
    const char *does;
    int until;
    const char *expect;
    int ms_min;
    int ms_max;
    int pad_max;
};

/* Of 1,000 jobs. The times are scaled. */
static const struct part parts[] = {
    {440, "c_short", "done", 0, "completed", 0, 40, 0},
    {20, "c_short", "snooze", 0, "completed", 0, 40, 0},
    {10, "c_short", "cancel", 0, "cancelled", 0, 40, 0},
    {200, "c_long", "done", 0, "completed", 500, 4500, 0},
    {60, "c_retry", "retry", 3, "completed", 0, 100, 0},
    {12, "c_crash", "segv", 2, "completed", 0, 100, 0},
    {12, "c_crash", "abort", 2, "completed", 0, 100, 0},
    {12, "c_crash", "exit", 2, "completed", 0, 100, 0},
    {46, "c_fail", "fail", 0, "discarded", 0, 100, 0},
    {4, "c_retry", "far", 2, "completed", 0, 100, 0},
    {14, "c_poison", "segv", 0, "discarded", 0, 50, 0},
    {30, "c_tired", "retry", 0, "discarded", 0, 50, 0},
    {90, "c_once", "done", 0, "any", 10, 2500, 0},
    {10, "c_hang", "hang", 2, "completed", 0, 50, 0},
    {40, "c_big", "done", 0, "completed", 0, 100, 300000},
};
#define WEIGHTS 1000

static const struct part *choose(struct rand *r)
{
    int64_t at = rand_below(r, WEIGHTS);
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        at -= parts[i].weight;
        if (at < 0) {
            return &parts[i];
        }
    }
    assert(false); /* the weights are 1,000 */
    return NULL;
}

void load_draw(struct rand *r, double time_scale, int64_t n, struct task *ret)
{
    static const char *const queues[] = {"default", "default", "default", "chaos_a", "chaos_b"};
    const struct part *part = choose(r);
    int64_t ms = part->ms_min + rand_below(r, part->ms_max - part->ms_min + 1);
    *ret = (struct task){.n = n,
                         .kind = part->kind,
                         .does = part->does,
                         .expect = part->expect,
                         .until = part->until,
                         .ms = (int64_t)((double)ms * time_scale),
                         .is_deaf = rand_below(r, 2) == 0,
                         .pad_bytes = (int)rand_below(r, part->pad_max),
                         .priority = 4,
                         .queue = queues[rand_below(r, ARRAY_COUNT(queues))]};
    if (rand_below(r, 5) == 0) {
        ret->priority = (int)rand_below(r, 10);
    }
    if (rand_below(r, 5) == 0) {
        ret->share = 1 + (int)rand_below(r, 63);
    }
    if (rand_below(r, 10) == 0) {
        ret->delay_ms = (int64_t)((double)rand_below(r, 20000) * time_scale);
    }
}
