/* SPDX-License-Identifier: Apache-2.0
 *
 * The faults of the nemesis, and their targets. */
#include "check.h"

#define TELLING_NS (100 * NS_PER_MS) /* the kit notices an end before it records its kill */

#define LOST_TAIL_NS (60 * NS_PER_S)

bool fault_is(const struct fault *f, const char *word)
{
    return strstr(f->what, word) != NULL;
}

const struct fault *fault_in(const struct run *r, const char *word, int64_t from, int64_t to)
{
    for (size_t i = 0; i < r->fault_count; i++) {
        const struct fault *f = &r->faults[i];
        if (fault_is(f, word) && f->from <= to && f->to >= from) {
            return f;
        }
    }
    return NULL;
}

bool commit_may_be_lost(const struct run *r, int64_t from, int64_t to)
{
    return fault_in(r, "failover_async", from, to + LOST_TAIL_NS) != NULL;
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
    static const char *const words[] = {"evict", "redis_clock", "host_clock", "wrong", "plant"};
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (fault_in(r, words[i], t - 2 * r->c.ttl, t) != NULL) {
            return true;
        }
    }
    return false;
}

/* The world's own reports ("ended", "started") are not faults. */
static bool is_fault(const struct fault *f)
{
    static const char *const words[] = {"ended", "failed", "started", "process"};
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (strcmp(f->what, words[i]) == 0) {
            return false;
        }
    }
    return true;
}

int64_t fault_last_end(const struct run *r)
{
    int64_t last = 0;
    for (size_t i = 0; i < r->fault_count; i++) {
        const struct fault *f = &r->faults[i];
        int64_t end = f->to == NEVER ? f->from : f->to;
        last = is_fault(f) && end > last ? end : last;
    }
    return last;
}
