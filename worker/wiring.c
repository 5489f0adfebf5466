/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/wiring.h"

#include "worker/worker.h"

/* ---- membership/ ---- */

static size_t runner_count(void *worker)
{
    const struct worker *w = worker;
    return w->slots.count;
}

static bool runner_is_current(void *worker, size_t runner)
{
    const struct worker *w = worker;
    return slot_is_current(w->slots.list[runner]);
}

static void replace_runner(void *worker, size_t runner)
{
    struct worker *w = worker;
    slot_replace(w->slots.list[runner]);
}

static enum status open_lock(void *worker, int64_t ttl_max_us, struct err *err)
{
    return worker_open_lock(worker, ttl_max_us, err);
}

static void put_back(void *worker, const struct hint *hint)
{
    struct worker *w = worker;
    hint_return_add(&w->intake, hint);
}

static int spare_least(void *worker)
{
    return spare_take_least(worker);
}

static void on_heartbeat_answered(void *worker, const struct worker_heartbeat_reply *reply)
{
    struct worker *w = worker;
    listen_take(&w->intake, reply);
    cancel_take(&w->jobs, reply);
    worker_take_asked(w, reply->asked);
}

static void on_failed(void *worker, int exit_code, const char *why)
{
    worker_fail(worker, exit_code, why);
}

struct membership_env wiring_membership(struct worker *w)
{
    return (struct membership_env){.servers = &w->servers,
                                   .standing = &w->standing,
                                   .due = &w->due,
                                   .active = &w->active,
                                   .ctx = w,
                                   .runner_count = runner_count,
                                   .runner_is_current = runner_is_current,
                                   .replace_runner = replace_runner,
                                   .open_lock = open_lock,
                                   .put_back = put_back,
                                   .spare_least = spare_least,
                                   .answered = on_heartbeat_answered,
                                   .fail = on_failed};
}

/* ---- jobs/ ---- */

struct jobs_env wiring_jobs(struct worker *w)
{
    return (struct jobs_env){.servers = &w->servers,
                             .standing = &w->standing,
                             .due = &w->due,
                             .active = &w->active,
                             .lengths = &w->lengths,
                             .slots = &w->slots,
                             .kinds = &w->membership.kinds,
                             .metrics = &w->metrics,
                             .rand = &w->rand};
}

/* ---- intake/ ---- */

static void count_runners(void *worker, int64_t now_us, struct capacity_facts *f)
{
    const struct worker *w = worker;
    dispatch_count_runners(&w->jobs, now_us, f);
}

struct intake_env wiring_intake(struct worker *w)
{
    return (struct intake_env){.servers = &w->servers,
                               .standing = &w->standing,
                               .due = &w->due,
                               .active = &w->active,
                               .lengths = &w->lengths,
                               .kinds = &w->membership.kinds,
                               .metrics = &w->metrics,
                               .rand = &w->rand,
                               .ctx = w,
                               .count_runners = count_runners};
}

/* ---- slots/ ---- */

static void on_hello(void *worker, struct slot *slot, const char *json, size_t len)
{
    struct worker *w = worker;
    kinds_take_hello(&w->membership, slots_index(&w->slots, slot), slot_hellos(slot), json, len);
}

static void on_load_died(void *worker, struct slot *slot, const char *file, const char *text,
                         bool is_hung)
{
    struct worker *w = worker;
    (void)slot;
    kinds_load_died(&w->membership, file, text, is_hung);
}

const struct slot_events wiring_slot_events = {.hello = on_hello,
                                               .room = run_on_room,
                                               .ended = run_on_ended,
                                               .returned = run_on_returned,
                                               .died = run_on_died,
                                               .load_died = on_load_died};
