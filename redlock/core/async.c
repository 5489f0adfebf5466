/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening and closing a lock object, its turn of the loop, and its one timer. */
#include "base/clock.h"
#include "redlock/core/core.h"
#include "redlock/core/error.h"
#include "redlock/core/wait.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/timerfd.h>

#define WIRE_BYTES_MAX ((size_t)4 << 20) /* 512 keys of 1 KiB with their commands take 0.6 MiB */
#define DRIFT_PPM_MAX 500000

const char *redlock_text(enum redlock_result result)
{
    static const char *const texts[REDLOCK_RESULTS] = {
        [REDLOCK_OK] = "ok",
        [REDLOCK_HELD] = "held by another client",
        [REDLOCK_SPLIT] = "no majority, as several clients tried at once",
        [REDLOCK_NO_QUORUM] = "too many nodes failed",
        [REDLOCK_LOST] = "lost",
        [REDLOCK_CANCELLED] = "cancelled",
        [REDLOCK_INVALID] = "invalid",
        [REDLOCK_SYSTEM] = "the system refused it"};
    return (size_t)result < ARRAY_COUNT(texts) ? texts[result] : "?";
}

/* ---- the idle handle and the timer ---- */

static void on_idle(uv_idle_t *idle)
{
    struct redlock_async *lock = idle->data;
    (void)uv_idle_stop(idle);
    /* requests made by these reports are sent below, without another turn */
    lock->is_send_next = true;
    acquire_report(lock);
    wait_report(lock);
    fence_report(lock);
    inspect_report(lock);
    break_report(lock);
    keeper_report(lock);
    lock->is_send_next = false;
    release_send_all(lock);
    acquire_send(lock);
    release_tell(lock);
    release_report_flushed(lock);
}

void core_soon(struct redlock_async *lock)
{
    (void)uv_idle_start(&lock->idle, on_idle);
}

void core_send_soon(struct redlock_async *lock)
{
    if (!lock->is_send_next) {
        core_soon(lock);
    }
}

void core_wake_at(struct redlock_async *lock, int64_t at_us)
{
    if (at_us == INT64_MAX || (lock->timer_at_us != 0 && lock->timer_at_us <= at_us)) {
        return;
    }
    if (at_us < 1) {
        at_us = 1; /* zero would disarm the timer */
    }
    const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at_us / US_PER_S),
                                                 .tv_nsec = (long)(at_us % US_PER_S * 1000)}};
    lock->timer_at_us = at_us;
    (void)timerfd_settime(lock->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void core_print_i64(char ret_text[TTL_TEXT_SIZE], int64_t value)
{
    (void)snprintf(ret_text, TTL_TEXT_SIZE, "%" PRId64, value);
}

void core_sort_in(int64_t *sorted, size_t count, int64_t value)
{
    for (; count > 0 && sorted[count - 1] > value; count--) {
        sorted[count] = sorted[count - 1];
    }
    sorted[count] = value;
}

void core_hook(struct redlock_async *lock, const struct core_hooks *hooks)
{
    lock->hooks = *hooks;
}

static void on_timer(uv_poll_t *poll, int uv_status, int events)
{
    struct redlock_async *lock = poll->data;
    uint64_t expirations = 0;
    (void)events;
    if (uv_status != 0 || lock->is_closing ||
        read(lock->timer_fd, &expirations, sizeof expirations) < 0) {
        return;
    }
    lock->timer_at_us = 0;
    if (lock->hooks.before_renewal != NULL) {
        lock->hooks.before_renewal(lock->hooks.ctx);
    }
    int64_t now_us = clock_boot_us();
    int64_t next_us = keeper_tick(lock, now_us);
    core_wake_at(lock, next_us);
    core_wake_at(lock, nodes_tick(lock, now_us));
    core_wake_at(lock, release_tick(lock, now_us));
    core_wake_at(lock, wait_tick(lock, now_us));
    core_wake_at(lock, inbox_tick(lock, now_us));
}

/* ---- open ---- */

static enum status check_prefix(const char *prefix, struct err *err)
{
    size_t len = prefix != NULL ? strlen(prefix) : 1;
    if (len < 1 || len > PREFIX_MAX) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: a prefix of %zu characters, allowed are 1 to %d", len,
                        PREFIX_MAX);
    }
    return STATUS_OK;
}

static enum status check_label(const char *label, struct err *err)
{
    size_t len = label != NULL ? strlen(label) : 0;
    if (len > REDLOCK_LABEL_LEN_MAX) {
        return err_fail(err, STATUS_INVALID, "redlock: a label of %zu bytes, allowed are 1 to %d",
                        len, REDLOCK_LABEL_LEN_MAX);
    }
    for (size_t i = 0; i < len; i++) {
        if (label[i] < ' ' || label[i] > '~') {
            return err_fail(err, STATUS_INVALID,
                            "redlock: byte %zu of the label is not a printable ASCII character",
                            i + 1);
        }
    }
    return STATUS_OK;
}

static enum status check_options(const struct redlock_async_options *o, struct err *err)
{
    enum status st = lease_check_terms(o->ttl_us, o->node_timeout_us, o->allow_short_ttl, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (o->ttl_max_us < o->ttl_us || o->ttl_max_us > LEASE_TTL_MAX_US) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: a largest ttl of %" PRId64 " us: from the ttl up to a day",
                        o->ttl_max_us);
    }
    if (o->drift_ppm < 0 || o->drift_ppm > DRIFT_PPM_MAX) {
        return err_fail(err, STATUS_INVALID, "redlock: drift of %d ppm, allowed are 0 to %d",
                        o->drift_ppm, DRIFT_PPM_MAX);
    }
    if (o->min_validity_us < 0 ||
        o->min_validity_us >= o->ttl_us - lease_drift_us(o->ttl_us, o->drift_ppm)) {
        return err_fail(err, STATUS_INVALID, "redlock: a validity of %" PRId64 " us can't be won",
                        o->min_validity_us);
    }
    st = check_label(o->label, err);
    if (st != STATUS_OK) {
        return st;
    }
    return check_prefix(o->prefix, err);
}

static void set_label(struct redlock_async *lock, const char *label)
{
    lock->value_len = REDLOCK_TOKEN_LEN;
    if (label != NULL && label[0] != '\0') {
        (void)snprintf(lock->label, sizeof lock->label, "%s", label);
        lock->value_len += 1 + strlen(label);
    }
}

static enum status open_timer(struct redlock_async *lock, struct err *err)
{
    lock->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (lock->timer_fd < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "redlock: timerfd");
    }
    int r = uv_poll_init(lock->options.loop, &lock->timer, lock->timer_fd);
    if (r != 0) {
        (void)close(lock->timer_fd);
        return err_fail(err, STATUS_UNAVAILABLE, "redlock: timer: %s", uv_strerror(r));
    }
    (void)uv_poll_start(&lock->timer, UV_READABLE, on_timer);
    (void)uv_idle_init(lock->options.loop, &lock->idle);
    lock->timer.data = lock;
    lock->idle.data = lock;
    lock->handles_open = CORE_HANDLES;
    return STATUS_OK;
}

static enum status open_all(const struct redlock_async_options *options,
                            struct redlock_async **ret_lock, struct err *err)
{
    struct redis_endpoint endpoints[REDLOCK_NODES_MAX];
    enum status st = check_options(options, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = nodes_parse(options->nodes, options->node_count, endpoints, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct redlock_async *lock = calloc(1, sizeof *lock);
    if (lock == NULL) {
        return err_fail(err, STATUS_NOMEM, "redlock: no memory");
    }
    lock->options = *options;
    lock->quorum = tally_quorum(options->node_count);
    const char *prefix = options->prefix != NULL ? options->prefix : "redlock:";
    lock->prefix_len = strlen(prefix);
    (void)snprintf(lock->ttl_max_key, sizeof lock->ttl_max_key, "%s" TTL_MAX_WORD, prefix);
    (void)snprintf(lock->canary_key, sizeof lock->canary_key, "%s" CANARY_WORD, prefix);
    (void)snprintf(lock->any_key, sizeof lock->any_key, "%s" ANY_WORD, prefix);
    set_label(lock, options->label);
    buf_init(&lock->wire, WIRE_BYTES_MAX);
    rand_seed_from_system(&lock->rand);
    st = token_draw_prefix(lock->prefix, err);
    if (st == STATUS_OK) {
        st = open_timer(lock, err);
    }
    if (st != STATUS_OK) {
        free(lock);
        return st;
    }
    lock->options.nodes = NULL; /* the connections have copied what they need */
    lock->options.prefix = NULL;
    lock->options.label = NULL;
    st = nodes_open(lock, endpoints, err);
    if (st != STATUS_OK) {
        redlock_async_close(lock, NULL, NULL);
        return st;
    }
    *ret_lock = lock;
    return STATUS_OK;
}

int redlock_async_open(const struct redlock_async_options *options, struct redlock_async **ret_lock,
                       struct redlock_error *ret_error)
{
    struct err err = {0};
    return error_tell(open_all(options, ret_lock, &err), &err, ret_error);
}

/* ---- close ---- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct redlock_async *lock = handle->data;
    if (--lock->handles_open > 0) {
        return;
    }
    redlock_async_closed_cb *closed = lock->closed;
    void *ctx = lock->closed_ctx;
    (void)close(lock->timer_fd);
    heap_release(&lock->kept);
    buf_release(&lock->wire);
    pool_release(&lock->pool);
    free(lock);
    if (closed != NULL) {
        closed(ctx);
    }
}

/* libuv closes handles once per turn: when this one is closed, those of the connections, closed in
 * the turn before, are gone. */
static void on_timer_closed(uv_handle_t *handle)
{
    struct redlock_async *lock = handle->data;
    uv_close((uv_handle_t *)&lock->idle, on_handle_closed);
    on_handle_closed(handle);
}

static void on_last_flushed(void *ctx)
{
    struct redlock_async *lock = ctx;
    wait_report(lock); /* sends the reports that are still due */
    fence_report(lock);
    inspect_report(lock);
    break_report(lock);
    inbox_close(lock);
    nodes_close(lock); /* ends every request, hence every flush and round */
    inbox_free(lock);
    wait_free(lock);
    keeper_report(lock);
    release_free_all(lock);
    while (lock->batches != NULL) {
        batch_free(lock->batches); /* keys that their owner never released */
    }
    (void)uv_idle_stop(&lock->idle);
    uv_close((uv_handle_t *)&lock->timer, on_timer_closed);
}

void redlock_async_close(struct redlock_async *lock, redlock_async_closed_cb *done, void *ctx)
{
    lock->is_closing = true;
    lock->closed = done;
    lock->closed_ctx = ctx;
    wait_close(lock);
    acquire_cancel(lock);
    if (redlock_async_flush(lock, on_last_flushed, lock, NULL) != 0) {
        on_last_flushed(lock);
    }
}

int redlock_async_set_password(struct redlock_async *lock, const char *password,
                               struct redlock_error *ret_error)
{
    struct err err = {0};
    enum status st = inbox_set_password(lock, password, &err);
    for (size_t i = 0; i < lock->options.node_count && st == STATUS_OK; i++) {
        st = redis_node_set_password(lock->nodes[i].redis, password, &err);
    }
    return error_tell(st, &err, ret_error);
}

/* ---- state ---- */

size_t redlock_async_quorum(const struct redlock_async *lock)
{
    return lock->quorum;
}

size_t redlock_async_voting(const struct redlock_async *lock)
{
    size_t count = 0;
    for (size_t i = 0; i < lock->options.node_count; i++) {
        count += node_may_vote(&lock->nodes[i]);
    }
    return count;
}

const char *redlock_async_prefix(const struct redlock_async *lock)
{
    return lock->prefix;
}

int64_t redlock_async_drift_us(const struct redlock_async *lock)
{
    return lease_drift_us(lock->options.ttl_us, lock->options.drift_ppm);
}

const struct redlock_counters *redlock_async_counters(const struct redlock_async *lock)
{
    return &lock->counters;
}
