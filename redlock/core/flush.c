/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for releases, and frees what a dead predecessor held. */
#include "redlock/core/core.h"
#include "redlock/core/error.h"
#include "redlock/core/scripts.h"

#define FREE_KEYS_MAX 512 /* keys per script */

struct flush_waiter {
    struct flush_waiter *next;
    uint64_t seq; /* releases up to this one */
    redlock_async_flushed_cb *done;
    void *ctx;
};

int redlock_async_flush(struct redlock_async *lock, redlock_async_flushed_cb *done, void *ctx,
                        struct redlock_error *ret_error)
{
    struct flush_waiter *w = malloc(sizeof *w);
    if (w == NULL) {
        struct err err = {0};
        err_set(&err, STATUS_NOMEM, 0, "redlock: no memory to wait for releases");
        return error_tell(STATUS_NOMEM, &err, ret_error);
    }
    release_send_all(lock);
    *w = (struct flush_waiter){
        .next = lock->waiters, .seq = lock->release_seq, .done = done, .ctx = ctx};
    lock->waiters = w;
    core_soon(lock); /* there may be nothing to wait for */
    return 0;
}

void release_report_flushed(struct redlock_async *lock)
{
    if (lock->waiters == NULL) {
        return;
    }
    uint64_t oldest = release_oldest_in_flight(lock);
    struct flush_waiter **link = &lock->waiters;
    struct flush_waiter *ready = NULL;
    while (*link != NULL) {
        struct flush_waiter *w = *link;
        if (w->seq < oldest) {
            *link = w->next;
            w->next = ready;
            ready = w;
        } else {
            link = &w->next;
        }
    }
    while (ready != NULL) { /* taken off the list before, since a callback may flush again */
        struct flush_waiter *w = ready;
        ready = w->next;
        redlock_async_flushed_cb *done = w->done;
        void *ctx = w->ctx;
        free(w);
        done(ctx);
    }
}

struct free_prefix {
    size_t outstanding;
    redlock_async_flushed_cb *done;
    void *ctx;
};

static void on_freed(void *ctx, enum status st)
{
    struct free_prefix *f = ctx;
    (void)st; /* keys that a node did not free end by their ttl */
    if (--f->outstanding == 0) {
        redlock_async_flushed_cb *done = f->done;
        void *done_ctx = f->ctx;
        free(f);
        done(done_ctx);
    }
}

static void free_on_node(struct redlock_async *lock, size_t node, struct free_prefix *f,
                         const struct redis_arg *prefix, const struct redis_arg *keys, size_t count)
{
    const struct redis_script_call call = {.script = &script_free_prefix,
                                           .keys = keys,
                                           .key_count = count,
                                           .args = prefix,
                                           .arg_count = 1,
                                           .timeout_us = lock->options.node_timeout_us,
                                           .on_done = on_freed,
                                           .ctx = f};
    if (redis_node_call(lock->nodes[node].redis, &call, NULL) == STATUS_OK) {
        f->outstanding++;
    }
}

static enum status free_prefix_new(const char *prefix, struct free_prefix **ret, struct err *err)
{
    if (strlen(prefix) != REDLOCK_PREFIX_LEN) {
        return err_fail(err, STATUS_INVALID, "redlock: a process prefix has %d characters",
                        REDLOCK_PREFIX_LEN);
    }
    *ret = calloc(1, sizeof **ret);
    return *ret != NULL ? STATUS_OK
                        : err_fail(err, STATUS_NOMEM, "redlock: no memory to free a prefix");
}

int redlock_async_free_prefix(struct redlock_async *lock, const char *prefix,
                              const struct redlock_async_key *keys, size_t count,
                              redlock_async_flushed_cb *done, void *ctx,
                              struct redlock_error *ret_error)
{
    struct err err = {0};
    struct free_prefix *f = NULL;
    enum status st = free_prefix_new(prefix, &f, &err);
    if (st != STATUS_OK) {
        return error_tell(st, &err, ret_error);
    }
    const struct redis_arg start = {.bytes = prefix, .len = REDLOCK_PREFIX_LEN};
    f->done = done;
    f->ctx = ctx;
    for (size_t at = 0; at < count; at += FREE_KEYS_MAX) {
        struct redis_arg part[FREE_KEYS_MAX];
        size_t part_count = count - at < FREE_KEYS_MAX ? count - at : FREE_KEYS_MAX;
        for (size_t i = 0; i < part_count; i++) {
            part[i] = (struct redis_arg){.bytes = keys[at + i].bytes, .len = keys[at + i].len};
        }
        for (size_t node = 0; node < lock->options.node_count; node++) {
            free_on_node(lock, node, f, &start, part, part_count);
        }
    }
    if (f->outstanding == 0) {
        free(f);
        /* calls back from the loop, not from inside this call */
        return redlock_async_flush(lock, done, ctx, ret_error);
    }
    return 0;
}
