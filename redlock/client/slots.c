/* SPDX-License-Identifier: Apache-2.0
 *
 * A semaphore (lock.L10): a request needs one of the slots of a key, each of which is a lock. If no
 * slot is free, the request waits in the lines of all of them at once, and leaves the others when
 * it has won one. */
#include "base/clock.h"
#include "redlock/client/request.h"

#include <stdio.h>

static void on_tried(void *ctx, enum redlock_result result, int tries, struct redlock_batch *batch);
static void on_waited(void *ctx, enum redlock_result result, int tries,
                      struct redlock_batch *batch);

/* Asks for one slot. False: it failed, which decides the request. */
static bool ask(struct request *r, size_t slot, int64_t deadline_us, redlock_async_waited_cb *done)
{
    struct redlock_error error = {0};
    struct slot *s = &r->slots[slot];
    struct redlock_async_request asked = request_asks(r);
    asked.keys = &r->keys[slot];
    asked.count = 1;
    const struct redlock_wait_options options = request_waits(deadline_us, done, s);
    int code = redlock_async_wait(r->client->core, &asked, &options, &s->wait, &error);
    if (code != 0) {
        request_refused(r, code, error.message);
        return false;
    }
    r->slots_open++;
    return true;
}

/* Tries each slot once, beginning with one that differs between requests. */
static bool try_next(struct request *r)
{
    return ask(r, (r->slot_first + r->slots_tried++) % r->key_count, 0, on_tried);
}

static bool wait_for_any(struct request *r)
{
    int64_t deadline_us = request_deadline_us(r);
    for (size_t i = 0; i < r->key_count; i++) {
        if (!ask(r, i, deadline_us, on_waited)) {
            slots_cancel(r);
            break;
        }
    }
    return r->slots_open > 0;
}

void slots_cancel(struct request *r)
{
    for (size_t i = 0; i < r->key_count; i++) {
        if (r->slots[i].wait != NULL) {
            redlock_wait_cancel(r->slots[i].wait);
        }
    }
}

/* ---- results ---- */

static void note(struct slot *s, enum redlock_result result, int tries,
                 const struct redlock_batch *batch)
{
    struct request *r = s->request;
    r->tries += tries;
    report_fill(r->client, report_at(r->reports, 0), result, r->tries, batch, 0, batch != NULL);
}

static void take(struct slot *s, struct redlock_batch *batch)
{
    struct request *r = s->request;
    struct redlock_lock *lock = r->parts[0].lock;
    lock_rename(lock, &r->keys[s - r->slots]);
    lock_bind(lock, batch, 0, 1);
    r->has_slot = true;
}

static void end(struct request *r, enum redlock_result result)
{
    struct part *p = &r->parts[0];
    readers_leave_gate(r);
    if (r->has_slot) {
        part_got(p);
    } else if (!p->is_decided) {
        part_decide(p, result);
    }
    request_end_one(r);
}

static void end_wait(struct slot *s)
{
    s->wait = NULL;
    s->request->slots_open--;
}

static void on_tried(void *ctx, enum redlock_result result, int tries, struct redlock_batch *batch)
{
    struct slot *s = ctx;
    struct request *r = s->request;
    bool is_taken = result == REDLOCK_HELD || result == REDLOCK_SPLIT;
    end_wait(s);
    note(s, result, tries, batch);
    if (result == REDLOCK_OK) {
        take(s, batch);
    } else if (request_is_cancelled(r)) {
        result = REDLOCK_CANCELLED;
    } else if (is_taken && r->slots_tried < r->key_count) {
        if (try_next(r)) {
            return;
        }
    } else if (clock_boot_us() < request_deadline_us(r) && wait_for_any(r)) {
        return;
    }
    end(r, result);
}

static void on_waited(void *ctx, enum redlock_result result, int tries, struct redlock_batch *batch)
{
    struct slot *s = ctx;
    struct request *r = s->request;
    bool is_late = r->has_slot || r->parts[0].is_decided;
    end_wait(s);
    if (is_late && result == REDLOCK_OK) {
        redlock_batch_release(batch, 0);
    } else if (!is_late) {
        note(s, result, tries, batch);
    }
    if (!is_late && result == REDLOCK_OK) {
        take(s, batch);
        slots_cancel(r);
    }
    if (r->slots_open == 0) {
        end(r, result);
    }
}

bool slots_ask(struct request *r)
{
    r->slot_first = (size_t)(r->begun_us % (int64_t)r->key_count);
    return try_next(r);
}

bool slots_enter(struct request *r)
{
    for (size_t i = 0; i < r->key_count; i++) {
        if (part_enter(&r->parts[0], &r->keys[i], 1)) {
            return true;
        }
    }
    return false;
}

/* ---- keys of the slots ---- */

bool slots_name(struct request *r)
{
    const struct redlock_key base = request_key(&r->asked, 0);
    const size_t len = base.len > 0 ? base.len : strlen(base.bytes);
    const size_t size = len + sizeof "#64";
    const size_t slots = (size_t)r->asked.slots;
    const size_t count = slots + (r->asked.mode != REDLOCK_MODE_PLAIN);
    r->bytes = malloc(count * size);
    for (size_t i = 0; i < count && r->bytes != NULL; i++) {
        char *key = r->bytes + i * size;
        memcpy(key, base.bytes, len);
        int n = snprintf(key + len, size - len, "#%zu", i < slots ? i + 1 : 0);
        r->keys[i] = (struct redlock_async_key){.bytes = key, .len = len + (size_t)n};
    }
    r->key_count = r->bytes == NULL ? 0 : r->slots != NULL ? slots : count;
    return r->bytes != NULL;
}
