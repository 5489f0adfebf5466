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
    hint_return_add(worker, hint);
}

static int spare_least(void *worker)
{
    return spare_take_least(worker);
}

static void on_beat_answered(void *worker, const struct worker_beat_reply *reply)
{
    struct worker *w = worker;
    listen_take(w, reply);
    cancel_take(w, reply);
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
                                   .jobs = &w->jobs,
                                   .ctx = w,
                                   .runner_count = runner_count,
                                   .runner_is_current = runner_is_current,
                                   .replace_runner = replace_runner,
                                   .open_lock = open_lock,
                                   .put_back = put_back,
                                   .spare_least = spare_least,
                                   .answered = on_beat_answered,
                                   .fail = on_failed};
}
