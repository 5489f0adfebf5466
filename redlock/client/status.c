/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about the client itself, which its thread answers. */
#include "redlock/client/client.h"

#include <errno.h>

struct stats_question {
    struct call call; /* first member */
    struct redlock_stats *stats;
};

static void deliver_stats(struct redlock_client *c, struct mail *mail)
{
    /* the mail is its first member */
    struct stats_question *q = (struct stats_question *)(void *)mail;
    struct redlock_stats *s = q->stats;
    if (c->core != NULL) {
        const struct redlock_counters *n = redlock_async_counters(c->core);
        *s = (struct redlock_stats){.size = s->size,
                                    .node_errors = n->node_errors,
                                    .extended = n->extended,
                                    .lost = n->lost,
                                    .stolen = n->stolen,
                                    .healed = n->healed,
                                    .release_deleted = n->release_deleted,
                                    .release_missing = n->release_missing,
                                    .release_unknown = n->release_unknown,
                                    .wakeups = n->wakeups,
                                    .held = c->held_keys,
                                    .waiting = c->request_count};
        memcpy(s->results, n->results, sizeof n->results);
        memcpy(s->latency, n->latency, sizeof s->latency);
    }
    call_answer(c, &q->call);
}

void redlock_get_stats(struct redlock_client *client, struct redlock_stats *ret_stats)
{
    struct stats_question q = {.stats = ret_stats};
    *ret_stats = (struct redlock_stats){.size = ret_stats->size};
    if (!client_is_forked(client)) {
        (void)call_make(client, &q.call, deliver_stats);
    }
}

struct nodes_question {
    struct call call; /* first member */
    struct redlock_node_info *nodes;
    size_t count;
};

static void deliver_nodes(struct redlock_client *c, struct mail *mail)
{
    /* the mail is its first member */
    struct nodes_question *q = (struct nodes_question *)(void *)mail;
    for (size_t i = 0; i < q->count && c->core != NULL; i++) {
        redlock_async_node(c->core, i, &q->nodes[i]);
    }
    call_answer(c, &q->call);
}

size_t redlock_nodes(struct redlock_client *client, struct redlock_node_info *ret_nodes, size_t max)
{
    size_t count = client->settings.node_count;
    struct nodes_question q = {.nodes = ret_nodes, .count = count < max ? count : max};
    memset(ret_nodes, 0, q.count * sizeof ret_nodes[0]);
    if (client_is_forked(client) || !call_make(client, &q.call, deliver_nodes)) {
        return 0;
    }
    return q.count;
}

/* ---- questions to all nodes about one key ---- */

struct key_question {
    struct call call; /* first member */
    struct redlock_client *client;
    const char *key;
    size_t key_len;
    int (*ask)(struct key_question *q); /* called on the thread; returns 0 or a negative errno */
    int code;
    union {
        struct redlock_holding *holdings; /* the caller's array */
        struct redlock_released released;
    };
};

static void deliver_key_question(struct redlock_client *c, struct mail *mail)
{
    struct key_question *q = (struct key_question *)(void *)mail; /* the mail is its first member */
    q->code = c->is_closing ? -ESHUTDOWN : q->ask(q);
    if (q->code != 0) {
        call_answer(c, &q->call);
    }
}

static enum status put(struct key_question *q, struct err *err)
{
    struct redlock_client *c = q->client;
    if (client_is_forked(c)) {
        return err_fail(err, STATUS_UNAVAILABLE, "redlock: the client belongs to another process");
    }
    enum status st = keys_check(q->key, 0, &q->key_len, err);
    if (st == STATUS_OK && (!call_make(c, &q->call, deliver_key_question) || q->code != 0)) {
        st = err_fail(err, STATUS_UNAVAILABLE, "redlock: the nodes can't be asked now");
    }
    return st;
}

static void on_inspected(void *ctx, const struct redlock_holding *holdings)
{
    struct key_question *q = ctx;
    memcpy(q->holdings, holdings, q->client->settings.node_count * sizeof holdings[0]);
    call_answer(q->client, &q->call);
}

static int ask_holders(struct key_question *q)
{
    return redlock_async_inspect(q->client->core, q->key, q->key_len, on_inspected, q);
}

enum redlock_result redlock_inspect(struct redlock_client *client, const char *key,
                                    struct redlock_holding ret_holdings[REDLOCK_NODES_MAX],
                                    struct redlock_report *ret_report)
{
    struct err err = {0};
    struct key_question q = {
        .client = client, .key = key, .ask = ask_holders, .holdings = ret_holdings};
    return report_status(put(&q, &err), &err, ret_report);
}

static void on_broken(void *ctx, const struct redlock_released *released)
{
    struct key_question *q = ctx;
    q->released = *released;
    call_answer(q->client, &q->call);
}

static int ask_to_break(struct key_question *q)
{
    return redlock_async_break(q->client->core, q->key, q->key_len, on_broken, q);
}

enum redlock_result redlock_break(struct redlock_client *client, const char *key,
                                  struct redlock_report *ret_report)
{
    struct err err = {0};
    struct key_question q = {.client = client, .key = key, .ask = ask_to_break};
    enum status st = put(&q, &err);
    if (st != STATUS_OK) {
        return report_status(st, &err, ret_report);
    }
    bool is_free = q.released.deleted + q.released.missing > (client->settings.node_count - 1) / 2;
    enum redlock_result result = is_free ? REDLOCK_OK : REDLOCK_NO_QUORUM;
    report_fail(client, ret_report, result, "");
    report_add_released(ret_report, &q.released);
    return result;
}

const char *redlock_version(void)
{
    return CLAIMD_RELEASE;
}
