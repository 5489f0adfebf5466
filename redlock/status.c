/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about the client itself, answered by its thread. */
#include "redlock/client.h"

#include <errno.h>

struct stats_question {
    struct call call; /* first */
    struct redlock_stats *stats;
};

static void deliver_stats(struct redlock_client *c, struct mail *mail)
{
    struct stats_question *q = (struct stats_question *)(void *)mail; /* its first member */
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
    struct call call; /* first */
    struct redlock_node_info *nodes;
    size_t count;
};

static void deliver_nodes(struct redlock_client *c, struct mail *mail)
{
    struct nodes_question *q = (struct nodes_question *)(void *)mail; /* its first member */
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

struct inspection {
    struct call call; /* first */
    struct redlock_client *client;
    const char *key;
    size_t key_len;
    struct redlock_holding *holdings;
    int code;
};

static void on_inspected(void *ctx, const struct redlock_holding *holdings)
{
    struct inspection *i = ctx;
    memcpy(i->holdings, holdings, i->client->settings.node_count * sizeof holdings[0]);
    call_answer(i->client, &i->call);
}

static void deliver_inspection(struct redlock_client *c, struct mail *mail)
{
    struct inspection *i = (struct inspection *)(void *)mail; /* its first member */
    i->code = c->is_closing ? -ESHUTDOWN
                            : redlock_async_inspect(c->core, i->key, i->key_len, on_inspected, i);
    if (i->code != 0) {
        call_answer(c, &i->call);
    }
}

static enum status inspect(struct inspection *i, struct err *err)
{
    struct redlock_client *c = i->client;
    if (client_is_forked(c)) {
        return err_fail(err, STATUS_UNAVAILABLE, "redlock: the client belongs to another process");
    }
    enum status st = keys_check(i->key, 0, &i->key_len, err);
    if (st == STATUS_OK && (!call_make(c, &i->call, deliver_inspection) || i->code != 0)) {
        st = err_fail(err, STATUS_UNAVAILABLE, "redlock: the nodes can't be asked now");
    }
    return st;
}

enum redlock_result redlock_inspect(struct redlock_client *client, const char *key,
                                    struct redlock_holding ret_holdings[REDLOCK_NODES_MAX],
                                    struct redlock_report *ret_report)
{
    struct err err = {0};
    struct inspection i = {.client = client, .key = key, .holdings = ret_holdings};
    return report_status(inspect(&i, &err), &err, ret_report);
}

struct breaking {
    struct call call; /* first */
    struct redlock_client *client;
    const char *key;
    size_t key_len;
    struct redlock_released released;
    int code;
};

static void on_broken(void *ctx, const struct redlock_released *released)
{
    struct breaking *b = ctx;
    b->released = *released;
    call_answer(b->client, &b->call);
}

static void deliver_breaking(struct redlock_client *c, struct mail *mail)
{
    struct breaking *b = (struct breaking *)(void *)mail; /* its first member */
    b->code =
        c->is_closing ? -ESHUTDOWN : redlock_async_break(c->core, b->key, b->key_len, on_broken, b);
    if (b->code != 0) {
        call_answer(c, &b->call);
    }
}

static enum redlock_result report_broken(const struct breaking *b, struct redlock_report *report)
{
    const struct redlock_released *r = &b->released;
    size_t nodes = b->client->settings.node_count;
    bool is_broken = r->deleted + r->missing > (nodes - 1) / 2;
    enum redlock_result result = is_broken ? REDLOCK_OK : REDLOCK_NO_QUORUM;
    report_fail(b->client, report, result, "");
    if (report != NULL) {
        report->deleted = r->deleted;
        report->missing = r->missing;
        report->stolen = r->stolen;
        report->unknown = r->unknown;
    }
    return result;
}

enum redlock_result redlock_break(struct redlock_client *client, const char *key,
                                  struct redlock_report *ret_report)
{
    struct err err = {0};
    struct breaking b = {.client = client, .key = key};
    enum status st = STATUS_UNAVAILABLE;
    if (client_is_forked(client)) {
        err_set(&err, st, 0, "redlock: the client belongs to another process");
        return report_status(st, &err, ret_report);
    }
    st = keys_check(key, 0, &b.key_len, &err);
    if (st != STATUS_OK) {
        return report_status(st, &err, ret_report);
    }
    if (!call_make(client, &b.call, deliver_breaking) || b.code != 0) {
        err_set(&err, STATUS_UNAVAILABLE, 0, "redlock: the nodes can't be asked now");
        return report_status(STATUS_UNAVAILABLE, &err, ret_report);
    }
    return report_broken(&b, ret_report);
}

const char *redlock_version(void)
{
    return CLAIMD_VERSION;
}
