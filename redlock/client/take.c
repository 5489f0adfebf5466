/* SPDX-License-Identifier: Apache-2.0
 *
 * The caller's side of a request: checking it, preparing its keys, waiting for its end. */
#include "base/clock.h"
#include "redlock/client/request.h"

#include <assert.h>

#define WAIT_MAX_MS (INT64_C(366) * 24 * 3600 * 1000)

struct redlock_key request_key(const struct redlock_request *q, size_t index)
{
    return q->key != NULL ? (struct redlock_key){.bytes = q->key} : q->keys[index];
}

/* ---- checks ---- */

static enum status check_bounds(const struct redlock_client *c, const struct redlock_request *q,
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
        return err_fail(err, STATUS_INVALID, "redlock: wait_ms must be 0 with each");
    }
    if (q->slots < 0 || q->slots > REDLOCK_SLOTS_MAX) {
        return err_fail(err, STATUS_INVALID, "redlock: %d slots, allowed are 0 to %d", q->slots,
                        REDLOCK_SLOTS_MAX);
    }
    return q->ttl_ms == 0 ? STATUS_OK : settings_check_ttl(&c->settings, q->ttl_ms, err);
}

static size_t slots_of(const struct redlock_request *q)
{
    return q->slots > 0 ? (size_t)q->slots : q->mode != REDLOCK_MODE_PLAIN ? REDLOCK_READERS : 0;
}

static enum status check_slots(const struct redlock_request *q, struct err *err)
{
    size_t len = 0;
    struct redlock_key key = request_key(q, 0);
    if (q->mode > REDLOCK_MODE_EXCLUSIVE) {
        return err_fail(err, STATUS_INVALID, "redlock: mode is %u, allowed are 0 to %u",
                        (unsigned)q->mode, (unsigned)REDLOCK_MODE_EXCLUSIVE);
    }
    if ((q->key == NULL && q->count != 1) || q->each) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: slots and modes need a single key, without each");
    }
    enum status st = keys_check(key.bytes, key.len, &len, err);
    if (st == STATUS_OK && len + sizeof "#64" - 1 > REDLOCK_KEY_LEN_MAX) {
        st = err_fail(err, STATUS_INVALID, "redlock: a key with slots has at most %zu bytes",
                      REDLOCK_KEY_LEN_MAX - (sizeof "#64" - 1));
    }
    return st;
}

static enum status check(const struct redlock_client *c, const struct redlock_request *q,
                         struct err *err)
{
    if (q->size != 0 && q->size < sizeof *q) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: the size of the request must be 0 or sizeof");
    }
    if ((q->key == NULL) == (q->keys == NULL)) {
        return err_fail(err, STATUS_INVALID, "redlock: give key, or keys and count");
    }
    if (q->owner != NULL && q->owner->client != c) {
        return err_fail(err, STATUS_INVALID, "redlock: the owner was made for another client");
    }
    enum status st = q->key == NULL ? keys_check_count(q->count, err) : STATUS_OK;
    if (st == STATUS_OK && slots_of(q) > 0) {
        st = check_slots(q, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return check_bounds(c, q, err);
}

/* ---- the caller's side ---- */

static size_t count_keys(const struct redlock_request *q)
{
    if (slots_of(q) > 0) {
        return slots_of(q) + (q->mode != REDLOCK_MODE_PLAIN); /* and the gate */
    }
    return q->key != NULL ? 1 : q->count;
}

static size_t count_parts(const struct redlock_request *q)
{
    return q->each && slots_of(q) == 0 ? count_keys(q) : 1;
}

/* Size of the arrays that are stored behind a request. */
#define ARRAYS_SIZE(parts, slots, keys)                              \
    ((parts) * sizeof(struct part) + (slots) * sizeof(struct slot) + \
     (keys) * (sizeof(struct redlock_async_key) + sizeof(uint16_t)))

/* Lists the caller's keys, each with its part; the parts of invalid keys become INVALID. */
static void list_keys(struct request *r)
{
    const struct redlock_request *q = &r->asked;
    if (r->asked.slots > 0) {
        if (!slots_name(r)) {
            part_fail(&r->parts[0], REDLOCK_SYSTEM, "no memory for the slots");
        }
        return;
    }
    for (size_t i = 0; i < count_keys(q); i++) {
        const struct redlock_key key = request_key(q, i);
        struct redlock_async_key *to = &r->keys[r->key_count];
        struct part *p = &r->parts[q->each ? i : 0];
        struct err err = {0};
        *to = (struct redlock_async_key){.bytes = key.bytes, .user = p};
        if (keys_check(key.bytes, key.len, &to->len, &err) == STATUS_OK) {
            r->key_count++;
        } else {
            part_fail(p, REDLOCK_INVALID, err.msg);
        }
    }
}

/* Makes the handles of the parts that need the nodes. With `each`, a key that occurs twice makes
 * its second part INVALID: as both would have the same token, the refusal of one would release what
 * the other has won. */
static void prepare_each(struct request *r)
{
    size_t listed = keys_sort(r->keys, r->key_count);
    r->key_count = 0;
    for (size_t i = 0; i < listed; i++) {
        struct part *p = r->keys[i].user;
        if (part_enter(p, &r->keys[i], 1)) {
            continue;
        }
        p->lock = lock_new(r->client, r->asked.owner, &r->keys[i], 1);
        if (p->lock == NULL) {
            part_fail(p, REDLOCK_SYSTEM, "no memory for a lock");
            continue;
        }
        r->places[r->key_count] = (uint16_t)(p - r->parts);
        r->keys[r->key_count] = r->keys[i];
        r->keys[r->key_count++].user = p->lock;
    }
    for (size_t i = 0; i < r->part_count; i++) {
        if (!r->parts[i].is_decided && r->parts[i].lock == NULL) {
            part_fail(&r->parts[i], REDLOCK_INVALID, "the key is in the request twice");
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
    bool has_slots = r->slots != NULL;
    r->key_count = has_slots ? r->key_count : keys_sort(r->keys, r->key_count);
    if (has_slots ? slots_enter(r) : part_enter(p, r->keys, r->key_count)) {
        r->key_count = 0;
        return;
    }
    /* The lock of a slot is renamed later, so make room for the longest name, that of the last
     * slot. */
    p->lock = has_slots ? lock_new(r->client, r->asked.owner, &r->keys[r->key_count - 1], 1)
                        : lock_new(r->client, r->asked.owner, r->keys, r->key_count);
    if (p->lock == NULL) {
        part_fail(p, REDLOCK_SYSTEM, "no memory for a lock");
        r->key_count = 0;
    }
    for (size_t i = 0; i < r->key_count; i++) {
        r->keys[i].user = p->lock;
    }
}

/* Makes a request in `room`, with its arrays behind it. */
static struct request *request_init(void *room, struct redlock_client *c,
                                    const struct redlock_request *q)
{
    struct request *r = room;
    size_t parts = count_parts(q);
    *r = (struct request){.client = c,
                          .asked = *q,
                          .begun_us = clock_boot_us(),
                          .part_count = parts,
                          .parts = (struct part *)(r + 1)};
    size_t slot_count = slots_of(q);
    struct slot *slots = (struct slot *)(r->parts + parts);
    r->asked.slots = (int)slot_count;
    r->slots = slot_count > 0 && q->mode != REDLOCK_MODE_EXCLUSIVE ? slots : NULL;
    r->keys = (struct redlock_async_key *)(slots + slot_count);
    r->places = (uint16_t *)(r->keys + count_keys(q));
    for (size_t i = 0; i < parts; i++) {
        r->parts[i] = (struct part){.request = r};
    }
    for (size_t i = 0; i < slot_count && r->slots != NULL; i++) {
        r->slots[i] = (struct slot){.request = r};
    }
    return r;
}

/* Prepares a request whose keys are listed. */
static void prepare(struct request *r)
{
    if (owner_is_cancelled(r->asked.owner)) {
        request_fail_undecided(r, REDLOCK_CANCELLED, "");
        r->key_count = 0;
    } else if (r->asked.each) {
        prepare_each(r);
    } else {
        prepare_all(r);
    }
}

static bool needs_thread(const struct request *r)
{
    bool needs = r->key_count > 0;
    for (size_t i = 0; i < r->part_count; i++) {
        needs = needs || (r->parts[i].has_entered && part_lacks_fence(&r->parts[i]));
    }
    return needs;
}

/* Checks the fork first; nothing of the request is read before that. */
static enum redlock_result check_request(const struct redlock_client *c,
                                         const struct redlock_request *q, struct err *err)
{
    if (client_is_forked(c)) {
        err_set(err, STATUS_UNAVAILABLE, 0,
                "the client belongs to another process: open one after fork()");
        return REDLOCK_SYSTEM;
    }
    return check(c, q, err) == STATUS_OK ? REDLOCK_OK : REDLOCK_INVALID;
}

enum redlock_result redlock_acquire(struct redlock_client *client,
                                    const struct redlock_request *request,
                                    struct redlock_lock **ret_locks,
                                    struct redlock_report *ret_reports)
{
    _Alignas(struct request) char
        room[sizeof(struct request) +
             ARRAYS_SIZE(REDLOCK_KEYS_MAX, REDLOCK_SLOTS_MAX, REDLOCK_KEYS_MAX)];
    struct err err = {0};
    size_t parts = count_parts(request) <= REDLOCK_KEYS_MAX ? count_parts(request) : 0;
    enum redlock_result result = check_request(client, request, &err);
    for (size_t i = 0; i < parts; i++) {
        ret_locks[i] = NULL;
        report_fail(client, report_at(ret_reports, i), result, err.msg);
    }
    if (result != REDLOCK_OK) {
        return result;
    }
    struct request *r = request_init(room, client, request);
    r->reports = ret_reports;
    list_keys(r);
    prepare(r);
    if (needs_thread(r) && !call_make(client, &r->call, request_deliver)) {
        request_fail_undecided(r, REDLOCK_CANCELLED, "the client is closed");
    }
    request_conclude(r);
    for (size_t i = 0; i < r->part_count; i++) {
        ret_locks[i] = r->parts[i].lock;
    }
    free(r->bytes);
    return r->result;
}

enum redlock_result redlock_lock_for(struct redlock_client *client, const char *key,
                                     int64_t wait_ms, struct redlock_lock **ret_lock)
{
    const struct redlock_request request = {.key = key, .wait_ms = wait_ms};
    return redlock_acquire(client, &request, ret_lock, NULL);
}

enum redlock_result redlock_try(struct redlock_client *client, const char *key,
                                struct redlock_lock **ret_lock)
{
    return redlock_lock_for(client, key, 0, ret_lock);
}

/* ---- without blocking ---- */

/* Copies the keys' bytes, so that the request owns them. Returns false if memory runs out. */
static bool copy_keys(struct request *r)
{
    size_t size = 1;
    if (r->bytes != NULL) { /* they belong to the request already */
        return true;
    }
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

/* Ends a request whose client is closed. */
static enum redlock_result take_back(struct request *r)
{
    request_fail_undecided(r, REDLOCK_CANCELLED, "");
    request_conclude(r);
    for (size_t i = 0; i < r->part_count; i++) {
        /* undoes the entry into a lock that the owner already held */
        (void)redlock_unlock(r->parts[i].lock, NULL);
    }
    request_free(r);
    return REDLOCK_CANCELLED;
}

static enum redlock_result start(struct redlock_client *c, const struct redlock_request *request,
                                 redlock_done *done, void *ctx)
{
    bool is_open = true;
    void *room = malloc(sizeof(struct request) +
                        ARRAYS_SIZE(count_parts(request), slots_of(request), count_keys(request)));
    if (room == NULL) {
        return REDLOCK_SYSTEM;
    }
    struct request *r = request_init(room, c, request);
    r->done = done;
    r->ctx = ctx;
    client_ref(c);
    assert(r->part_count > 0);
    r->reports = calloc(r->part_count, sizeof *r->reports);
    list_keys(r);
    if (r->reports == NULL || !copy_keys(r)) {
        request_free(r);
        return REDLOCK_SYSTEM;
    }
    prepare(r);
    if (needs_thread(r)) {
        r->call.mail.deliver = request_deliver;
        (void)pthread_mutex_lock(&c->mutex);
        is_open = mailbox_put(c, &r->call.mail);
        (void)pthread_mutex_unlock(&c->mutex);
    } else {
        request_tell_soon(r);
    }
    return is_open ? REDLOCK_OK : take_back(r);
}

enum redlock_result redlock_start(struct redlock_client *client,
                                  const struct redlock_request *request, redlock_done *done,
                                  void *ctx, struct redlock_report *ret_report)
{
    struct err err = {0};
    enum redlock_result result = check_request(client, request, &err);
    if (result == REDLOCK_OK) {
        result = start(client, request, done, ctx);
    }
    if (result != REDLOCK_OK) {
        report_fail(client, ret_report, result, err.msg);
    }
    return result;
}
