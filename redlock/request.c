/* SPDX-License-Identifier: Apache-2.0
 *
 * What a caller asks for, from the check of it to the answer: one lock of one or several keys, or a
 * lock of its own for each key. Each of these locks is a part of the request. */
#include "base/clock.h"
#include "redlock/client.h"

#include <errno.h>

#define WAIT_MAX_MS (INT64_C(366) * 24 * 3600 * 1000)
#define RETRIES 3 /* lock.A14 */
#define RETRY_BASE_US (50 * US_PER_MS)
#define RETRY_CAP_US (500 * US_PER_MS)

struct part {
    struct request *request;
    struct redlock_lock *lock;
    bool is_decided;
    bool has_entered; /* the lock is one that its owner had already */
    enum redlock_result result;
};

struct request {
    struct call call;     /* first */
    struct request *prev; /* all that are under way */
    struct request *next;
    struct redlock *client;
    struct redlock_request asked;
    redlock_done *done; /* NULL = its caller waits */
    void *ctx;
    int64_t begun_us;
    size_t open;               /* what the thread waits for */
    struct redlock_wait *wait; /* NULL before and after */
    enum redlock_result result;
    struct redlock_report *reports; /* one for each part; NULL = unwanted */
    size_t part_count;
    struct part *parts;
    size_t key_count;               /* that the nodes are asked for */
    struct redlock_async_key *keys; /* sorted */
    uint16_t *places;               /* with `each`: whose part each of them is */
    char *bytes;                    /* of the keys, if they had to be copied */
};

static struct redlock_report *report_of(const struct part *p)
{
    return report_at(p->request->reports, (size_t)(p - p->request->parts));
}

static void decide(struct part *p, enum redlock_result result)
{
    p->is_decided = true;
    p->result = result;
}

static void fail(struct part *p, enum redlock_result result, const char *why)
{
    report_fail(p->request->client, report_of(p), result, why);
    decide(p, result);
}

static void fail_undecided(struct request *r, enum redlock_result result, const char *why)
{
    for (size_t i = 0; i < r->part_count; i++) {
        if (!r->parts[i].is_decided) {
            fail(&r->parts[i], result, why);
        }
    }
}

/* ---- checks ---- */

static enum status check_bounds(const struct redlock *c, const struct redlock_request *q,
                                struct err *err)
{
    if (q->wait_ms < -1 || q->wait_ms > WAIT_MAX_MS) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: wait_ms is out of bounds: 0 = one try, -1 = as long as it takes, "
                        "at most a year");
    }
    if (q->max_hold_ms < 0 || q->max_hold_ms > WAIT_MAX_MS) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: max_hold_ms is out of bounds: 0 = none, at most a year");
    }
    if (q->each && q->wait_ms != 0) {
        return err_fail(err, STATUS_INVALID, "redlock: each does not wait: wait_ms must be 0");
    }
    return q->ttl_ms == 0 ? STATUS_OK : settings_check_ttl(&c->settings, q->ttl_ms, err);
}

static enum status check(const struct redlock *c, const struct redlock_request *q, struct err *err)
{
    if (q->size != 0 && q->size < sizeof *q) {
        return err_fail(err, STATUS_INVALID, "redlock: size of the request: 0 or sizeof");
    }
    if ((q->key == NULL) == (q->keys == NULL)) {
        return err_fail(err, STATUS_INVALID, "redlock: give key, or keys and count");
    }
    if (q->owner != NULL && q->owner->client != c) {
        return err_fail(err, STATUS_INVALID, "redlock: the owner was made for another client");
    }
    enum status st = q->key != NULL ? STATUS_OK : keys_check_count(q->count, err);
    return st == STATUS_OK ? check_bounds(c, q, err) : st;
}

/* ---- what the owner has already ---- */

/* True: that decides the part. */
static bool enter(struct part *p, const struct redlock_async_key *keys, size_t count)
{
    struct redlock_owner *owner = p->request->asked.owner;
    struct redlock_lock *lock = NULL;
    switch (owner == NULL ? OWNER_HAS_NONE : owner_enter(owner, keys, count, &lock)) {
    case OWNER_HAS_ALL:
        fail(p, REDLOCK_OK, "its owner has it already");
        if (p->lock != NULL) {
            lock_recycle(p->lock);
        }
        p->lock = lock;
        p->has_entered = true;
        return true;
    case OWNER_HAS_PART:
        fail(p, REDLOCK_INVALID, "its owner has some of the keys by another lock");
        return true;
    case OWNER_HAS_LOST:
        fail(p, REDLOCK_LOST, "its owner has lost it: unlock it first");
        return true;
    case OWNER_HAS_NONE:
        break;
    }
    return false;
}

static bool lacks_fence(const struct part *p)
{
    return p->request->asked.fence && atomic_load(&p->lock->fence) == 0;
}

/* ---- on the thread ---- */

static void add(struct request *r)
{
    struct redlock *c = r->client;
    r->prev = NULL;
    r->next = c->requests;
    if (r->next != NULL) {
        r->next->prev = r;
    }
    c->requests = r;
    c->request_count++;
}

/* Fills what is known at the end, and recycles the handles that nobody gets. */
static void conclude(struct request *r)
{
    int64_t waited_ms = (clock_boot_us() - r->begun_us) / US_PER_MS;
    r->result = REDLOCK_OK;
    for (size_t i = 0; i < r->part_count; i++) {
        struct part *p = &r->parts[i];
        struct redlock_report *report = report_of(p);
        r->result = r->result == REDLOCK_OK ? p->result : r->result;
        if (p->result != REDLOCK_OK && p->lock != NULL) {
            lock_recycle(TAKE(p->lock));
        }
        if (report != NULL) {
            report->waited_ms = waited_ms;
            report->left_ms = p->lock != NULL ? redlock_left_ms(p->lock) : 0;
        }
    }
}

static void request_free(struct request *r)
{
    struct redlock *c = r->client;
    free(r->bytes);
    free(r->reports);
    free(r);
    client_unref(c);
}

/* To the caller of redlock_start(), who has its locks from now on. */
static void tell(struct redlock *c, struct mail *mail)
{
    struct request *r = (struct request *)(void *)mail; /* its first member */
    struct redlock_lock *locks[REDLOCK_KEYS_MAX];
    (void)c;
    conclude(r);
    for (size_t i = 0; i < r->part_count; i++) {
        locks[i] = r->parts[i].lock;
    }
    r->done(r->ctx, r->part_count, locks, r->reports);
    request_free(r);
}

static void tell_soon(struct request *r)
{
    r->call.mail.deliver = tell;
    callbacks_add_done(r->client, &r->call.mail);
}

static void end_one(struct request *r)
{
    struct redlock *c = r->client;
    if (--r->open > 0) {
        return;
    }
    *(r->prev != NULL ? &r->prev->next : &c->requests) = r->next;
    if (r->next != NULL) {
        r->next->prev = r->prev;
    }
    c->request_count--;
    if (r->done != NULL) {
        tell_soon(r);
    } else {
        call_answer(c, &r->call); /* it is its caller's now */
    }
}

/* Others of the same owner who wait for what it has now. */
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
    decide(p, REDLOCK_OK);
    if (p->has_entered) {
        return;
    }
    if (owner != NULL) {
        owner_add(owner, p->lock);
        wake_siblings(p);
    }
    lock_publish(p->lock, &p->request->asked);
}

static void lose(struct part *p, enum redlock_result result, const char *why)
{
    bool is_last = true;
    fail(p, result, why);
    if (p->has_entered && (!owner_leave(p->lock, &is_last) || !is_last)) {
        p->lock = NULL; /* others hold it still */
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
        if (fence > atomic_load(&l->fence)) { /* another call may have got one as well */
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
    end_one(r);
}

static void mint(struct part *p)
{
    const struct redlock_lock *l = p->lock;
    int code = l->batch == NULL ? -EINVAL
                                : redlock_batch_fence(l->batch, l->first, l->count, on_fenced, p);
    if (code == 0) {
        p->request->open++;
    } else {
        lose(p, code == -EINVAL ? REDLOCK_LOST : REDLOCK_SYSTEM, "while its fence was made");
    }
}

static void got(struct part *p)
{
    if (lacks_fence(p)) {
        mint(p);
    } else {
        win(p);
    }
}

static bool is_cancelled(const struct request *r)
{
    return r->client->is_closing || owner_is_cancelled(r->asked.owner);
}

/* What its owner got meanwhile by another call is this one's as well. */
static bool enters_late(struct request *r)
{
    struct part *p = &r->parts[0];
    if (r->asked.each || is_cancelled(r) || !enter(p, r->keys, r->key_count)) {
        return false;
    }
    if (p->has_entered) {
        got(p);
    }
    return true;
}

static void on_waited(void *ctx, enum redlock_result result, int tries, struct redlock_batch *batch)
{
    struct request *r = ctx;
    struct part *p = &r->parts[0];
    r->wait = NULL;
    size_t asked = batch != NULL ? redlock_batch_count(batch) : 0; /* of several, the last one */
    report_fill(r->client, report_of(p), result, tries, batch, 0, asked);
    if (result == REDLOCK_OK) {
        lock_bind(p->lock, batch, 0, r->key_count);
        got(p);
    } else if (!enters_late(r)) {
        decide(p, result);
    }
    end_one(r);
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
            got(p);
        } else {
            decide(p, result);
        }
    }
    end_one(r);
}

static int64_t deadline_us(const struct request *r)
{
    if (r->asked.wait_ms < 0) {
        return INT64_MAX;
    }
    return r->asked.wait_ms == 0 ? 0 : r->begun_us + r->asked.wait_ms * US_PER_MS;
}

static void ask_nodes(struct request *r)
{
    struct redlock_async *core = r->client->core;
    struct redlock_error error = {0};
    const struct redlock_async_request asked = {.keys = r->keys,
                                                .count = r->key_count,
                                                .ttl_us = r->asked.ttl_ms * US_PER_MS,
                                                .max_hold_us = r->asked.max_hold_ms * US_PER_MS,
                                                .is_not_kept = r->asked.manual,
                                                .is_ordered = !r->asked.each,
                                                .wants_holder_ttl = r->reports != NULL,
                                                .done = on_acquired,
                                                .ctx = r};
    const struct redlock_wait_options options = {.deadline_us = deadline_us(r),
                                                 .retries = RETRIES,
                                                 .retry_base_us = RETRY_BASE_US,
                                                 .retry_cap_us = RETRY_CAP_US,
                                                 .done = on_waited,
                                                 .ctx = r};
    int code = r->asked.each ? redlock_async_acquire(core, &asked, &error)
                             : redlock_async_wait(core, &asked, &options, &r->wait, &error);
    if (code == 0) {
        r->open++;
    } else {
        fail_undecided(r, code == -EINVAL ? REDLOCK_INVALID : REDLOCK_SYSTEM, error.message);
    }
}

static void deliver_request(struct redlock *c, struct mail *mail)
{
    struct request *r = (struct request *)(void *)mail; /* its first member */
    add(r);
    r->open = 1;
    for (size_t i = 0; i < r->part_count; i++) {
        if (r->parts[i].has_entered) {
            got(&r->parts[i]);
        }
    }
    if (is_cancelled(r)) {
        fail_undecided(r, REDLOCK_CANCELLED, c->is_closing ? "the client is closing" : "");
    } else if (r->key_count > 0 && !enters_late(r)) {
        ask_nodes(r);
    }
    end_one(r);
}

void request_cancel(struct redlock *c, const struct redlock_owner *owner)
{
    for (struct request *r = c->requests; r != NULL; r = r->next) {
        if (r->wait != NULL && (owner == NULL || r->asked.owner == owner)) {
            redlock_wait_cancel(r->wait);
        }
    }
}

/* ---- the caller's side ---- */

static size_t count_keys(const struct redlock_request *q)
{
    return q->key != NULL ? 1 : q->count;
}

static size_t count_parts(const struct redlock_request *q)
{
    return q->each ? count_keys(q) : 1;
}

/* What lies behind a request. */
#define ARRAYS_SIZE(parts, keys) \
    ((parts) * sizeof(struct part) + (keys) * (sizeof(struct redlock_async_key) + sizeof(uint16_t)))

/* The caller's keys, each with its place; those that are no keys are INVALID. */
static void list_keys(struct request *r)
{
    const struct redlock_request *q = &r->asked;
    const struct redlock_key one = {.bytes = q->key};
    for (size_t i = 0; i < count_keys(q); i++) {
        const struct redlock_key *key = q->key != NULL ? &one : &q->keys[i];
        struct redlock_async_key *to = &r->keys[r->key_count];
        struct part *p = &r->parts[q->each ? i : 0];
        struct err err = {0};
        *to = (struct redlock_async_key){.bytes = key->bytes, .user = p};
        if (keys_check(key->bytes, key->len, &to->len, &err) == STATUS_OK) {
            r->key_count++;
        } else {
            fail(p, REDLOCK_INVALID, err.msg);
        }
    }
}

/* Handles for the parts that the nodes are to be asked for. With `each`, a key that is there twice
 * is INVALID once: under one token its refusal would release what it won. */
static void prepare_each(struct request *r)
{
    size_t listed = keys_sort(r->keys, r->key_count);
    r->key_count = 0;
    for (size_t i = 0; i < listed; i++) {
        struct part *p = r->keys[i].user;
        if (enter(p, &r->keys[i], 1)) {
            continue;
        }
        p->lock = lock_new(r->client, r->asked.owner, &r->keys[i], 1);
        if (p->lock == NULL) {
            fail(p, REDLOCK_SYSTEM, "no memory for a lock");
            continue;
        }
        r->places[r->key_count] = (uint16_t)(p - r->parts);
        r->keys[r->key_count] = r->keys[i];
        r->keys[r->key_count++].user = p->lock;
    }
    for (size_t i = 0; i < r->part_count; i++) {
        if (!r->parts[i].is_decided && r->parts[i].lock == NULL) {
            fail(&r->parts[i], REDLOCK_INVALID, "the key is in the request twice");
        }
    }
}

static void prepare_all(struct request *r)
{
    struct part *p = &r->parts[0];
    if (p->is_decided) {
        r->key_count = 0;
        return;
    }
    r->key_count = keys_sort(r->keys, r->key_count);
    if (enter(p, r->keys, r->key_count)) {
        r->key_count = 0;
        return;
    }
    p->lock = lock_new(r->client, r->asked.owner, r->keys, r->key_count);
    if (p->lock == NULL) {
        fail(p, REDLOCK_SYSTEM, "no memory for a lock");
        r->key_count = 0;
    }
    for (size_t i = 0; i < r->key_count; i++) {
        r->keys[i].user = p->lock;
    }
}

/* Its arrays lie behind it. */
static struct request *request_init(void *room, struct redlock *c, const struct redlock_request *q)
{
    struct request *r = room;
    size_t parts = count_parts(q);
    *r = (struct request){.client = c,
                          .asked = *q,
                          .begun_us = clock_boot_us(),
                          .part_count = parts,
                          .parts = (struct part *)(r + 1),
                          .keys = (struct redlock_async_key *)((struct part *)(r + 1) + parts)};
    r->places = (uint16_t *)(r->keys + count_keys(q));
    for (size_t i = 0; i < parts; i++) {
        r->parts[i] = (struct part){.request = r};
    }
    return r;
}

/* The keys are listed. */
static void prepare(struct request *r)
{
    if (r->asked.each) {
        prepare_each(r);
    } else {
        prepare_all(r);
    }
}

static bool needs_thread(const struct request *r)
{
    bool needs = r->key_count > 0;
    for (size_t i = 0; i < r->part_count; i++) {
        needs = needs || (r->parts[i].has_entered && lacks_fence(&r->parts[i]));
    }
    return needs;
}

static enum redlock_result refuse(struct redlock *c, struct redlock_report *report,
                                  enum redlock_result result, const char *why)
{
    report_fail(c, report, result, why);
    return result;
}

/* Nothing that the request says is looked at before. */
static enum redlock_result check_request(struct redlock *c, const struct redlock_request *q,
                                         struct redlock_report *report)
{
    struct err err = {0};
    if (client_is_forked(c)) {
        return refuse(c, report, REDLOCK_SYSTEM,
                      "the client belongs to another process: open one after fork()");
    }
    return check(c, q, &err) == STATUS_OK ? REDLOCK_OK
                                          : refuse(c, report, REDLOCK_INVALID, err.msg);
}

enum redlock_result redlock_acquire(struct redlock *client, const struct redlock_request *request,
                                    struct redlock_lock **ret_locks,
                                    struct redlock_report *ret_reports)
{
    _Alignas(struct request) char
        room[sizeof(struct request) + ARRAYS_SIZE(REDLOCK_KEYS_MAX, REDLOCK_KEYS_MAX)];
    size_t locks = count_parts(request);
    for (size_t i = 0; i < locks && locks <= REDLOCK_KEYS_MAX; i++) {
        ret_locks[i] = NULL;
    }
    enum redlock_result result = check_request(client, request, ret_reports);
    if (result != REDLOCK_OK) {
        return result;
    }
    struct request *r = request_init(room, client, request);
    r->reports = ret_reports;
    list_keys(r);
    prepare(r);
    if (needs_thread(r) && !call_make(client, &r->call, deliver_request)) {
        fail_undecided(r, REDLOCK_CANCELLED, "the client is closed");
    }
    conclude(r);
    for (size_t i = 0; i < r->part_count; i++) {
        ret_locks[i] = r->parts[i].lock;
    }
    return r->result;
}

enum redlock_result redlock_lock_for(struct redlock *client, const char *key, int64_t wait_ms,
                                     struct redlock_lock **ret_lock)
{
    const struct redlock_request request = {.key = key, .wait_ms = wait_ms};
    return redlock_acquire(client, &request, ret_lock, NULL);
}

enum redlock_result redlock_try(struct redlock *client, const char *key,
                                struct redlock_lock **ret_lock)
{
    return redlock_lock_for(client, key, 0, ret_lock);
}

enum redlock_result redlock_lock(struct redlock *client, const char *key,
                                 struct redlock_lock **ret_lock)
{
    return redlock_lock_for(client, key, -1, ret_lock);
}

/* ---- without blocking ---- */

/* The keys' bytes are the request's own from now on. False: no memory. */
static bool copy_keys(struct request *r)
{
    size_t size = 1;
    for (size_t i = 0; i < r->key_count; i++) {
        size += r->keys[i].len;
    }
    char *at = r->bytes = malloc(size);
    for (size_t i = 0; i < r->key_count && r->bytes != NULL; i++) {
        memcpy(at, r->keys[i].bytes, r->keys[i].len);
        r->keys[i].bytes = at;
        at += r->keys[i].len;
    }
    return r->bytes != NULL;
}

/* The client is closed. */
static enum redlock_result take_back(struct request *r)
{
    fail_undecided(r, REDLOCK_CANCELLED, "");
    conclude(r);
    for (size_t i = 0; i < r->part_count; i++) {
        (void)redlock_unlock(r->parts[i].lock, NULL); /* which its owner had already */
    }
    request_free(r);
    return REDLOCK_CANCELLED;
}

static enum redlock_result start(struct request *r)
{
    struct redlock *c = r->client;
    bool is_open = true;
    client_ref(c);
    r->reports = calloc(r->part_count, sizeof *r->reports);
    list_keys(r);
    if (r->reports == NULL || !copy_keys(r)) {
        request_free(r);
        return REDLOCK_SYSTEM;
    }
    prepare(r);
    if (needs_thread(r)) {
        r->call.mail.deliver = deliver_request;
        (void)pthread_mutex_lock(&c->mutex);
        is_open = mailbox_put(c, &r->call.mail);
        (void)pthread_mutex_unlock(&c->mutex);
    } else {
        tell_soon(r);
    }
    return is_open ? REDLOCK_OK : take_back(r);
}

enum redlock_result redlock_start(struct redlock *client, const struct redlock_request *request,
                                  redlock_done *done, void *ctx, struct redlock_report *ret_report)
{
    enum redlock_result result = check_request(client, request, ret_report);
    if (result != REDLOCK_OK) {
        return result;
    }
    void *room =
        malloc(sizeof(struct request) + ARRAYS_SIZE(count_parts(request), count_keys(request)));
    if (room == NULL) {
        return refuse(client, ret_report, REDLOCK_SYSTEM, "no memory for a request");
    }
    struct request *r = request_init(room, client, request);
    r->done = done;
    r->ctx = ctx;
    result = start(r);
    if (result != REDLOCK_OK) {
        report_fail(client, ret_report, result, "");
    }
    return result;
}
