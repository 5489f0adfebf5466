/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/rescuer.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/probe.h"
#include "base/recorder.h"
#include "base/timer.h"
#include "model/hint.h"
#include "scheduler/rescue_queue.h"

#include <assert.h>
#include <stdio.h>

#define WALK_ROWS 10000 /* open jobs per page: takes some ms */
#define SWEPT_MAX 64
/* delay × retry_us before a job that was refused alone is tried again */
#define UNRECORDABLE_RETRIES 40

/* A hint with its own copies of the texts: the result that held them is gone when the hint is
 * pushed. */
struct moved_hint {
    struct hint hint;
    char queue[JOB_NAME_MAX + 1];
    char kind[JOB_NAME_MAX + 1];
};

/* The round in progress: lock, move, release, push. */
struct round {
    bool is_active;
    struct rescue_queue_item items[RESCUE_ROUND_MAX];
    size_t index[RESCUE_ROUND_MAX]; /* of the item, in `locks` */
    size_t count;
    struct redlock_batch *locks;
    char keys[RESCUE_ROUND_MAX][HINT_KEY_MAX];
    /* of the moved jobs, and of those that the moves have freed */
    struct moved_hint hints[2 * RESCUE_ROUND_MAX];
    size_t hint_count;
};

struct rescuer {
    struct rescuer_options options;
    struct rescue_queue load;
    struct round round;
    /* below RESCUE_ROUND_MAX while searching for a job that PostgreSQL refuses to move */
    size_t round_max;
    struct rescuer_counters counters;
    uv_timer_t timer;
    int64_t walk_after_id;
    int64_t walk_every_us; /* interval of the walks that begin without a death */
    int64_t walked_us;     /* BOOTTIME of the last such walk */
    bool is_walking;
    bool is_walk_asked;
    bool is_marking;
    bool is_pulling;
    struct complaint complaint;
    bool is_stopped; /* requests in flight end; nothing new begins */
};

static void round_begin(struct rescuer *r);
static void walk_begin(struct rescuer *r);

static void on_timer(uv_timer_t *timer)
{
    struct rescuer *r = timer->data;
    if (r->is_walk_asked) {
        walk_begin(r);
    }
    round_begin(r);
}

static void wake_at(struct rescuer *r, int64_t at_us)
{
    int64_t wait_us = at_us - clock_boot_us();
    timer_start(&r->timer, on_timer, wait_us > 0 ? (uint64_t)(wait_us / US_PER_MS) + 1 : 0, 0);
}

/* ---- a round ---- */

static void put_back_for(struct rescuer *r, const struct rescue_queue_item *item, int64_t wait_us)
{
    struct rescue_queue_item later = *item;
    later.at_us = clock_boot_us() + wait_us;
    if (!r->is_stopped) {
        rescue_queue_add(&r->load, &later);
    }
}

static void put_back(struct rescuer *r, const struct rescue_queue_item *item)
{
    put_back_for(r, item, r->options.retry_us);
}

/* A round is one transaction: one job that can't be recorded (because of an operator's constraint
 * or trigger, or a damaged page) must not keep the others from moving, so the round is halved. */
static void put_back_refused(struct rescuer *r, enum status st)
{
    struct round *round = &r->round;
    bool may_be_one = st == STATUS_INVALID || st == STATUS_INTERNAL;
    bool is_alone = may_be_one && round->count == 1;
    if (may_be_one) {
        r->round_max = round->count > 1 ? round->count / 2 : RESCUE_ROUND_MAX;
    }
    for (size_t i = 0; i < round->count; i++) {
        put_back_for(r, &round->items[i],
                     is_alone ? UNRECORDABLE_RETRIES * r->options.retry_us : r->options.retry_us);
    }
}

static void round_end(struct rescuer *r)
{
    r->round.is_active = false;
    round_begin(r);
}

static void on_pushed(void *ctx, enum status st, int64_t added)
{
    struct rescuer *r = ctx;
    (void)added;
    if (st != STATUS_OK) {
        feeder_full_pass(r->options.feeder); /* the rows are behind the cursors */
    }
}

/* Pushes the hints after the locks are released: a worker would drop a hint that it pops while we
 * hold the lease. */
static void on_flushed(void *ctx)
{
    struct rescuer *r = ctx;
    struct hint list[2 * RESCUE_ROUND_MAX];
    size_t count = 0;
    probe("R2");
    for (size_t i = 0; i < r->round.hint_count; i++) {
        struct moved_hint *m = &r->round.hints[i];
        list[count] = m->hint;
        if (feeder_route(r->options.feeder, m->queue, m->kind, &list[count])) {
            count++;
        }
    }
    struct err err = {0};
    count = SEEDED_BUG(15) ? 0 : count;
    if (count > 0 && hints_push(r->options.hints, list, count, on_pushed, r, &err) != STATUS_OK) {
        log_debug("hints_left", LOG_TEXT("err", err.msg));
        feeder_full_pass(r->options.feeder);
    }
    round_end(r);
}

static void round_unlock(struct rescuer *r)
{
    for (size_t i = 0; i < r->round.count; i++) {
        if (SEEDED_BUG(3) && r->round.index[i] == SIZE_MAX) {
            continue;
        }
        /* a worker that pops the hint finds the lock held and drops the hint */
        if (SEEDED_BUG(6)) {
            redlock_batch_drop(r->round.locks, r->round.index[i]);
        } else {
            redlock_batch_release(r->round.locks, r->round.index[i]);
        }
    }
    if (redlock_async_flush(r->options.lock, on_flushed, r, NULL) != 0) {
        feeder_full_pass(r->options.feeder); /* the jobs got no hints */
        round_end(r);
    }
}

static void take_moved(struct round *round, const struct rescue_moved *m)
{
    struct moved_hint *h = &round->hints[round->hint_count++];
    /* The job was popped before, so it comes first. */
    h->hint = (struct hint){.id = m->id, .score = hint_score(m->priority, 0)};
    (void)snprintf(h->queue, sizeof h->queue, "%s", m->queue);
    (void)snprintf(h->kind, sizeof h->kind, "%s", m->kind);
}

static void put_back_id(struct rescuer *r, int64_t id)
{
    for (size_t i = 0; i < r->round.count; i++) {
        if (r->round.items[i].id == id) {
            put_back(r, &r->round.items[i]);
        }
    }
}

static void on_moved(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct rescuer *r = ctx;
    struct round *round = &r->round;
    int64_t counts[RESCUE_LOCKED + 1] = {0};
    if (st == STATUS_OK) {
        log_recovered("rescue_recovered", &r->complaint);
        r->round_max = r->round_max < RESCUE_ROUND_MAX / 2 ? r->round_max * 2 : RESCUE_ROUND_MAX;
    } else {
        if (complaint_due(&r->complaint, clock_boot_us())) {
            log_warn("rescue_failed", LOG_I64("jobs", round->count), LOG_TEXT("err", err->msg),
                     LOG_TEXT("action", "trying again"));
        }
        put_back_refused(r, st);
    }
    for (int i = 0; st == STATUS_OK && i < pg_row_count(results[0]); i++) {
        struct rescue_moved m;
        rescue_moved_row(results[0], i, &m);
        record("reap", m.outcome == RESCUE_LOCKED ? "fail" : "ok", RECORD_I64("job", m.id),
               RECORD_I64("out", m.outcome));
        counts[m.outcome]++;
        if (m.outcome == RESCUE_AVAILABLE) {
            take_moved(round, &m);
        } else if (m.outcome == RESCUE_LOCKED) {
            put_back_id(r, m.id);
        }
    }
    for (int i = 0; st == STATUS_OK && i < pg_row_count(results[RESCUE_STEP_FREED]); i++) {
        struct rescue_moved m;
        rescue_freed_row(results[RESCUE_STEP_FREED], i, &m);
        take_moved(round, &m);
    }
    for (size_t i = 0; i < ARRAY_COUNT(r->counters.moved); i++) {
        r->counters.moved[i] += (uint64_t)counts[i];
    }
    if (counts[RESCUE_AVAILABLE] + counts[RESCUE_DISCARDED] + counts[RESCUE_LOST] > 0) {
        log_info("rescued", LOG_I64("jobs", counts[RESCUE_AVAILABLE]),
                 LOG_I64("discarded", counts[RESCUE_DISCARDED]),
                 LOG_I64("lost", counts[RESCUE_LOST]));
    }
    round_unlock(r);
}

/* Keeps the jobs whose locks were won. The leases of the others still stand, or too few nodes
 * answered. */
static void keep_won(struct rescuer *r, struct redlock_batch *locks)
{
    struct round *round = &r->round;
    size_t won = 0;
    for (size_t i = 0; i < round->count; i++) {
        if (redlock_batch_result(locks, i) == REDLOCK_OK) {
            round->index[won] = i;
            round->items[won++] = round->items[i];
        } else if (SEEDED_BUG(3)) {
            round->index[won] = SIZE_MAX;
            round->items[won++] = round->items[i];
        } else {
            put_back(r, &round->items[i]);
        }
    }
    round->count = won;
    round->locks = locks;
}

static void on_locked(void *ctx, struct redlock_batch *locks)
{
    struct rescuer *r = ctx;
    struct round *round = &r->round;
    keep_won(r, locks);
    if (round->count == 0) {
        round_end(r);
        return;
    }
    probe("R1");
    struct rescue_found jobs[RESCUE_ROUND_MAX];
    for (size_t i = 0; i < round->count; i++) {
        const struct rescue_queue_item *item = &round->items[i];
        jobs[i] =
            (struct rescue_found){.id = item->id, .fence = item->fence, .worker = item->worker};
        record("reap", "inv", RECORD_I64("job", item->id), RECORD_I64("f", item->fence));
    }
    if (r->is_stopped ||
        rescue_store_move(r->options.pg, jobs, round->count, on_moved, r, NULL) != STATUS_OK) {
        for (size_t i = 0; i < round->count; i++) {
            put_back(r, &round->items[i]);
        }
        round_unlock(r);
    }
}

static void on_swept(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    (void)ctx;
    (void)st; /* if it failed, the next cluster poll names them again */
    (void)results;
    (void)err;
}

static void sweep(struct rescuer *r)
{
    struct rescue_queue_worker swept[SWEPT_MAX];
    const char *ids[SWEPT_MAX];
    size_t count = rescue_queue_take_swept(&r->load, swept, SWEPT_MAX);
    for (size_t i = 0; i < count; i++) {
        ids[i] = swept[i].id;
    }
    struct err err = {0};
    if (count > 0 &&
        rescue_store_swept(r->options.pg, ids, count, on_swept, r, &err) != STATUS_OK) {
        log_debug("sweep_left", LOG_TEXT("err", err.msg)); /* as in on_swept() */
    }
}

static void round_lock(struct rescuer *r)
{
    struct round *round = &r->round;
    static_assert(RESCUE_ROUND_MAX <= REDLOCK_KEYS_MAX, "one acquisition");
    struct redlock_async_key keys[RESCUE_ROUND_MAX];
    for (size_t i = 0; i < round->count; i++) {
        size_t len = job_lock_key(round->keys[i], r->options.prefix, round->items[i].id);
        keys[i] = (struct redlock_async_key){.bytes = round->keys[i], .len = len};
    }
    round->is_active = true;
    round->hint_count = 0;
    const struct redlock_async_request request = {
        .keys = keys, .count = round->count, .done = on_locked, .ctx = r};
    if (redlock_async_acquire(r->options.lock, &request, NULL) != 0) {
        round->is_active = false;
        for (size_t i = 0; i < round->count; i++) {
            put_back(r, &round->items[i]);
        }
        wake_at(r, rescue_queue_next_us(&r->load));
    }
}

static void round_begin(struct rescuer *r)
{
    struct round *round = &r->round;
    if (round->is_active || r->is_stopped) {
        return;
    }
    round->count = rescue_queue_take(&r->load, clock_boot_us(), round->items, r->round_max);
    if (round->count > 0) {
        round_lock(r);
    } else if (r->load.item_count > 0) {
        wake_at(r, rescue_queue_next_us(&r->load));
    } else if (!r->is_walking) {
        sweep(r);
    }
}

/* ---- the walk ---- */

static void walk_page(struct rescuer *r);

static void walk_fail(struct rescuer *r)
{
    r->is_walking = false;
    rescue_queue_walk_fail(&r->load);
    if (!r->is_stopped) {
        r->is_walk_asked = true;
        wake_at(r, clock_boot_us() + r->options.retry_us);
    }
}

static void take_found(struct rescuer *r, const struct rescue_found *found)
{
    const struct rescue_queue_item item = {
        .id = found->id, .fence = found->fence, .worker = found->worker};
    if (found->why == RESCUE_DEAD) {
        rescue_queue_add(&r->load, &item);
    } else if (found->why == RESCUE_NOT_HELD) {
        rescue_queue_add_doubt(&r->load, &item, clock_boot_us(), r->options.doubt_us);
    }
}

static void on_page(void *ctx, enum status st, const struct pg_result *const *results,
                    const struct err *err)
{
    struct rescuer *r = ctx;
    (void)err;
    if (st != STATUS_OK || r->is_stopped) {
        walk_fail(r);
        return;
    }
    struct rescue_found page = {0};
    for (int i = 0; i < pg_row_count(results[0]); i++) {
        struct rescue_found found;
        rescue_found_row(results[0], i, &found);
        if (found.why == RESCUE_PAGE) {
            page = found;
        }
        take_found(r, &found);
    }
    if (page.fence >= WALK_ROWS) {
        r->walk_after_id = page.id;
        walk_page(r);
    } else {
        r->is_walking = false;
        rescue_queue_walk_end(&r->load);
        if (r->is_walk_asked) {
            walk_begin(r);
        }
    }
    round_begin(r);
}

static void walk_page(struct rescuer *r)
{
    if (rescue_store_walk(r->options.pg, r->walk_after_id, WALK_ROWS, r->options.held_after_us,
                          on_page, r, NULL) != STATUS_OK) {
        walk_fail(r);
    }
}

static void walk_begin(struct rescuer *r)
{
    r->is_walk_asked = r->is_walking;
    if (r->is_walking) {
        return;
    }
    r->is_walking = true;
    r->walk_after_id = 0;
    rescue_queue_walk_begin(&r->load);
    walk_page(r);
}

/* ---- dead workers ---- */

/* Begins the rescue of a dead worker; does nothing if that is known. */
static void rescue_worker(struct rescuer *r, const char *worker_id)
{
    if (!r->is_stopped && rescue_queue_add_worker(&r->load, worker_id)) {
        walk_begin(r);
    }
}

static void on_marked(void *ctx, enum status st, const struct pg_result *const *results,
                      const struct err *err)
{
    struct rescuer *r = ctx;
    (void)err;
    r->is_marking = false;
    for (int i = 0; st == STATUS_OK && i < pg_row_count(results[0]); i++) {
        struct rescue_marked m;
        rescue_marked_row(results[0], i, &m);
        record("dead", "ok", RECORD_TEXT("worker", m.worker_id));
        r->counters.workers_dead++;
        log_warn("worker_dead", LOG_TEXT("worker", m.worker_id), LOG_TEXT("host", m.host),
                 LOG_I64("silent_ms", m.silent_ms));
        hints_forget_sleeper(r->options.hints, m.worker_id);
        rescue_worker(r, m.worker_id);
    }
}

static void mark_dead(struct rescuer *r, const char *const *worker_ids, size_t count)
{
    if (!r->is_marking && count > 0) {
        r->is_marking = rescue_store_mark_dead(r->options.pg, worker_ids, count, on_marked, r,
                                               NULL) == STATUS_OK;
    }
}

static void on_pulled(void *ctx, enum status st, const struct pg_result *const *results,
                      const struct err *err)
{
    struct rescuer *r = ctx;
    (void)st; /* the next cluster poll requests it again */
    (void)results;
    (void)err;
    r->is_pulling = false;
}

static void pull_heartbeats(struct rescuer *r)
{
    if (!r->is_pulling) {
        r->is_pulling =
            rescue_store_pull_heartbeats(r->options.pg, on_pulled, r, NULL) == STATUS_OK;
    }
}

/* ---- leading ---- */

static void on_polled(void *ctx, const struct cluster_view *view)
{
    struct rescuer *r = ctx;
    for (size_t i = 0; i < view->dead_count; i++) {
        rescue_worker(r, view->dead[i]);
    }
    mark_dead(r, view->stale, view->stale_count);
    if (view->is_clock_behind) {
        pull_heartbeats(r);
    }
    int64_t now_us = clock_boot_us();
    if (now_us - r->walked_us >= r->walk_every_us) {
        r->walked_us = now_us;
        walk_begin(r);
    }
}

static void on_reload(void *ctx, const struct config *config)
{
    struct rescuer *r = ctx;
    r->walk_every_us = config->scheduler.full_pass_us;
}

static enum status on_lead(const struct service_env *env, void **ret_self, struct err *err)
{
    struct rescuer *r = env->rescuer;
    (void)err;
    (void)complaint_end(&r->complaint); /* the event leader_lost has ended it */
    r->is_stopped = false;
    r->walked_us = clock_boot_us();
    on_reload(r, env->config);
    *ret_self = r;
    return STATUS_OK;
}

static void on_stop(void *ctx)
{
    struct rescuer *r = ctx;
    r->is_stopped = true;
    r->is_walk_asked = false;
    (void)uv_timer_stop(&r->timer);
    rescue_queue_release(&r->load);
}

const struct service rescuer_service = {.failed = "rescue_failed",
                                        .start = on_lead,
                                        .polled = on_polled,
                                        .reload = on_reload,
                                        .stop = on_stop};

/* ---- opening and closing ---- */

const struct rescuer_counters *rescuer_counters(const struct rescuer *r)
{
    return &r->counters;
}

enum status rescuer_open(const struct rescuer_options *options, struct rescuer **ret,
                         struct err *err)
{
    struct rescuer *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the rescuer");
    }
    r->options = *options;
    r->round_max = RESCUE_ROUND_MAX;
    r->is_stopped = true;
    (void)uv_timer_init(options->loop, &r->timer);
    r->timer.data = r;
    *ret = r;
    return STATUS_OK;
}

static void on_closed(uv_handle_t *timer)
{
    struct rescuer *r = timer->data;
    rescue_queue_release(&r->load);
    free(r);
}

void rescuer_close(struct rescuer *r)
{
    if (r != NULL) {
        uv_close((uv_handle_t *)&r->timer, on_closed);
    }
}
