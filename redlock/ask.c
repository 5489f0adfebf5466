/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking for one lock: what a caller wants, on his stack, from the check of it to the answer. */
#include "base/clock.h"
#include "redlock/client.h"

#include <errno.h>

#define WAIT_MAX_MS (INT64_C(366) * 24 * 3600 * 1000)

struct ask {
    struct call call; /* first */
    struct ask *prev; /* all that are under way */
    struct ask *next;
    struct redlock *client;
    const struct redlock_request *request;
    const struct redlock_async_key *keys;
    size_t count;
    int64_t deadline_us;       /* 0 = doesn't wait */
    struct redlock_wait *wait; /* NULL before and after */
    struct fence_requests fence_requests;
    struct redlock_lock *lock; /* what it is to fill, or the one that was entered */
    bool has_entered;          /* the latter */
    struct redlock_report *report;
    enum redlock_result result;
};

/* ---- checks ---- */

static enum status check_bounds(const struct redlock *c, const struct redlock_request *r,
                                struct err *err)
{
    if (r->wait_ms < -1 || r->wait_ms > WAIT_MAX_MS) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: wait_ms is out of bounds: 0 = one try, -1 = as long as it takes, "
                        "at most a year");
    }
    if (r->max_hold_ms < 0 || r->max_hold_ms > WAIT_MAX_MS) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: max_hold_ms is out of bounds: 0 = none, at most a year");
    }
    return r->ttl_ms == 0 ? STATUS_OK : settings_check_ttl(&c->settings, r->ttl_ms, err);
}

enum status ask_check(const struct redlock *c, const struct redlock_request *r, struct err *err)
{
    if (client_is_forked(c)) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: the client belongs to another process: open one after fork()");
    }
    if ((r->owner != NULL && r->owner->client != c) ||
        (r->cancel != NULL && cancel_client(r->cancel) != c)) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: the owner or the cancel was made for another client");
    }
    return check_bounds(c, r, err);
}

bool ask_owner(const struct redlock_request *r, const struct redlock_async_key *keys, size_t count,
               struct redlock_lock **ret_lock, enum redlock_result *ret_result,
               const char **ret_why)
{
    switch (r->owner == NULL ? OWNER_HAS_NONE : owner_enter(r->owner, keys, count, ret_lock)) {
    case OWNER_HAS_ALL:
        *ret_result = REDLOCK_WON;
        *ret_why = "its owner has it already";
        return true;
    case OWNER_HAS_PART:
        *ret_result = REDLOCK_INVALID;
        *ret_why = "its owner has some of the keys by another lock";
        return true;
    case OWNER_HAS_LOST:
        *ret_result = REDLOCK_EXPIRED;
        *ret_why = "its owner has lost it: unlock it first";
        return true;
    case OWNER_HAS_NONE:
        break;
    }
    return false;
}

static void report_owner(const struct redlock *c, struct redlock_report *report,
                         enum redlock_result result, const struct redlock_lock *lock,
                         const char *why)
{
    report_fail(c, report, result, why);
    if (report != NULL && lock != NULL) {
        report->validity_ms = redlock_validity_ms(lock);
    }
}

void ask_fill(const struct redlock_request *r, struct redlock_async_request *ret)
{
    *ret = (struct redlock_async_request){.ttl_us = r->ttl_ms * US_PER_MS,
                                          .max_hold_us = r->max_hold_ms * US_PER_MS,
                                          .is_not_kept = r->no_watchdog};
}

/* ---- on the thread ---- */

static void add(struct ask *a)
{
    struct redlock *c = a->client;
    a->prev = NULL;
    a->next = c->asks;
    if (a->next != NULL) {
        a->next->prev = a;
    }
    c->asks = a;
    c->ask_count++;
}

static void finish(struct ask *a, enum redlock_result result)
{
    struct redlock *c = a->client;
    *(a->prev != NULL ? &a->prev->next : &c->asks) = a->next;
    if (a->next != NULL) {
        a->next->prev = a->prev;
    }
    c->ask_count--;
    a->result = result;
    call_answer(c, &a->call); /* its caller's stack is gone now */
}

static void fail(struct ask *a, enum redlock_result result, const char *why)
{
    report_fail(a->client, a->report, result, why);
    finish(a, result);
}

/* Others of the same owner who wait for what he has now. */
static void wake_siblings(const struct ask *won)
{
    for (struct ask *a = won->client->asks; a != NULL; a = a->next) {
        if (a != won && a->wait != NULL && a->request->owner == won->request->owner &&
            owner_covers(won->lock, a->keys, a->count)) {
            redlock_wait_cancel(a->wait);
        }
    }
}

static void win(struct ask *a)
{
    struct redlock_lock *l = a->lock;
    if (a->report != NULL) {
        a->report->validity_ms = redlock_validity_ms(l);
    }
    if (a->request->owner != NULL) {
        owner_add(a->request->owner, l);
        wake_siblings(a);
    }
    lock_publish(l, a->request);
    finish(a, REDLOCK_WON);
}

static void on_minted(struct fence_requests *m)
{
    struct ask *a =
        (struct ask *)(void *)((char *)m -
                               offsetof(struct ask, fence_requests)); /* it is part of it */
    bool is_over = redlock_state(a->lock) == REDLOCK_STATE_LOST;
    if (a->lock->fence != 0 && !is_over) {
        win(a);
        return;
    }
    (void)unlock_release(a->lock, NULL, NULL);
    if (a->client->is_closing) {
        fail(a, REDLOCK_CANCELLED, "the client is closing");
    } else if (is_over) {
        fail(a, REDLOCK_EXPIRED, "while its fence was made");
    } else {
        fail(a, REDLOCK_NO_QUORUM, "no quorum stored its fence");
    }
}

/* A fence that the lock did not have so far, for a call that wants one. */
static void on_entered_fence(void *ctx, uint64_t fence)
{
    struct ask *a = ctx;
    if (fence == 0) {
        fail(a, REDLOCK_NO_QUORUM, "no quorum stored its fence");
        return;
    }
    if (fence > atomic_load(&a->lock->fence)) { /* another call may have got one as well */
        atomic_store(&a->lock->fence, fence);
    }
    finish(a, REDLOCK_WON);
}

static void mint_for_entered(struct ask *a)
{
    struct redlock_lock *l = a->lock;
    int code = l->batch == NULL
                   ? -EINVAL
                   : redlock_batch_fence(l->batch, l->first, l->count, on_entered_fence, a);
    if (code != 0) {
        fail(a, code == -EINVAL ? REDLOCK_EXPIRED : REDLOCK_NO_QUORUM, "while its fence was made");
    }
}

static bool lacks_fence(const struct redlock_request *request, const struct redlock_lock *lock)
{
    return request->wants_fence && atomic_load(&lock->fence) == 0;
}

/* What the owner got meanwhile by another call is this one's as well. */
static bool is_entered(struct ask *a)
{
    struct redlock_lock *lock = NULL;
    enum redlock_result result = REDLOCK_WON;
    const char *why = "";
    if (cancel_is_fired(a->request->cancel) || a->client->is_closing ||
        !ask_owner(a->request, a->keys, a->count, &lock, &result, &why)) {
        return false;
    }
    report_owner(a->client, a->report, result, lock, why);
    if (result == REDLOCK_WON) {
        lock_recycle(a->lock);
        a->lock = lock;
        a->has_entered = true;
    }
    if (result == REDLOCK_WON && lacks_fence(a->request, lock)) {
        mint_for_entered(a);
    } else {
        finish(a, result);
    }
    return true;
}

static void on_waited(void *ctx, enum redlock_result result, int tries, struct redlock_batch *batch)
{
    struct ask *a = ctx;
    a->wait = NULL;
    report_fill(a->client, a->report, result, tries, batch);
    if (result != REDLOCK_WON) {
        if (!is_entered(a)) {
            finish(a, result);
        }
        return;
    }
    lock_bind(a->lock, batch, 0, a->count);
    if (a->request->wants_fence) {
        fence_requests_start(&a->fence_requests, on_minted);
        fence_requests_add(&a->fence_requests, a->lock);
        fence_requests_run(&a->fence_requests);
    } else {
        win(a);
    }
}

static void start_wait(struct ask *a)
{
    struct redlock *c = a->client;
    const struct settings *s = &c->settings;
    struct redlock_error error = {0};
    struct redlock_async_request request;
    ask_fill(a->request, &request);
    request.keys = a->keys;
    request.count = a->count;
    request.is_ordered = true;
    request.wants_holder_ttl = a->report != NULL;
    const struct redlock_wait_options options = {.deadline_us = a->deadline_us,
                                                 .retries = s->retries,
                                                 .retry_base_us = s->retry_base_us,
                                                 .retry_cap_us = s->retry_cap_us,
                                                 .done = on_waited,
                                                 .ctx = a};
    int code = redlock_async_wait(c->core, &request, &options, &a->wait, &error);
    if (code != 0) {
        fail(a, code == -EINVAL ? REDLOCK_INVALID : REDLOCK_NO_QUORUM, error.message);
    }
}

static void deliver_ask(struct redlock *c, struct mail *mail)
{
    struct ask *a = (struct ask *)(void *)mail; /* its first member */
    add(a);
    if (c->is_closing) {
        fail(a, REDLOCK_CANCELLED, "the client is closing");
    } else if (cancel_is_fired(a->request->cancel)) {
        fail(a, REDLOCK_CANCELLED, "");
    } else if (a->has_entered) {
        mint_for_entered(a);
    } else if (!is_entered(a)) {
        start_wait(a);
    }
}

void ask_cancel(struct redlock *c, const struct redlock_cancel *cancel)
{
    for (struct ask *a = c->asks; a != NULL; a = a->next) {
        if (a->wait != NULL && (cancel == NULL || a->request->cancel == cancel)) {
            redlock_wait_cancel(a->wait);
        }
    }
}

/* ---- the caller's side ---- */

static int64_t deadline_of(const struct redlock_request *r)
{
    if (r->wait_ms < 0) {
        return INT64_MAX;
    }
    return r->wait_ms == 0 ? 0 : clock_boot_us() + r->wait_ms * US_PER_MS;
}

static enum redlock_result refuse(const struct redlock *c, struct redlock_report *report,
                                  const struct err *err)
{
    report_fail(c, report, REDLOCK_INVALID, err->msg);
    return REDLOCK_INVALID;
}

static enum redlock_result ask_thread(struct ask *a)
{
    struct redlock *c = a->client;
    if (!call_make(c, &a->call, deliver_ask)) {
        report_fail(c, a->report, REDLOCK_CANCELLED, "the client is closed");
        a->result = REDLOCK_CANCELLED;
    }
    if (a->result != REDLOCK_WON && a->has_entered) {
        (void)redlock_unlock(a->lock, NULL);
    } else if (a->result != REDLOCK_WON) {
        lock_recycle(a->lock);
    }
    return a->result;
}

static enum redlock_result ask(struct redlock *c, const struct redlock_request *request,
                               struct redlock_async_key *keys, size_t count,
                               struct redlock_lock **ret_lock, struct redlock_report *report)
{
    enum redlock_result result = REDLOCK_WON;
    const char *why = "";
    struct redlock_lock *entered = NULL;
    if (ask_owner(request, keys, count, &entered, &result, &why)) {
        report_owner(c, report, result, entered, why);
        if (result != REDLOCK_WON || !lacks_fence(request, entered)) {
            *ret_lock = entered;
            return result;
        }
    }
    struct ask a = {.client = c,
                    .request = request,
                    .keys = keys,
                    .count = count,
                    .deadline_us = deadline_of(request),
                    .lock = entered != NULL ? entered : lock_new(c, request, keys, count),
                    .has_entered = entered != NULL,
                    .report = report};
    if (a.lock == NULL) {
        report_fail(c, report, REDLOCK_NO_QUORUM, "no memory for a lock");
        return REDLOCK_NO_QUORUM;
    }
    for (size_t i = 0; i < count; i++) {
        keys[i].user = a.lock;
    }
    if (ask_thread(&a) == REDLOCK_WON) {
        *ret_lock = a.lock;
    }
    return a.result;
}

enum redlock_result redlock_acquire(struct redlock *client, const struct redlock_request *request,
                                    struct redlock_lock **ret_lock,
                                    struct redlock_report *ret_report)
{
    struct err err = {0};
    struct redlock_async_key key = {.bytes = request->key};
    *ret_lock = NULL;
    enum status st = ask_check(client, request, &err);
    if (st == STATUS_OK) {
        st = keys_check(request->key, request->key_len, &key.len, &err);
    }
    if (st != STATUS_OK) {
        return refuse(client, ret_report, &err);
    }
    return ask(client, request, &key, 1, ret_lock, ret_report);
}

enum redlock_result redlock_try(struct redlock *client, const char *key, int64_t ttl_ms,
                                struct redlock_lock **ret_lock)
{
    const struct redlock_request request = {.key = key, .ttl_ms = ttl_ms};
    return redlock_acquire(client, &request, ret_lock, NULL);
}

enum redlock_result redlock_acquire_all(struct redlock *client,
                                        const struct redlock_request *request,
                                        const char *const *keys, size_t count,
                                        struct redlock_lock **ret_lock,
                                        struct redlock_report *ret_report)
{
    struct err err = {0};
    struct redlock_async_key list[REDLOCK_KEYS_MAX];
    *ret_lock = NULL;
    enum status st = ask_check(client, request, &err);
    if (st == STATUS_OK) {
        st = keys_check_count(count, &err);
    }
    for (size_t i = 0; i < count && st == STATUS_OK; i++) {
        list[i] = (struct redlock_async_key){.bytes = keys[i]};
        st = keys_check(keys[i], 0, &list[i].len, &err);
    }
    if (st != STATUS_OK) {
        return refuse(client, ret_report, &err);
    }
    return ask(client, request, list, keys_sort(list, count), ret_lock, ret_report);
}
