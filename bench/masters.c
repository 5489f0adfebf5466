/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/masters.h"

#include "base/clock.h"

#include <stdio.h>

#define TIMEOUT_US (10 * US_PER_S)

static bool are_up(const struct masters *m)
{
    for (size_t i = 0; i < m->count; i++) {
        if (!redis_node_is_up(m->nodes[i])) {
            return false;
        }
    }
    return true;
}

enum status masters_open(struct masters *m, uv_loop_t *loop, const char *const *paths, size_t count,
                         const bool *is_interrupted, struct err *err)
{
    *m = (struct masters){.loop = loop, .is_interrupted = is_interrupted};
    for (size_t i = 0; i < count; i++) {
        struct redis_options options = {.loop = loop, .connect_timeout_us = TIMEOUT_US};
        (void)snprintf(options.endpoint.path, sizeof options.endpoint.path, "%s", paths[i]);
        enum status st = redis_node_open(&options, &m->nodes[i], err);
        if (st != STATUS_OK) {
            return st;
        }
        m->count = i + 1;
    }
    int64_t end_us = clock_boot_us() + TIMEOUT_US;
    while (!are_up(m) && !*is_interrupted && clock_boot_us() < end_us) {
        (void)uv_run(loop, UV_RUN_ONCE);
    }
    return are_up(m) ? STATUS_OK : err_fail(err, STATUS_UNAVAILABLE, "a Redis master is down");
}

void masters_close(struct masters *m)
{
    for (size_t i = 0; i < m->count; i++) {
        redis_node_close(TAKE(m->nodes[i]));
    }
    m->count = 0;
}

static void on_done(void *ctx, enum status st)
{
    struct masters *m = ctx;
    m->answers++;
    m->st = st != STATUS_OK ? st : m->st;
}

static enum status ask(struct masters *m, const struct redis_arg *args, size_t count,
                       redis_reply_cb *on_reply, struct err *err)
{
    autobuf struct buf bytes = BUF_INIT(1024);
    enum status st = redis_command(&bytes, args, count, err);
    m->answers = 0;
    m->sum = 0;
    m->st = STATUS_OK;
    for (size_t i = 0; i < m->count && st == STATUS_OK; i++) {
        struct redis_request request = {.bytes = buf_at(&bytes),
                                        .len = bytes.len,
                                        .reply_count = 1,
                                        .timeout_us = TIMEOUT_US,
                                        .on_reply = on_reply,
                                        .on_done = on_done,
                                        .ctx = m};
        st = redis_node_send(m->nodes[i], &request, err);
    }
    while (st == STATUS_OK && m->answers < m->count) {
        if (*m->is_interrupted) {
            return err_fail(err, STATUS_UNAVAILABLE, "interrupted");
        }
        (void)uv_run(m->loop, UV_RUN_ONCE);
    }
    if (st != STATUS_OK) {
        return st;
    }
    if (m->st != STATUS_OK) {
        st = m->st;
        err_set(err, st, 0, "a Redis master did not answer");
    }
    return st;
}

static void on_stats(void *ctx, size_t index, const struct redis_value *v)
{
    struct masters *m = ctx;
    (void)index;
    const char *at = v->type == REDIS_STRING ? strstr(v->text, m->field) : NULL;
    if (at == NULL) {
        m->st = STATUS_INTERNAL;
        return;
    }
    m->sum += strtoll(at + strlen(m->field), NULL, 10);
}

static void on_keys(void *ctx, size_t index, const struct redis_value *v)
{
    struct masters *m = ctx;
    (void)index;
    if (v->type == REDIS_ARRAY) {
        m->sum += (int64_t)v->len;
    } else {
        m->st = STATUS_INTERNAL;
    }
}

static enum status sum_of(struct masters *m, const char *section, const char *field,
                          int64_t *ret_count, struct err *err)
{
    const struct redis_arg args[] = {{.bytes = "INFO", .len = 4},
                                     {.bytes = section, .len = strlen(section)}};
    m->field = field;
    enum status st = ask(m, args, ARRAY_COUNT(args), on_stats, err);
    *ret_count = m->sum;
    return st;
}

enum status masters_commands(struct masters *m, int64_t *ret_count, struct err *err)
{
    return sum_of(m, "stats", "total_commands_processed:", ret_count, err);
}

enum status masters_reads(struct masters *m, int64_t *ret_count, struct err *err)
{
    return sum_of(m, "stats", "total_reads_processed:", ret_count, err);
}

enum status masters_used_memory(struct masters *m, int64_t *ret_bytes, struct err *err)
{
    return sum_of(m, "memory", "used_memory:", ret_bytes, err);
}

/* Adds up lines "cmdstat_set:calls=12,…". */
static void on_commandstats(void *ctx, size_t index, const struct redis_value *v)
{
    static const char *const nested[] = {"mget", "get", "pexpire", "del", "pttl", "info"};
    struct masters *m = ctx;
    (void)index;
    if (v->type != REDIS_STRING) {
        m->st = STATUS_INTERNAL;
        return;
    }
    for (const char *at = strstr(v->text, "cmdstat_"); at != NULL; at = strstr(at, "cmdstat_")) {
        at += strlen("cmdstat_");
        const char *calls = strstr(at, ":calls=");
        if (calls == NULL) {
            return;
        }
        bool is_sent = true;
        for (size_t i = 0; i < ARRAY_COUNT(nested); i++) {
            size_t len = strlen(nested[i]);
            is_sent = is_sent && (strncmp(at, nested[i], len) != 0 || at[len] != ':');
        }
        m->sum += is_sent ? strtoll(calls + strlen(":calls="), NULL, 10) : 0;
    }
}

enum status masters_sent(struct masters *m, int64_t *ret_count, struct err *err)
{
    const struct redis_arg args[] = {{.bytes = "INFO", .len = 4},
                                     {.bytes = "commandstats", .len = 12}};
    enum status st = ask(m, args, ARRAY_COUNT(args), on_commandstats, err);
    *ret_count = m->sum;
    return st;
}

static enum status count_keys(struct masters *m, const char *pattern, int64_t *ret_count,
                              struct err *err)
{
    const struct redis_arg args[] = {{.bytes = "KEYS", .len = 4},
                                     {.bytes = pattern, .len = strlen(pattern)}};
    enum status st = ask(m, args, ARRAY_COUNT(args), on_keys, err);
    *ret_count = m->sum;
    return st;
}

enum status masters_lock_keys(struct masters *m, int64_t *ret_count, struct err *err)
{
    return count_keys(m, "claimd:job:[0-9]*", ret_count, err);
}

enum status masters_hint_keys(struct masters *m, int64_t *ret_count, struct err *err)
{
    return count_keys(m, "claimd:hints:*", ret_count, err);
}

static void on_flushed(void *ctx, size_t index, const struct redis_value *v)
{
    struct masters *m = ctx;
    (void)index;
    if (v->type == REDIS_ERROR) {
        m->st = STATUS_INTERNAL;
    }
}

enum status masters_flush(struct masters *m, struct err *err)
{
    const struct redis_arg args[] = {{.bytes = "FLUSHALL", .len = 8}};
    return ask(m, args, ARRAY_COUNT(args), on_flushed, err);
}
