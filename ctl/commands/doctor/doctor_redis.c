/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl doctor: lock nodes and hint nodes. */
#include "base/clock.h"
#include "base/parse.h"
#include "base/timer.h"
#include "ctl/commands/doctor/doctor.h"
#include "redis/redis.h"

#include <stdio.h>

#define NODES_MAX CONFIG_NODES_MAX
#define VERSION_MIN 70000
#define CONNECT_US (2 * US_PER_S)
#define SAMPLE_DISTANCE_MS 250
#define SAMPLES 2
#define CLOCK_WARN_US (1 * US_PER_S)
#define ADDRESS_SIZE 280

/* A server's clock relative to ours (BOOTTIME), known as an interval: the server read its clock at
 * some time between our sending and our receiving. */
struct offset {
    int64_t low_us;
    int64_t high_us;
};

struct node_check {
    struct redis_node *node;
    struct doctor_nodes *all;
    char address[ADDRESS_SIZE];
    bool is_up;
    bool is_down;
    struct err why;
    struct redis_server_info info;
    int64_t sent_us;
    struct offset offsets[SAMPLES];
    int64_t wall_us;    /* offset relative to our wall clock, from the last sample */
    int64_t latency_us; /* the shortest time until an answer */
    size_t samples;
    bool has_leader; /* it holds the lock of the leader */
    char persistence[64];
    bool is_asked;    /* a request is in flight */
    bool is_answered; /* no further reply is expected */
};

struct doctor_nodes {
    uv_loop_t loop;
    uv_timer_t limit;
    uv_timer_t second; /* starts the second sample */
    const struct config *config;
    struct node_check nodes[NODES_MAX];
    size_t count;
};

/* ---- asking ---- */

static bool is_finished(const struct doctor_nodes *all)
{
    bool is_all = true;
    for (size_t i = 0; i < all->count; i++) {
        is_all = is_all && (all->nodes[i].is_down || all->nodes[i].is_answered);
    }
    return is_all;
}

static void take_time(struct node_check *n, const struct redis_value *v)
{
    int64_t seconds = 0;
    int64_t us = 0;
    bool ok = v->type == REDIS_ARRAY && v->len == 2 && n->samples < SAMPLES;
    ok = ok && parse_i64(v->items[0]->text, v->items[0]->len, 0, INT64_MAX / US_PER_S, &seconds,
                         NULL) == STATUS_OK;
    ok = ok && parse_i64(v->items[1]->text, v->items[1]->len, 0, US_PER_S, &us, NULL) == STATUS_OK;
    if (ok) {
        int64_t server_us = seconds * US_PER_S + us;
        int64_t now_us = clock_boot_us();
        n->offsets[n->samples++] =
            (struct offset){.low_us = server_us - now_us, .high_us = server_us - n->sent_us};
        n->wall_us = server_us + (now_us - n->sent_us) / 2 - clock_wall_us();
        bool is_first = n->samples == 1;
        n->latency_us =
            is_first || now_us - n->sent_us < n->latency_us ? now_us - n->sent_us : n->latency_us;
    }
}

static bool has_line(const struct redis_value *v, const char *line)
{
    return v->type == REDIS_STRING && strstr(v->text, line) != NULL;
}

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct node_check *n = ctx;
    if (index == 0) {
        take_time(n, v);
    } else if (index == 1) {
        n->has_leader = v->type == REDIS_STRING;
    } else if (v->type == REDIS_STRING) {
        (void)snprintf(n->persistence, sizeof n->persistence, "%s",
                       has_line(v, "aof_enabled:1") ? "append-only file" : "no append-only file");
    }
}

static void ask(struct node_check *n);

static void on_second(uv_timer_t *timer)
{
    struct doctor_nodes *all = timer->data;
    for (size_t i = 0; i < all->count; i++) {
        struct node_check *n = &all->nodes[i];
        if (n->is_up && !n->is_down && !n->is_asked && !n->is_answered) {
            ask(n);
        }
    }
}

static void on_done(void *ctx, enum status st)
{
    struct node_check *n = ctx;
    n->is_asked = false;
    n->is_answered = st != STATUS_OK || n->samples == SAMPLES;
    if (st != STATUS_OK) {
        n->is_down = true;
        err_set(&n->why, st, 0, "connected, then: %s", status_text(st));
    }
    if (is_finished(n->all)) {
        uv_stop(&n->all->loop);
    } else if (!uv_is_active((const uv_handle_t *)&n->all->second)) {
        timer_start(&n->all->second, on_second, SAMPLE_DISTANCE_MS, 0);
    }
}

static enum status put_command(struct buf *out, const char *a, const char *b, struct err *err)
{
    const struct redis_arg args[] = {{a, strlen(a)}, {b, b == NULL ? 0 : strlen(b)}};
    return redis_command(out, args, b == NULL ? 1 : 2, err);
}

static void ask(struct node_check *n)
{
    char leader[96];
    autobuf struct buf out = BUF_INIT(4096);
    (void)snprintf(leader, sizeof leader, "%s:leader", n->all->config->redis.prefix);
    enum status st = put_command(&out, "TIME", NULL, &n->why);
    if (st == STATUS_OK) {
        st = put_command(&out, "GET", leader, &n->why);
    }
    if (st == STATUS_OK) {
        st = put_command(&out, "INFO", "persistence", &n->why);
    }
    if (st == STATUS_OK) {
        const struct redis_request request = {.bytes = buf_at(&out),
                                              .len = out.len,
                                              .reply_count = 3,
                                              .timeout_us = CONNECT_US,
                                              .on_reply = on_reply,
                                              .on_done = on_done,
                                              .ctx = n};
        n->sent_us = clock_boot_us();
        st = redis_node_send(n->node, &request, &n->why);
    }
    n->is_asked = st == STATUS_OK;
    n->is_down = n->is_down || st != STATUS_OK;
}

static enum status on_up(void *ctx, struct redis_node *node, const struct redis_server_info *info,
                         struct err *err)
{
    (void)node;
    (void)err;
    struct node_check *n = ctx;
    n->is_up = true;
    n->info = *info;
    if (!uv_is_active((const uv_handle_t *)&n->all->second)) {
        timer_start(&n->all->second, on_second, 1, 0); /* not from within the handshake */
    }
    return STATUS_OK;
}

static void on_down(void *ctx, struct redis_node *node, const struct err *why)
{
    (void)node;
    struct node_check *n = ctx;
    n->is_down = true;
    n->why = *why;
    if (is_finished(n->all)) {
        uv_stop(&n->all->loop);
    }
}

static void on_limit(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static enum status open_node(struct doctor_nodes *all, size_t i, struct err *err)
{
    struct node_check *n = &all->nodes[i];
    const struct config *c = all->config;
    struct redis_options options = {.loop = &all->loop,
                                    .connect_timeout_us = CONNECT_US,
                                    .on_up = on_up,
                                    .on_down = on_down,
                                    .ctx = n};
    n->all = all;
    enum status st = redis_endpoint_parse(c->lock.nodes[i], &options.endpoint, err);
    if (st != STATUS_OK) {
        return st;
    }
    redis_endpoint_text(&options.endpoint, n->address, sizeof n->address);
    st = redis_endpoint_login(&options.endpoint, c->redis.user, c->redis.password, err);
    if (st != STATUS_OK) {
        return st;
    }
    return redis_node_open(&options, &n->node, err);
}

/* ---- judging ---- */

static void check_clock(struct report *r, const struct node_check *n, int64_t drift_us)
{
    if (n->samples < SAMPLES) {
        return;
    }
    const struct offset *a = &n->offsets[0];
    const struct offset *b = &n->offsets[1];
    int64_t apart_us = b->low_us > a->high_us   ? b->low_us - a->high_us
                       : a->low_us > b->high_us ? a->low_us - b->high_us
                                                : 0;
    if (apart_us > drift_us) {
        report_say(r, HEALTH_FAIL, "redis clock",
                   "make its host slew the clock (NTP), never step it",
                   "%s: stepped by %lld ms during this check", n->address,
                   (long long)(apart_us / US_PER_MS));
    } else if (llabs(n->wall_us) > CLOCK_WARN_US) {
        report_say(r, HEALTH_WARN, "redis clock", "synchronise the clocks of both hosts (NTP)",
                   "%s: %+lld ms against this host", n->address,
                   (long long)(n->wall_us / US_PER_MS));
    }
}

/* Returns the reason why the server cannot be a lock node, or NULL. */
static const char *unfit(const struct redis_server_info *info)
{
    return info->version_number < VERSION_MIN ? "version 7.0 or later is needed"
           : !info->is_master                 ? "is a replica: a lock node must be a master"
           : info->is_cluster        ? "is in cluster mode: a lock node must be a server by itself"
           : info->may_evict         ? "may evict locks: set maxmemory-policy noeviction"
           : info->replica_count > 0 ? "has replicas: a failover would forget locks"
                                     : NULL;
}

/* How far a clock may drift while a lease of `ttl_us` lasts. */
static int64_t drift_of(const struct config *config, int64_t ttl_us)
{
    return ttl_us / 1000000 * config->lock.drift_ppm + 2 * US_PER_MS;
}

static int64_t longest_lease(const struct config *config, int64_t t_max_us)
{
    return config->lock.ttl_us > t_max_us ? config->lock.ttl_us : t_max_us;
}

/* How long a server that has just started will not vote; 0 = it votes. */
static int64_t young_for(const struct config *config, int64_t ttl_us, const struct node_check *n)
{
    int64_t left_us = ttl_us + drift_of(config, ttl_us) - n->info.uptime_us;
    return config->lock.trust_fresh || left_us <= 0 ? 0 : left_us;
}

static void check_node(struct report *r, const struct config *config, const struct node_check *n)
{
    if (!n->is_up || n->samples == 0) {
        size_t len = strlen(n->address);
        bool is_named = strncmp(n->why.msg, n->address, len) == 0; /* as in most reasons */
        report_say(
            r, HEALTH_FAIL, "redis",
            "check that the server runs, and check lock.nodes, redis.user, redis.password_file",
            "%s%s%s", is_named ? "" : n->address, is_named ? "" : ": ",
            n->why.msg[0] != '\0' ? n->why.msg : "no answer within 2 s");
        return;
    }
    const char *reason = unfit(&n->info);
    if (reason != NULL) {
        report_say(r, HEALTH_FAIL, "redis",
                   "set the server up as a lock node: one master by itself, noeviction",
                   "%s: version %s, %s", n->address, n->info.version, reason);
        return;
    }
    int64_t ttl_us = longest_lease(config, r->t_max_us);
    int64_t left_us = young_for(config, ttl_us, n);
    bool is_young = left_us > 0;
    char note[128] = "";
    if (is_young) {
        (void)snprintf(note, sizeof note, ": just started, no vote for %lld s",
                       (long long)(left_us / US_PER_S + 1));
    }
    report_say(r, is_young ? HEALTH_WARN : HEALTH_OK, "redis", "wait: it will vote by itself",
               "%s: version %s, master, %s, clock %+.1f ms%s", n->address, n->info.version,
               n->persistence, (double)n->wall_us / US_PER_MS, note);
    check_clock(r, n, drift_of(config, ttl_us));
}

static void check_duplicates(struct report *r, const struct doctor_nodes *all)
{
    for (size_t i = 0; i < all->count; i++) {
        for (size_t k = i + 1; k < all->count; k++) {
            const struct node_check *a = &all->nodes[i];
            const struct node_check *b = &all->nodes[k];
            if (a->is_up && b->is_up && strcmp(a->info.run_id, b->info.run_id) == 0) {
                report_say(r, HEALTH_FAIL, "redis", "name each server once in lock.nodes",
                           "%s and %s are the same server", a->address, b->address);
            }
        }
    }
}

/* Compares our list with the one in the row of the cluster, which is sorted: it must be the same on
 * all hosts. */
static void check_list(struct report *r, const struct doctor_nodes *all)
{
    char list[sizeof r->lock_nodes];
    struct err err = {0};
    const struct config *c = all->config;
    if (redis_endpoint_sorted_list(c->lock.nodes[0], sizeof c->lock.nodes[0], c->lock.node_count,
                                   list, sizeof list, &err) != STATUS_OK) {
        report_say(r, HEALTH_FAIL, "lock nodes", "correct lock.nodes", "%s", err.msg);
        return;
    }
    if (r->lock_nodes[0] != '\0' && strcmp(r->lock_nodes, list) != 0) {
        report_say(r, HEALTH_FAIL, "lock nodes", "give every host the same lock.nodes",
                   "here %s, the cluster has %s", list, r->lock_nodes);
    }
    if (all->count % 2 == 0) {
        report_say(r, HEALTH_WARN, "lock nodes", "use an odd number: 3, 5 or 7",
                   "%zu: an even number tolerates no more failures than one node less", all->count);
    }
}

static void check_quorum(struct report *r, const struct doctor_nodes *all)
{
    size_t up = 0;
    size_t leader = 0;
    size_t quorum = all->count / 2 + 1;
    for (size_t i = 0; i < all->count; i++) {
        up += all->nodes[i].is_up && unfit(&all->nodes[i].info) == NULL;
        leader += all->nodes[i].has_leader;
    }
    report_say(r, up >= quorum ? HEALTH_OK : HEALTH_FAIL, "lock nodes",
               "bring nodes back: below the quorum no job is claimed", "%zu of %zu, quorum %zu", up,
               all->count, quorum);
    if (up < quorum) { /* then no scheduler can lead, and starting one would not help */
        return;
    }
    report_say(r, leader >= quorum ? HEALTH_OK : HEALTH_FAIL, "scheduler",
               "start claimd-scheduler; its log says why it does not lead", "%s",
               leader >= quorum ? "one leads" : "none leads: due jobs are not fed");
}

static void ask_all(struct doctor_nodes *all)
{
    (void)uv_timer_init(&all->loop, &all->limit);
    (void)uv_timer_init(&all->loop, &all->second);
    all->second.data = all;
    timer_start(&all->limit, on_limit, 2 * CONNECT_US / US_PER_MS, 0);
    for (size_t i = 0; i < all->count; i++) {
        struct node_check *n = &all->nodes[i];
        n->is_down = open_node(all, i, &n->why) != STATUS_OK;
    }
    if (!is_finished(all)) {
        (void)uv_run(&all->loop, UV_RUN_DEFAULT);
    }
    for (size_t i = 0; i < all->count; i++) {
        redis_node_close(all->nodes[i].node);
    }
    uv_close((uv_handle_t *)&all->limit, NULL);
    uv_close((uv_handle_t *)&all->second, NULL);
    while (uv_loop_close(&all->loop) == UV_EBUSY) { /* closing may stop the loop again */
        (void)uv_run(&all->loop, UV_RUN_DEFAULT);
    }
}

/* NULL: no memory. Asks all nodes of the configuration, of which there is at least one. */
static struct doctor_nodes *nodes_asked(const struct config *config)
{
    struct doctor_nodes *all = calloc(1, sizeof *all);
    if (all == NULL || uv_loop_init(&all->loop) != 0) {
        free(all);
        return NULL;
    }
    all->config = config;
    all->count = config->lock.node_count;
    ask_all(all);
    return all;
}

void doctor_redis(struct report *r, const struct config *config)
{
    if (config->lock.node_count == 0) {
        report_say(r, HEALTH_FAIL, "lock nodes", "name your Redis masters in lock.nodes",
                   "lock.nodes is empty: 1 to 9 are needed");
        return;
    }
    autofree struct doctor_nodes *all = nodes_asked(config);
    if (all == NULL) {
        report_say(r, HEALTH_FAIL, "redis", "free memory on this host", "out of memory");
        return;
    }
    for (size_t i = 0; i < all->count; i++) {
        check_node(r, config, &all->nodes[i]);
    }
    check_duplicates(r, all);
    check_quorum(r, all);
    check_list(r, all);
}

/* ---- the nodes as a table ---- */

const struct table_column lock_node_columns[LOCK_NODE_COLUMNS] = {
    {"node", CELL_TEXT},       {"state", CELL_TEXT},           {"latency_s", CELL_NUMBER},
    {"clock_s", CELL_NUMBER},  {"version", CELL_TEXT},         {"uptime_s", CELL_NUMBER},
    {"has_leader", CELL_BOOL}, {"why", CELL_TEXT | CELL_PROSE}};

static enum status add_node(struct table *t, const struct config *config, int64_t ttl_us,
                            const struct node_check *n, struct err *err)
{
    char numbers[3][32];
    bool is_there = n->is_up && n->samples > 0;
    const char *reason = is_there ? unfit(&n->info) : NULL;
    bool is_young = is_there && young_for(config, ttl_us, n) > 0;
    const char *said = n->why.msg[0] != '\0' ? n->why.msg : "no answer within 2 s";
    const char *const values[] = {n->address,
                                  !is_there        ? "unreachable"
                                  : reason != NULL ? "unfit"
                                  : is_young       ? "quarantined"
                                                   : "voting",
                                  is_there ? numbers[0] : NULL,
                                  is_there ? numbers[1] : NULL,
                                  is_there ? n->info.version : NULL,
                                  is_there ? numbers[2] : NULL,
                                  n->has_leader ? "t" : "f",
                                  is_there ? reason : said};
    (void)snprintf(numbers[0], sizeof numbers[0], "%.6f", (double)n->latency_us / US_PER_S);
    (void)snprintf(numbers[1], sizeof numbers[1], "%.6f", (double)n->wall_us / US_PER_S);
    (void)snprintf(numbers[2], sizeof numbers[2], "%lld",
                   (long long)(n->info.uptime_us / US_PER_S));
    return table_add(t, values, err);
}

enum status doctor_lock_nodes(struct table *ret, const struct config *config, int64_t t_max_us,
                              struct err *err)
{
    if (config->lock.node_count == 0) {
        return STATUS_OK;
    }
    int64_t ttl_us = longest_lease(config, t_max_us);
    autofree struct doctor_nodes *all = nodes_asked(config);
    enum status st = STATUS_OK;
    if (all == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < all->count && st == STATUS_OK; i++) {
        st = add_node(ret, config, ttl_us, &all->nodes[i], err);
    }
    return st;
}
