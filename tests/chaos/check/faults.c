/* SPDX-License-Identifier: Apache-2.0
 *
 * What the nemesis did, and to whom. */
#include "check.h"

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

/* By its pid where the fault says one; else by its name, which is in the state directory:
 * "…/state-w3-1". */
bool fault_hits(const struct fault *f, const struct process *p)
{
    char part[64];
    if (f->pid != 0) {
        return f->pid == p->pid && f->from >= p->first - NS_PER_S;
    }
    (void)snprintf(part, sizeof part, "-%s-", f->target);
    bool is_named = f->target[0] != '\0' && strstr(p->state_dir, part) != NULL;
    return is_named && f->from >= p->first - NS_PER_S && f->from <= p->last + NS_PER_S;
}

/* What the world says of itself ("ended", "started") is no fault. */
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
