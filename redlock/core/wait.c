/* SPDX-License-Identifier: Apache-2.0
 *
 * Repeats tries, some times or until a deadline (lock.A14). Waiters of one client for the same keys
 * take turns, and only the first of them sends anything (wait_queue.c). A waiter that was refused
 * joins the line of all clients (line.c); a client that may not join lines polls. */
#include "redlock/core/wait.h"

#include "base/clock.h"
#include "redlock/core/error.h"

#include <errno.h>

#define POLL_MIN_US (250 * US_PER_MS)
#define POLL_MAX_US US_PER_S

static void on_acquired(void *ctx, struct redlock_batch *batch);

static bool is_waiting(const struct redlock_wait *w)
{
    return w->options.deadline_us > 0;
}

/* ---- one waiter ---- */

/* Makes a waiter; its keys, held batches, views of the nodes, and the keys' bytes are stored behind
 * it, in one allocation. */
static struct redlock_wait *wait_new(struct redlock_async *lock,
                                     const struct redlock_async_request *request,
                                     const struct redlock_wait_options *options, size_t bytes)
{
    struct waits *waits = lock->waits;
    if (heap_reserve(&waits->due, waits->count + 1, NULL) != STATUS_OK) {
        return NULL;
    }
    size_t keys_size = request->count * sizeof request->keys[0];
    size_t held_size = request->count * sizeof(struct redlock_batch *);
    size_t views_size = lock->options.node_count * sizeof(struct line_view);
    struct redlock_wait *w =
        pool_take(&lock->pool, sizeof *w + keys_size + held_size + views_size + bytes);
    if (w == NULL) {
        return NULL;
    }
    struct redlock_async_key *keys = (struct redlock_async_key *)(w + 1);
    struct redlock_batch **held = (struct redlock_batch **)(keys + request->count);
    struct line_view *views = (struct line_view *)(held + request->count);
    char *text = (char *)views + views_size;
    for (size_t i = 0; i < request->count; i++) {
        keys[i] = request->keys[i];
        keys[i].bytes = text;
        memcpy(text, request->keys[i].bytes, keys[i].len);
        text += keys[i].len;
    }
    w->lock = lock;
    w->place.held = held;
    w->place.views = views;
    w->request = *request;
    w->request.keys = keys;
    w->request.done = on_acquired;
    w->request.ctx = w;
    w->wants_holder_ttl = request->wants_holder_ttl;
    w->options = *options;
    w->result = REDLOCK_HELD;
    w->at_us = INT64_MAX;
    heap_item_init(&w->due, w);
    w->next = waits->all;
    if (w->next != NULL) {
        w->next->prev = w;
    }
    waits->all = w;
    waits->count++;
    return w;
}

static void unlink_wait(struct redlock_wait *w)
{
    *(w->prev != NULL ? &w->prev->next : &w->lock->waits->all) = w->next;
    if (w->next != NULL) {
        w->next->prev = w->prev;
    }
    w->prev = NULL;
    w->next = NULL;
    w->is_over = true;
    w->lock->waits->count--;
    heap_remove(&w->lock->waits->due, &w->due);
    line_leave(w);
    queue_leave(w);
}

static void keep_last(struct redlock_wait *w, struct redlock_batch *batch)
{
    if (w->batch != NULL) {
        batch_unref(w->batch);
    }
    w->batch = batch;
    if (batch != NULL) {
        batch_ref(batch);
    }
}

/* Reports the result; the owner must not use the waiter afterwards. */
static void report(struct redlock_wait *w)
{
    w->is_reported = true;
    w->options.done(w->options.ctx, w->result, w->tries, w->batch);
    keep_last(w, NULL);
    if (!w->is_trying) {
        pool_give(&w->lock->pool, w);
    }
}

/* Ends the waiter; the loop will report it. */
static void end_soon(struct redlock_wait *w, enum redlock_result result)
{
    struct waits *waits = w->lock->waits;
    unlink_wait(w);
    w->result = result;
    *waits->over_end = w;
    waits->over_end = &w->next;
    core_soon(w->lock);
}

static void report_over(struct waits *waits)
{
    while (waits->over != NULL) {
        struct redlock_wait *w = waits->over;
        waits->over = w->next;
        if (waits->over == NULL) {
            waits->over_end = &waits->over;
        }
        report(w);
    }
}

/* ---- tries ---- */

/* Plans when to look at the waiter next. A try in flight ends within τ anyway, even past the
 * deadline. */
static void plan(struct redlock_wait *w)
{
    int64_t wake_us = w->at_us;
    if (is_waiting(w) && w->options.deadline_us < wake_us) {
        wake_us = w->options.deadline_us;
    }
    if (w->is_trying || w->is_over || wake_us == INT64_MAX) {
        heap_remove(&w->lock->waits->due, &w->due);
        return;
    }
    heap_put(&w->lock->waits->due, &w->due, wake_us);
    core_wake_at(w->lock, wake_us);
}

static void set_trying(struct redlock_wait *w, bool is_trying)
{
    w->is_trying = is_trying;
    plan(w);
}

static int try_now(struct redlock_wait *w, struct redlock_error *ret_error)
{
    w->at_us = INT64_MAX;
    if (w->queue != NULL && !w->is_in_line && line_is_usable(w->lock) && line_is_hot(w)) {
        (void)line_join(w); /* if memory runs out, it tries as if the key were not hot */
    }
    w->request.wants_holder_ttl = w->wants_holder_ttl || (w->queue != NULL && w->tries > 0);
    int r = w->is_in_line ? line_ask(w, ret_error)
                          : redlock_async_acquire(w->lock, &w->request, ret_error);
    if (r == 0) {
        w->tries++;
        set_trying(w, true);
    }
    return r;
}

void wait_plan(struct redlock_wait *w, int64_t at_us)
{
    w->at_us = at_us;
    plan(w);
}

void wait_plan_not_later(struct redlock_wait *w, int64_t at_us)
{
    if (at_us < w->at_us) {
        wait_plan(w, at_us);
    }
}

void wait_be_due(struct redlock_wait *w)
{
    wait_plan(w, clock_boot_us());
    w->lock->waits->is_any_due = true;
    core_soon(w->lock);
}

static struct retry_terms retry_terms_for(const struct redlock_wait *w)
{
    return retry_terms_of(w->options.retry_base_us, w->options.retry_cap_us,
                          w->lock->counters.latency);
}

/* Plans the next try. `k`: the key that was not won; NULL = no try was even made. A refusal by
 * several others at once is treated like a split, since none of them may have the key. */
static void pause_before_retry(struct redlock_wait *w, const struct key *k, int64_t now_us)
{
    struct redlock_async *lock = w->lock;
    const struct retry_terms terms = retry_terms_for(w);
    bool is_split = w->result == REDLOCK_SPLIT || (w->result == REDLOCK_HELD && w->queue != NULL);
    size_t votes = k != NULL ? (size_t)__builtin_popcount(k->ok_nodes) : 0;
    int64_t pause_us = retry_delay_us(&terms, is_split ? REDLOCK_SPLIT : w->result, w->failures++,
                                      lock->quorum, votes, &lock->rand);
    wait_plan(w, now_us + pause_us);
}

/* Returns the time until all refused keys end by themselves; −1 = unknown. */
static int64_t longest_ttl_us(const struct redlock_wait *w)
{
    int64_t longest_us = 0;
    for (size_t i = 0; i < w->batch->count; i++) {
        bool is_refused = w->batch->keys[i].result == REDLOCK_HELD;
        int64_t ttl_us = is_refused ? redlock_batch_holder_ttl_us(w->batch, i) : 0;
        if (ttl_us < 0) {
            return -1;
        }
        longest_us = ttl_us > longest_us ? ttl_us : longest_us;
    }
    return longest_us;
}

/* Plans a poll: another client has the key, and its release will not be announced. */
static void poll_later(struct redlock_wait *w, int64_t now_us)
{
    struct rand *rand = &w->lock->rand;
    const struct retry_terms terms = retry_terms_for(w);
    int64_t pause_us = POLL_MIN_US + rand_below(rand, POLL_MAX_US - POLL_MIN_US);
    int64_t ttl_us = longest_ttl_us(w);
    w->failures = 0;
    if (ttl_us >= 0 && ttl_us < pause_us) {
        pause_us = ttl_us + US_PER_MS + rand_below(rand, terms.base_us);
    }
    wait_plan(w, now_us + pause_us);
}

/* True if each key was refused because of one owner, not because of several, none of whom may get
 * it. */
static bool is_held_by_one(const struct redlock_wait *w)
{
    for (size_t i = 0; i < w->batch->count; i++) {
        if (w->batch->keys[i].is_contended) {
            return false;
        }
    }
    return w->result == REDLOCK_HELD;
}

static bool is_refused(const struct redlock_wait *w)
{
    return w->result == REDLOCK_HELD || w->result == REDLOCK_SPLIT;
}

/* Continues after a try by SETs, whose keys have been released. */
static void go_on(struct redlock_wait *w, const struct key *k, int64_t now_us)
{
    if (w->queue != NULL && is_refused(w) && line_is_usable(w->lock) && line_join(w)) {
        wait_be_due(w);
    } else if (w->queue != NULL && is_held_by_one(w)) {
        poll_later(w, now_us);
    } else {
        pause_before_retry(w, k, now_us);
    }
}

/* `k`: as above. A request that does not wait is repeated only if another try may end otherwise,
 * not if one other client holds the key. */
static bool is_last_try(const struct redlock_wait *w, const struct key *k, int64_t now_us)
{
    if (w->result == REDLOCK_INVALID || w->result == REDLOCK_CANCELLED) {
        return true;
    }
    if (!is_waiting(w) && w->result == REDLOCK_HELD && k != NULL && !k->is_contended) {
        return true;
    }
    return is_waiting(w) ? now_us >= w->options.deadline_us : w->tries > w->options.retries;
}

/* All or nothing: releases the keys that were won if not all of them were. */
static void give_back(struct redlock_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->keys[i].stage == KEY_HELD) {
            redlock_batch_release(batch, i);
        }
    }
}

static const struct key *first_not_won(const struct redlock_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->keys[i].result != REDLOCK_OK) {
            return &batch->keys[i];
        }
    }
    return NULL;
}

/* Drops a try whose waiter was cancelled meanwhile. Keys that were not won are released already,
 * except those of a round in line, whose votes go to the next waiter. */
static void drop_try(struct redlock_wait *w, struct redlock_batch *batch)
{
    give_back(batch);
    if (batch->is_entry && batch->keys[0].stage == KEY_GONE && batch->written != 0) {
        release_key_soon(batch, 0);
    }
    if (w->is_reported) {
        pool_give(&w->lock->pool, w);
    }
}

static void win(struct redlock_wait *w, struct redlock_batch *batch)
{
    keep_last(w, batch);
    w->result = REDLOCK_OK;
    unlink_wait(w);
    report(w);
}

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    struct redlock_wait *w = ctx;
    set_trying(w, false);
    if (w->is_over) {
        drop_try(w, batch);
        return;
    }
    const struct key *k = first_not_won(batch);
    if (k == NULL) {
        win(w, batch);
        return;
    }
    keep_last(w, batch);
    w->result = (enum redlock_result)k->result;
    give_back(batch);
    if (w->queue != NULL) {
        w->queue->result = w->result;
    }
    int64_t now_us = clock_boot_us();
    bool is_hopeless = votes_are_forbidden(batch, (size_t)(k - batch->keys));
    if (is_hopeless || is_last_try(w, k, now_us)) {
        unlink_wait(w);
        report(w);
        return;
    }
    go_on(w, k, now_us);
}

/* All keys have been granted, one after the other. If a lease has ended meanwhile, the keys are
 * lost, but not the place in line. */
static void win_all(struct redlock_wait *w)
{
    struct redlock_batch *batch = line_join_leases(w);
    if (batch != NULL) {
        win(w, batch);
        return;
    }
    line_leave(w);
    wait_be_due(w);
}

void wait_entered(void *ctx, struct redlock_batch *batch)
{
    struct redlock_wait *w = ctx;
    enum redlock_result result = (enum redlock_result)batch->keys[0].result;
    int64_t now_us = clock_boot_us();
    set_trying(w, false);
    if (w->is_over) {
        drop_try(w, batch);
        return;
    }
    if (result == REDLOCK_OK) {
        if (!line_granted(w, batch)) {
            wait_be_due(w); /* continue with the next key */
        } else if (w->request.count == 1) {
            win(w, batch);
        } else {
            win_all(w);
        }
        return;
    }
    keep_last(w, batch);
    w->result = result;
    w->queue->result = result;
    line_go_on(w, batch);
    if (votes_are_forbidden(batch, 0) || is_last_try(w, &batch->keys[0], now_us)) {
        unlink_wait(w);
        report(w);
    } else if (result == REDLOCK_NO_QUORUM) { /* it waits for nodes, not for the key */
        line_leave(w);
        pause_before_retry(w, &batch->keys[0], now_us);
    }
}

/* Begins a later try, or handles that it could not begin. */
static void try_again(struct redlock_wait *w)
{
    int r = try_now(w, NULL);
    if (r == 0) {
        return;
    }
    if (r == -EINVAL) { /* not noticed before, as this is its first try: for example, its ttl */
        end_soon(w, REDLOCK_INVALID);
        return;
    }
    w->tries++; /* no memory or randomness: counted as a try, so that it ends */
    w->result = REDLOCK_NO_QUORUM;
    int64_t now_us = clock_boot_us();
    if (is_last_try(w, NULL, now_us)) {
        end_soon(w, w->result);
        return;
    }
    pause_before_retry(w, NULL, now_us);
}

/* ---- called from the loop ---- */

static void look(struct redlock_wait *w, int64_t now_us)
{
    if (is_waiting(w) && now_us >= w->options.deadline_us) {
        end_soon(w, w->tries > 0 || w->queue == NULL ? w->result : w->queue->result);
    } else {
        try_again(w);
    }
}

int64_t wait_tick(struct redlock_async *lock, int64_t now_us)
{
    struct waits *waits = lock->waits;
    struct heap_item *top = NULL;
    if (waits == NULL) {
        return INT64_MAX;
    }
    waits->is_any_due = false;
    while ((top = heap_top(&waits->due)) != NULL && top->wake_us <= now_us) {
        look(top->owner, now_us);
    }
    report_over(waits);
    top = heap_top(&waits->due);
    return top != NULL ? top->wake_us : INT64_MAX;
}

void wait_report(struct redlock_async *lock)
{
    if (lock->waits == NULL) {
        return;
    }
    report_over(lock->waits);
    if (lock->waits->is_any_due) {
        core_wake_at(lock, wait_tick(lock, clock_boot_us()));
    }
}

void wait_close(struct redlock_async *lock)
{
    while (lock->waits != NULL && lock->waits->all != NULL) {
        redlock_wait_cancel(lock->waits->all);
    }
}

void wait_free(struct redlock_async *lock)
{
    if (lock->waits != NULL) {
        heap_release(&lock->waits->due);
        free(TAKE(lock->waits));
    }
}

/* ---- public interface ---- */

static enum status start(struct redlock_async *lock, const struct redlock_async_request *request,
                         const struct redlock_wait_options *options, struct redlock_wait **ret_wait,
                         struct err *err)
{
    size_t bytes = 0;
    enum status st = batch_check_keys(request->keys, request->count, &bytes, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (lock->waits == NULL) {
        lock->waits = calloc(1, sizeof *lock->waits);
        if (lock->waits == NULL) {
            return err_fail(err, STATUS_NOMEM, "redlock: no memory to wait");
        }
        lock->waits->over_end = &lock->waits->over;
    }
    struct redlock_wait *w = wait_new(lock, request, options, bytes);
    if (w == NULL) {
        return err_fail(err, STATUS_NOMEM, "redlock: no memory to wait");
    }
    if (is_waiting(w) && options->deadline_us <= clock_boot_us()) {
        w->options.deadline_us = 0;
    }
    w->score = is_waiting(w) ? line_draw_score(lock) : 0;
    if (is_waiting(w) && !queue_join(w)) {
        unlink_wait(w);
        pool_give(&w->lock->pool, w);
        return err_fail(err, STATUS_NOMEM, "redlock: no memory to wait");
    }
    *ret_wait = w;
    return STATUS_OK;
}

int redlock_async_wait(struct redlock_async *lock, const struct redlock_async_request *request,
                       const struct redlock_wait_options *options, struct redlock_wait **ret_wait,
                       struct redlock_error *ret_error)
{
    struct err err = {0};
    struct redlock_wait *w = NULL;
    if (lock->is_closing) {
        return error_tell_closing(ret_error);
    }
    enum status st = start(lock, request, options, &w, &err);
    if (st != STATUS_OK) {
        return error_tell(st, &err, ret_error);
    }
    if (w->queue == NULL || w->queue->first == w) {
        int r = try_now(w, ret_error);
        if (r != 0) {
            unlink_wait(w);
            pool_give(&w->lock->pool, w);
            return r;
        }
    }
    plan(w);
    *ret_wait = w;
    return 0;
}

void redlock_wait_cancel(struct redlock_wait *wait)
{
    if (!wait->is_over) {
        end_soon(wait, REDLOCK_CANCELLED);
    }
}
