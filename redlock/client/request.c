/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread's side of a request: it asks the nodes, gets fences, and decides the parts. */
#include "redlock/client/request.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>

#define RETRIES 3 /* lock.A14 */
#define RETRY_BASE_US (50 * US_PER_MS)
#define RETRY_CAP_US (500 * US_PER_MS)

static struct redlock_report *report_of(const struct part *p)
{
    return report_at(p->request->reports, (size_t)(p - p->request->parts));
}

void part_decide(struct part *p, enum redlock_result result)
{
    p->is_decided = true;
    p->result = result;
}

void part_fail(struct part *p, enum redlock_result result, const char *why)
{
    report_fail(p->request->client, report_of(p), result, why);
    part_decide(p, result);
}

void request_fail_undecided(struct request *r, enum redlock_result result, const char *why)
{
    for (size_t i = 0; i < r->part_count; i++) {
        if (!r->parts[i].is_decided) {
            part_fail(&r->parts[i], result, why);
        }
    }
}

void request_refused(struct request *r, int code, const char *why)
{
    request_fail_undecided(r, code == -EINVAL ? REDLOCK_INVALID : REDLOCK_SYSTEM, why);
}

/* ---- locks that the owner already holds ---- */

bool part_enter(struct part *p, const struct redlock_async_key *keys, size_t count)
{
    struct redlock_owner *owner = p->request->asked.owner;
    struct redlock_lock *lock = NULL;
    switch (owner == NULL ? OWNER_HAS_NONE : owner_enter(owner, keys, count, &lock)) {
    case OWNER_HAS_ALL:
        part_fail(p, REDLOCK_OK, "its owner has it already");
        if (p->lock != NULL) {
            lock_recycle(p->lock);
        }
        p->lock = lock;
        p->has_entered = true;
        return true;
    case OWNER_HAS_PART:
        part_fail(p, REDLOCK_INVALID, "its owner has some of the keys by another lock");
        return true;
    case OWNER_HAS_LOST:
        part_fail(p, REDLOCK_LOST, "its owner has lost it: unlock it first");
        return true;
    case OWNER_HAS_NONE:
        break;
    }
    return false;
}

bool part_lacks_fence(const struct part *p)
{
    return p->request->asked.fence && atomic_load(&p->lock->fence) == 0;
}

/* ---- on the thread ---- */

static void add(struct request *r)
{
    struct redlock_client *c = r->client;
    r->prev = NULL;
    r->next = c->requests;
    if (r->next != NULL) {
        r->next->prev = r;
    }
    c->requests = r;
    c->request_count++;
}

void request_conclude(struct request *r)
{
    int64_t waited_ms = (clock_boot_us() - r->begun_us) / US_PER_MS;
    r->result = REDLOCK_OK;
    for (size_t i = 0; i < r->part_count; i++) {
        struct part *p = &r->parts[i];
        struct redlock_report *report = report_of(p);
        r->result = r->result == REDLOCK_OK ? p->result : r->result;
        if (p->result != REDLOCK_OK && p->lock != NULL) {
            lock_recycle(TAKE(p->lock));
        } else if (p->lock != NULL && !p->has_entered) {
            lock_publish(p->lock, &r->asked);
        }
        if (report != NULL) {
            report->waited_ms = waited_ms;
            report->left_ms = p->lock != NULL ? redlock_left_ms(p->lock) : 0;
        }
    }
}

void request_free(struct request *r)
{
    struct redlock_client *c = r->client;
    free(r->bytes);
    free(r->reports);
    free(r);
    client_unref(c);
}

/* Calls back to the caller of redlock_start(), who owns the locks from now on. */
static void tell(struct redlock_client *c, struct mail *mail)
{
    struct request *r = (struct request *)(void *)mail; /* the mail is its first member */
    struct redlock_lock *locks[REDLOCK_KEYS_MAX];
    const struct redlock_report *reports[REDLOCK_KEYS_MAX];
    (void)c;
    request_conclude(r);
    for (size_t i = 0; i < r->part_count; i++) {
        locks[i] = r->parts[i].lock;
        reports[i] = &r->reports[i];
    }
    r->done(r->ctx, r->part_count, locks, reports);
    request_free(r);
}

void request_tell_soon(struct request *r)
{
    r->call.mail.deliver = tell;
    callbacks_add_done(r->client, &r->call.mail);
}

void request_end_one(struct request *r)
{
    struct redlock_client *c = r->client;
    if (--r->open > 0) {
        return;
    }
    *(r->prev != NULL ? &r->prev->next : &c->requests) = r->next;
    if (r->next != NULL) {
        r->next->prev = r->prev;
    }
    c->request_count--;
    if (r->done != NULL) {
        request_tell_soon(r);
    } else {
        call_answer(c, &r->call); /* from now on it belongs to its caller */
    }
}

/* Wakes other requests of the same owner that wait for keys it has won now. */
static void wake_siblings(const struct part *won)
{
    const struct request *of = won->request;
    for (struct request *r = of->client->requests; r != NULL; r = r->next) {
        if (r != of && r->wait != NULL && r->asked.owner == of->asked.owner &&
            owner_covers(won->lock, r->keys, r->key_count)) {
            redlock_wait_cancel(r->wait);
        }
    }
}

static void win(struct part *p)
{
    struct redlock_owner *owner = p->request->asked.owner;
    part_decide(p, REDLOCK_OK);
    if (p->has_entered) {
        return;
    }
    if (owner != NULL) {
        owner_add(owner, p->lock);
        wake_siblings(p);
    }
}

static void lose(struct part *p, enum redlock_result result, const char *why)
{
    bool is_last = true;
    part_fail(p, result, why);
    if (p->has_entered && (!owner_leave(p->lock, &is_last) || !is_last)) {
        p->lock = NULL; /* the owner still holds it by other calls */
        return;
    }
    (void)unlock_release(p->lock, NULL, NULL);
    if (p->has_entered) {
        lock_retire(TAKE(p->lock));
    }
}

static void on_fenced(void *ctx, uint64_t fence)
{
    struct part *p = ctx;
    struct request *r = p->request;
    struct redlock_lock *l = p->lock;
    bool is_over = redlock_state(l) == REDLOCK_STATE_LOST;
    if (fence != 0 && !is_over) {
        if (fence > atomic_load(&l->fence)) { /* another call may have got a fence as well */
            atomic_store(&l->fence, fence);
        }
        win(p);
    } else if (r->client->is_closing) {
        lose(p, REDLOCK_CANCELLED, "the client is closing");
    } else if (is_over) {
        lose(p, REDLOCK_LOST, "while its fence was made");
    } else {
        lose(p, REDLOCK_NO_QUORUM, "no quorum stored its fence");
    }
    request_end_one(r);
}

static void mint(struct part *p)
{
    const struct redlock_lock *l = p->lock;
    assert(l != NULL);
    int code = l->batch == NULL ? -EINVAL
                                : redlock_batch_fence(l->batch, l->first, l->count, on_fenced, p);
    if (code == 0) {
        p->request->open++;
    } else {
        lose(p, code == -EINVAL ? REDLOCK_LOST : REDLOCK_SYSTEM, "while its fence was made");
    }
}

void part_got(struct part *p)
{
    if (part_lacks_fence(p)) {
        mint(p);
    } else {
        win(p);
    }
}

bool request_is_cancelled(const struct request *r)
{
    return r->client->is_closing || owner_is_cancelled(r->asked.owner);
}

/* Enters a lock that its owner has won by another call meanwhile. */
static bool enters_late(struct request *r)
{
    struct part *p = &r->parts[0];
    if (r->asked.each || request_is_cancelled(r) ||
        !(r->slots != NULL ? slots_enter(r) : part_enter(p, r->keys, r->key_count))) {
        return false;
    }
    if (p->has_entered) {
        part_got(p);
    }
    return true;
}

static void on_waited(void *ctx, enum redlock_result result, int tries, struct redlock_batch *batch)
{
    struct request *r = ctx;
    struct part *p = &r->parts[0];
    r->wait = NULL;
    /* after several tries, of the last one */
    size_t asked = batch != NULL ? redlock_batch_count(batch) : 0;
    report_fill(r->client, report_of(p), result, tries, batch, 0, asked);
    if (result == REDLOCK_OK) {
        lock_bind(p->lock, batch, 0, r->key_count);
        part_got(p);
    } else if (!enters_late(r)) {
        part_decide(p, result);
    }
    request_end_one(r);
}

static void on_acquired(void *ctx, struct redlock_batch *batch)
{
    struct request *r = ctx;
    for (size_t i = 0; i < r->key_count; i++) {
        struct part *p = &r->parts[r->places[i]];
        enum redlock_result result = redlock_batch_result(batch, i);
        report_fill(r->client, report_of(p), result, 1, batch, i, 1);
        if (result == REDLOCK_OK) {
            lock_bind(p->lock, batch, i, 1);
            part_got(p);
        } else {
            part_decide(p, result);
        }
    }
    request_end_one(r);
}

int64_t request_deadline_us(const struct request *r)
{
    if (r->asked.wait_ms < 0) {
        return INT64_MAX;
    }
    return r->asked.wait_ms == 0 ? 0 : r->begun_us + r->asked.wait_ms * US_PER_MS;
}

struct redlock_async_request request_asks(const struct request *r)
{
    return (struct redlock_async_request){.keys = r->keys,
                                          .count = r->key_count,
                                          .ttl_us = r->asked.ttl_ms * US_PER_MS,
                                          .max_hold_us = r->asked.max_hold_ms * US_PER_MS,
                                          .is_not_kept = r->asked.manual,
                                          .is_ordered = !r->asked.each,
                                          .wants_holder_ttl = r->reports != NULL};
}

struct redlock_wait_options request_waits(int64_t deadline_us, redlock_async_waited_cb *done,
                                          void *ctx)
{
    return (struct redlock_wait_options){.deadline_us = deadline_us,
                                         .retries = RETRIES,
                                         .retry_base_us = RETRY_BASE_US,
                                         .retry_cap_us = RETRY_CAP_US,
                                         .done = done,
                                         .ctx = ctx};
}

static void ask_nodes(struct request *r)
{
    struct redlock_async *core = r->client->core;
    struct redlock_error error = {0};
    struct redlock_async_request asked = request_asks(r);
    asked.done = on_acquired;
    asked.ctx = r;
    const struct redlock_wait_options options = request_waits(request_deadline_us(r), on_waited, r);
    int code = r->asked.each ? redlock_async_acquire(core, &asked, &error)
                             : redlock_async_wait(core, &asked, &options, &r->wait, &error);
    if (code == 0) {
        r->open++;
    } else {
        request_refused(r, code, error.message);
    }
}

void request_deliver(struct redlock_client *c, struct mail *mail)
{
    struct request *r = (struct request *)(void *)mail; /* the mail is its first member */
    add(r);
    r->open = 1;
    for (size_t i = 0; i < r->part_count; i++) {
        if (r->parts[i].has_entered) {
            part_got(&r->parts[i]);
        }
    }
    if (request_is_cancelled(r)) {
        request_fail_undecided(r, REDLOCK_CANCELLED, c->is_closing ? "the client is closing" : "");
    } else if (r->key_count > 0 && !enters_late(r)) {
        if (r->slots == NULL) {
            ask_nodes(r);
        } else {
            bool is_asked = r->asked.mode == REDLOCK_MODE_SHARED ? readers_ask(r) : slots_ask(r);
            r->open += is_asked;
        }
    }
    request_end_one(r);
}

void request_cancel(struct redlock_client *c, const struct redlock_owner *owner)
{
    for (struct request *r = c->requests; r != NULL; r = r->next) {
        if (owner != NULL && r->asked.owner != owner) {
            continue;
        }
        if (r->wait != NULL) {
            redlock_wait_cancel(r->wait);
        } else if (r->slots != NULL) {
            slots_cancel(r);
            readers_cancel(r);
        }
    }
}
