/* SPDX-License-Identifier: Apache-2.0
 *
 * The faults of the nemesis, and their targets. */
#include "check.h"

#define TELLING_NS (100 * NS_PER_MS) /* the kit notices an end before it records its kill */

#define LOST_TAIL_NS (60 * NS_PER_S)

bool fault_has(const struct fault *f, unsigned traits)
{
    return (f->traits & traits) != 0;
}

const struct fault *fault_in(const struct run *r, unsigned traits, int64_t from, int64_t to)
{
    for (size_t i = 0; i < r->fault_count; i++) {
        const struct fault *f = &r->faults[i];
        if (fault_has(f, traits) && f->from <= to && f->to >= from) {
            return f;
        }
    }
    return NULL;
}

bool commit_may_be_lost(const struct run *r, int64_t from, int64_t to)
{
    return fault_in(r, TRAIT_LOSES_COMMITS, from, to + LOST_TAIL_NS) != NULL;
}

static bool is_its_time(const struct fault *f, const struct process *p)
{
    bool is_early = f->from < p->first;
    bool is_late = p->ended != NEVER && f->from > p->ended + TELLING_NS;
    return !is_early && !is_late;
}

/* Without the kit's record of ends, the name is found in the state directory: "…/state-w3-1". */
bool fault_hits(const struct fault *f, const struct process *p)
{
    char part[64];
    if (p->target[0] != '\0' || f->target[0] == '\0') {
        return f->target[0] != '\0' && f->target == p->target && is_its_time(f, p);
    }
    (void)snprintf(part, sizeof part, "-%s-", f->target);
    return strstr(p->state_dir, part) != NULL && is_its_time(f, p);
}

bool fault_is_about(const struct fault *f, const struct process *p)
{
    size_t len = strlen(p->target);
    bool is_inside = len > 0 && strncmp(f->target, p->target, len) == 0 && f->target[len] == '/';
    return fault_hits(f, p) || (is_inside && is_its_time(f, p));
}

bool fault_is_beyond_locks(const struct run *r, int64_t t)
{
    return fault_in(r, TRAIT_BEYOND_LOCKS, t - 2 * r->c.ttl, t) != NULL;
}

int64_t fault_last_end(const struct run *r)
{
    int64_t last = 0;
    for (size_t i = 0; i < r->fault_count; i++) {
        const struct fault *f = &r->faults[i];
        int64_t end = f->to == NEVER ? f->from : f->to;
        last = !fault_has(f, TRAIT_REPORT) && end > last ? end : last;
    }
    return last;
}
