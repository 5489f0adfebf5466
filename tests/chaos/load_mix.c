/* SPDX-License-Identifier: Apache-2.0
 *
 * The jobs that the load inserts, and their proportions. */
#include "base/rand.h"
#include "chaos/load.h"

#include <assert.h>

/* Handled by the plugin, by programs that serve, or by programs started for each job
 * (programs.h). */
enum handled_by { PLUGIN, SERVE, ONCE };
#define KINDS(name)                                                   \
    {                                                                 \
        [PLUGIN] = "c_" name, [SERVE] = "p_" name, [ONCE] = "o_" name \
    }

struct part {
    int weight;
    const char *kinds[3];
    const char *does;
    int until;
    const char *expect;
    int ms_min;
    int ms_max;
    int pad_max;
};

/* Parts out of 1,000 jobs. The times are scaled. */
static const struct part parts[] = {
    {440, KINDS("short"), "done", 0, "completed", 0, 40, 0},
    {20, KINDS("short"), "snooze", 0, "completed", 0, 40, 0},
    {10, KINDS("short"), "cancel", 0, "cancelled", 0, 40, 0},
    {200, KINDS("long"), "done", 0, "completed", 500, 4500, 0},
    {60, KINDS("retry"), "retry", 3, "completed", 0, 100, 0},
    {12, KINDS("crash"), "segv", 2, "completed", 0, 100, 0},
    {12, KINDS("crash"), "abort", 2, "completed", 0, 100, 0},
    {12, KINDS("crash"), "exit", 2, "completed", 0, 100, 0},
    {46, KINDS("fail"), "fail", 0, "discarded", 0, 100, 0},
    {4, KINDS("retry"), "far", 2, "completed", 0, 100, 0},
    {14, KINDS("poison"), "segv", 0, "discarded", 0, 50, 0},
    {30, KINDS("tired"), "retry", 0, "discarded", 0, 50, 0},
    {90, KINDS("once"), "done", 0, "any", 10, 2500, 0},
    {10, KINDS("hang"), "hang", 2, "completed", 0, 50, 0},
    {40, KINDS("big"), "done", 0, "completed", 0, 100, 300000},
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
    assert(false); /* the weights add up to 1,000 */
    return NULL;
}

void load_draw(struct rand *r, const struct options *options, int64_t n, struct task *ret)
{
    static const enum handled_by handlers[] = {PLUGIN, PLUGIN, SERVE, ONCE};
    static const char *const queues[] = {"default", "default", "default", "chaos_a", "chaos_b"};
    const struct part *part = choose(r);
    int64_t ms = part->ms_min + rand_below(r, part->ms_max - part->ms_min + 1);
    enum handled_by by = options->has_programs ? handlers[rand_below(r, 4)] : PLUGIN;
    *ret = (struct task){.n = n,
                         .kind = part->kinds[by],
                         .does = part->does,
                         .expect = part->expect,
                         .until = part->until,
                         .ms = (int64_t)((double)ms * options->time_scale),
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
        ret->delay_ms = (int64_t)((double)rand_below(r, 20000) * options->time_scale);
    }
}
