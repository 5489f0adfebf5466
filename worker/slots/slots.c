/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/slots/slots.h"

#include "worker/slots/cpus.h"

enum status slots_open(struct slots *s, const struct slot_options *options, size_t count,
                       struct err *err)
{
    size_t wanted = count > 0 ? count : cpus_allowed("", uv_available_parallelism());
    wanted = wanted < SLOTS_MAX ? wanted : SLOTS_MAX;
    for (size_t i = 0; i < wanted; i++) {
        enum status st = slot_open(options, &s->list[i], err);
        if (st != STATUS_OK) {
            return st;
        }
        s->count++;
    }
    return STATUS_OK;
}

void slots_close(struct slots *s)
{
    for (size_t i = 0; i < s->count; i++) {
        slot_close(s->list[i]);
    }
    s->count = 0;
}

void slots_set_recycling(struct slots *s, int jobs_max, int64_t age_us)
{
    for (size_t i = 0; i < s->count; i++) {
        slot_set_recycling(s->list[i], jobs_max, age_us);
    }
}

size_t slots_index(const struct slots *s, const struct slot *slot)
{
    size_t i = 0;
    while (i < s->count && s->list[i] != slot) {
        i++;
    }
    return i;
}

size_t slots_busy(const struct slots *s)
{
    size_t busy = 0;
    for (size_t i = 0; i < s->count; i++) {
        busy += slot_state(s->list[i]) == SLOT_BUSY ? 1U : 0U;
    }
    return busy;
}

const struct usage *slots_usage(struct slots *s)
{
    pid_t pids[SLOTS_MAX];
    for (size_t i = 0; i < s->count; i++) {
        pids[i] = slot_state(s->list[i]) == SLOT_EMPTY ? 0 : slot_pid(s->list[i]);
    }
    usage_collect(&s->usage, pids, s->count);
    return &s->usage;
}
