/* SPDX-License-Identifier: Apache-2.0
 *
 * All slots of a worker. Each index keeps its slot for the worker's life. */
#ifndef CLAIMD_WORKER_SLOTS_SLOTS_H
#define CLAIMD_WORKER_SLOTS_SLOTS_H

#include "worker/slots/slot.h"
#include "worker/slots/usage.h"

#define SLOTS_MAX USAGE_RUNNERS_MAX

struct slots {
    struct slot *list[SLOTS_MAX];
    size_t count;
    struct usage usage;    /* private, as is the next */
    int64_t orphans_at_us; /* when to look for orphans next */
};

/* Opens up to SLOTS_MAX slots, whose runners start at once; 0 = one for each CPU that this process
 * may use. If it fails, the slots that are open stay until the process ends. */
enum status slots_open(struct slots *s, const struct slot_options *options, size_t count,
                       struct err *err) MUST_USE;
void slots_close(struct slots *s);

void slots_set_recycling(struct slots *s, int jobs_max, int64_t age_us);

/* Returns the slot's index; `count` if it is none of these. */
size_t slots_index(const struct slots *s, const struct slot *slot);
size_t slots_busy(const struct slots *s);

/* Measures what the runners use (slots/usage.h); borrowed. */
const struct usage *slots_usage(struct slots *s);

#endif
