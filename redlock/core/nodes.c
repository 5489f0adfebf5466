/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes of a lock object: which server runs there, whether it may vote, whether it is in
 * quarantine. */
#include "base/bug.h"
#include "base/clock.h"
#include "redis/info.h"
#include "redis/tls.h"
#include "redlock/core/core.h"
#include "redlock/core/scripts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

/* needed for frozen time in scripts (lock.N6) and several sections in one INFO */
#define VERSION_MIN 70000

#define CONNECT_TIMEOUTS 5 /* × τ */
#define CHECK_EVERY_MAX_US (10 * US_PER_S)

#define PAUSE_OF_CONFIG_US (5 * US_PER_S) /* an operator must act first */
#define PAUSE_OF_NODE_US US_PER_S         /* doubled each time, up to PAUSE_OF_CONFIG_US */
#define PAUSE_FORGOTTEN_US (10 * US_PER_S)

static void tell(struct node_slot *n, enum redlock_event_kind event, const char *why)
{
    if (n->lock->options.on_node != NULL && !n->lock->is_closing) {
        int64_t until_us = event == REDLOCK_EVENT_QUARANTINED ? n->quarantine_until_us : 0;
        n->lock->options.on_node(n->lock->options.ctx, n->index, event, until_us, why);
    }
}

/* Writes "host:port: text". */
static void put_why(const struct node_slot *n, char *ret_why, const char *text)
{
    char name[REDIS_ENDPOINT_TEXT_SIZE];
    struct err err = {0};
    redis_endpoint_text(redis_node_endpoint(n->redis), name, sizeof name);
    err_set(&err, STATUS_UNAVAILABLE, 0, "%s: %s", name, text);
    (void)snprintf(ret_why, REDLOCK_MESSAGE_SIZE, "%.*s", REDLOCK_MESSAGE_SIZE - 1, err.msg);
}

/* N7 */
static struct node_slot *same_server(const struct node_slot *n, const char *run_id)
{
    struct redlock_async *lock = n->lock;
    for (size_t i = 0; i < lock->options.node_count; i++) {
        struct node_slot *other = &lock->nodes[i];
        if (other != n && other->redis != NULL && redis_node_is_up(other->redis) &&
            !other->is_refused && strcmp(other->run_id, run_id) == 0) {
            return other;
        }
    }
    return NULL;
}

/* N3, N5, N6, N7 */
static enum status judge(const struct node_slot *n, const struct redis_server_info *info,
                         struct err *err)
{
    struct node_slot *same = same_server(n, info->run_id);
    if (same != NULL) {
        char name[REDIS_ENDPOINT_TEXT_SIZE];
        redis_endpoint_text(redis_node_endpoint(same->redis), name, sizeof name);
        redis_node_doubt(same->redis); /* that server may have moved to our node's name */
        return err_fail(err, STATUS_CONFLICT,
                        "the same server as node %s: name each server once, under one address",
                        name);
    }
    if (info->version_number < VERSION_MIN) {
        return err_fail(err, STATUS_INVALID, "version %s: lock nodes need Redis 7.0 or Valkey 7.2",
                        info->version);
    }
    if (n->lock->options.allow_unsafe) {
        return STATUS_OK;
    }
    if (!info->is_master) {
        return err_fail(err, STATUS_INVALID,
                        "a replica: lock nodes are independent masters, name one instead");
    }
    if (info->is_cluster) {
        return err_fail(err, STATUS_INVALID,
                        "part of a Redis Cluster: lock nodes run with cluster-enabled no");
    }
    if (info->replica_count > 0) {
        return err_fail(err, STATUS_INVALID,
                        "it has %d replicas, and a failover would forget locks: detach them",
                        info->replica_count);
    }
    if (info->may_evict) {
        return err_fail(err, STATUS_INVALID,
                        "maxmemory-policy %s evicts locks: set it to noeviction, or maxmemory to 0",
                        info->evict_policy);
    }
    return STATUS_OK;
}

static int64_t memory_for(const struct redlock_async *lock, int64_t ttl_us)
{
    return ttl_us + lease_drift_us(ttl_us, lock->options.drift_ppm);
}

/* Returns T_max + D, where T_max includes what other clients have stored on the nodes
 * (lock.N10). */
static int64_t memory_us(const struct redlock_async *lock)
{
    int64_t ttl_us = lock->options.ttl_max_us;
    for (size_t i = 0; i < lock->options.node_count; i++) {
        ttl_us = lock->nodes[i].ttl_max_us > ttl_us ? lock->nodes[i].ttl_max_us : ttl_us;
    }
    return memory_for(lock, ttl_us);
}

/* Suspends the node's vote until then; a longer quarantine stands. */
static void quarantine(struct node_slot *n, int64_t until_us, const char *why)
{
    if (until_us > n->quarantine_until_us) {
        n->quarantine_until_us = until_us;
    }
    n->is_quarantined = true;
    put_why(n, n->quarantine_why, why);
    core_wake_at(n->lock, n->quarantine_until_us);
}

/* Quarantines the node because it may have forgotten locks that were there before `since_us`. */
static void quarantine_since(struct node_slot *n, int64_t since_us, int64_t now_us, const char *why)
{
    int64_t until_us = since_us + memory_us(n->lock);
    n->lost_memory_us = since_us;
    if (until_us > now_us) {
        quarantine(n, until_us, why);
    }
}

/* N1: a server that lost its memory may have forgotten locks on which clients still rely, so it has
 * no vote until all of those have ended. It started between now − uptime − 1 s and now − uptime:
 * the later time counts. The uptime depends on its wall clock, which may have stepped; but it can't
 * have started before we lost the connection to its predecessor. */
static void quarantine_fresh(struct node_slot *n, const struct redis_server_info *info,
                             int64_t now_us)
{
    const struct redlock_async *lock = n->lock;
    bool is_first = n->run_id[0] == '\0';
    int64_t start_us = now_us - info->uptime_us;
    if (!is_first && start_us < n->down_us) {
        start_us = n->down_us;
    }
    if (!SEEDED_BUG(11) && !(is_first && lock->options.trust_fresh)) {
        quarantine_since(n, start_us, now_us,
                         is_first ? "was started a moment ago and may have forgotten locks"
                                  : "was started again and has forgotten its locks");
    }
}

/* N2 */
static void drop_votes(const struct node_slot *n)
{
    acquire_drop_votes(n->lock, n->index);
    keeper_drop_votes(n->lock, n->index);
}

static void distrust(struct node_slot *n)
{
    n->has_forgotten = true;
    int64_t now_us = clock_boot_us();
    quarantine_since(n, now_us, now_us,
                     "has forgotten its locks: it was flushed, reloaded or a replica");
}

void node_forgot(struct node_slot *n)
{
    n->is_known = false;
    distrust(n);
    tell(n, REDLOCK_EVENT_QUARANTINED, n->quarantine_why);
    drop_votes(n);
    canary_ask(n);
}

/* True for a server that is older than its canary: it has lost an earlier canary, or is used for
 * the first time. In the latter case a client that comes later with longer locks should not
 * distrust it, so our own T_max is the limit. */
static bool may_have_lost_one(const struct node_slot *n, int64_t age_us)
{
    int64_t memory = memory_for(n->lock, n->lock->options.ttl_max_us);
    bool is_trusted = n->is_first && n->lock->options.trust_fresh;
    return !is_trusted && age_us < memory && n->info.uptime_us > memory;
}

void node_known(struct node_slot *n, bool is_another, int64_t age_us)
{
    n->is_known = true;
    if (is_another) {
        distrust(n);
        drop_votes(n);
    } else if (may_have_lost_one(n, age_us)) {
        quarantine(n, clock_boot_us() - age_us + memory_for(n->lock, n->lock->options.ttl_max_us),
                   "is used for locks since a moment ago, or was flushed");
    }
    if (!TAKE(n->is_up_untold)) {
        return;
    }
    if (n->is_quarantined) {
        tell(n, REDLOCK_EVENT_QUARANTINED, n->quarantine_why);
    } else {
        tell(n, REDLOCK_EVENT_UP, "");
    }
    line_ask_rights(n);
}

/* Checks, since locks are longer than we knew, whether a node's memory is too short for them. A new
 * client considers losses of any age. Later, only losses that are so recent that we may not have
 * known of the longer ttl yet: a client with a longer ttl than all before must not stop the
 * others. */
void node_said_ttl_max(struct node_slot *n, int64_t ttl_max_us)
{
    struct redlock_async *lock = n->lock;
    int64_t now_us = clock_boot_us();
    int64_t before_us = memory_us(lock);
    bool is_new = n->ttl_max_us == 0;
    n->ttl_max_us = ttl_max_us;
    bool is_longer = memory_us(lock) > before_us;
    for (size_t i = 0; i < lock->options.node_count && is_longer; i++) {
        struct node_slot *m = &lock->nodes[i];
        bool counts = m->lost_memory_us > 0 &&
                      (is_new || m->lost_memory_us > now_us - 2 * CHECK_EVERY_MAX_US);
        bool had_vote = !m->is_quarantined;
        if (!counts) {
            continue;
        }
        quarantine_since(m, m->lost_memory_us, now_us,
                         "may have forgotten locks: some clients have longer ones than ours");
        if (had_vote && m->is_quarantined) {
            tell(m, REDLOCK_EVENT_QUARANTINED, m->quarantine_why);
            drop_votes(m);
        }
    }
}

/* A server that evicts keys, or copied those of another server, may have forgotten locks as after a
 * restart. */
static enum status admit(struct node_slot *n, const struct redis_server_info *info, struct err *err)
{
    enum status st = judge(n, info, err);
    if (st != STATUS_OK && (info->may_evict || !info->is_master)) {
        int64_t now_us = clock_boot_us();
        quarantine_since(n, now_us, now_us,
                         info->may_evict ? "may have evicted locks"
                                         : "was a replica of another server");
        drop_votes(n);
    }
    return st;
}

static void take_server(struct node_slot *n, const struct redis_server_info *info)
{
    bool is_another = n->run_id[0] != '\0';
    quarantine_fresh(n, info, n->up_us);
    memcpy(n->run_id, info->run_id, sizeof n->run_id);
    n->canary[0] = '\0';
    n->has_forgotten = false;
    n->is_first = !is_another;
    n->clock = (struct clockwatch){0};
    if (is_another) {
        drop_votes(n);
    }
}

/* ---- checks of a node that is up, which may have to be refused by now: N3, N5 ---- */

static void check_later(struct node_slot *n, int64_t now_us)
{
    int64_t every_us = n->lock->options.ttl_max_us;
    n->check_us = now_us + (every_us < CHECK_EVERY_MAX_US ? every_us : CHECK_EVERY_MAX_US);
    core_wake_at(n->lock, n->check_us);
}

static void on_checked(void *ctx, size_t index, const struct redis_value *v)
{
    struct node_slot *n = ctx;
    struct redis_server_info now;
    struct err err = {0};
    if (index > 0) {
        ttl_max_take(n, v);
        return;
    }
    if (v->type != REDIS_STRING || redis_info_parse(v->text, v->len, &now, NULL) != STATUS_OK) {
        return; /* in trouble, or no longer permitted: acquisitions will find out */
    }
    n->check_took_us = clock_boot_us() - n->check_sent_us;
    n->info.memory_bytes = now.memory_bytes;
    n->info.is_master = now.is_master;
    n->info.replica_count = now.replica_count;
    n->info.may_evict = now.may_evict;
    memcpy(n->info.evict_policy, now.evict_policy, sizeof now.evict_policy);
    if (admit(n, &n->info, &err) != STATUS_OK) {
        redis_node_refuse(n->redis, &err);
    }
}

static void check(struct node_slot *n, int64_t now_us)
{
    static const struct redis_arg words[] = {
        {"INFO", 4}, {"server", 6}, {"memory", 6}, {"replication", 11}, {"cluster", 7}};
    autobuf struct buf out = BUF_INIT(256);
    check_later(n, now_us);
    enum status st = redis_command(&out, words, ARRAY_COUNT(words), NULL);
    if (st == STATUS_OK) {
        st = ttl_max_put(n->lock, &out);
    }
    if (st == STATUS_OK) {
        const struct redis_request request = {.bytes = buf_at(&out),
                                              .len = out.len,
                                              .reply_count = 2,
                                              .timeout_us = n->lock->options.node_timeout_us *
                                                            CONNECT_TIMEOUTS,
                                              .on_reply = on_checked,
                                              .ctx = n};
        n->check_sent_us = now_us;
        st = redis_node_send(n->redis, &request, NULL);
    }
    (void)st; /* no memory: the next check repeats it */
}

static enum status on_up(void *ctx, struct redis_node *redis, const struct redis_server_info *info,
                         struct err *err)
{
    struct node_slot *n = ctx;
    (void)redis;
    n->info = *info;
    enum status st = admit(n, info, err);
    n->is_refused = st != STATUS_OK;
    if (n->is_refused) {
        return st;
    }
    n->up_us = clock_boot_us();
    check_later(n, n->up_us);
    if (strcmp(n->run_id, info->run_id) != 0) {
        take_server(n, info);
    }
    release_node_up(n->lock, n->index);
    n->is_up_untold = true;
    ttl_max_ask(n);
    canary_ask(n);
    return STATUS_OK;
}

static void on_down(void *ctx, struct redis_node *redis, const struct err *why)
{
    struct node_slot *n = ctx;
    (void)redis;
    n->is_refused = why->status == STATUS_INVALID;
    n->is_known = false;
    n->down_us = clock_boot_us();
    (void)snprintf(n->down_why, sizeof n->down_why, "%.*s", REDLOCK_MESSAGE_SIZE - 1, why->msg);
    tell(n, n->is_refused ? REDLOCK_EVENT_REFUSED : REDLOCK_EVENT_DOWN, n->down_why);
}

enum status nodes_parse(const struct redlock_node *nodes, size_t count,
                        struct redis_endpoint ret_endpoints[REDLOCK_NODES_MAX], struct err *err)
{
    char a[REDIS_ENDPOINT_TEXT_SIZE];
    char b[REDIS_ENDPOINT_TEXT_SIZE];
    if (nodes == NULL || count < 1 || count > REDLOCK_NODES_MAX) {
        return err_fail(err, STATUS_INVALID, "redlock: %zu nodes, allowed are 1 to %d", count,
                        REDLOCK_NODES_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        struct redis_endpoint *e = &ret_endpoints[i];
        const char *url = nodes[i].url == NULL ? "" : nodes[i].url;
        enum status st = redis_endpoint_parse(url, e, err);
        if (st == STATUS_OK) {
            st = redis_endpoint_login(e, nodes[i].user, nodes[i].password, err);
        }
        if (st != STATUS_OK) {
            err_prefix(err, "redlock: node %zu", i + 1);
            return st;
        }
        redis_endpoint_text(e, a, sizeof a);
        for (size_t j = 0; j < i; j++) {
            redis_endpoint_text(&ret_endpoints[j], b, sizeof b);
            if ((e->path[0] != '\0' ? strcmp(a, b) : strcasecmp(a, b)) == 0) {
                return err_fail(err, STATUS_INVALID, "redlock: node %s is named twice", a);
            }
        }
        if (e->db != ret_endpoints[0].db) { /* lock.K3 */
            return err_fail(err, STATUS_INVALID,
                            "redlock: node %s uses database %d, the first one %d", a, e->db,
                            ret_endpoints[0].db);
        }
    }
    return STATUS_OK;
}

static enum status make_tls(struct redlock_async *lock, const struct redis_endpoint *endpoints,
                            struct err *err)
{
    const struct redlock_tls *o = TAKE(lock->options.tls); /* the caller owns its texts */
    const struct redis_endpoint *first = NULL;             /* first node with TLS */
    for (size_t i = lock->options.node_count; i > 0; i--) {
        first = endpoints[i - 1].is_tls ? &endpoints[i - 1] : first;
    }
    if (o == NULL || first == NULL) {
        return STATUS_OK;
    }
    const struct redis_tls_options options = {.ca_file = o->ca_file,
                                              .cert_file = o->cert_file,
                                              .key_file = o->key_file,
                                              .server_name = o->server_name};
    enum status st = redis_tls_new(&options, &lock->tls, err);
    if (st != STATUS_OK) {
        char name[REDIS_ENDPOINT_TEXT_SIZE];
        redis_endpoint_text(first, name, sizeof name);
        err_prefix(err, "redlock: node %s", name);
    }
    return st;
}

enum status nodes_open(struct redlock_async *lock, const struct redis_endpoint *endpoints,
                       struct err *err)
{
    enum status st = make_tls(lock, endpoints, err);
    for (size_t i = 0; st == STATUS_OK && i < lock->options.node_count; i++) {
        struct node_slot *n = &lock->nodes[i];
        *n = (struct node_slot){.lock = lock, .index = i, .clock_offset_us = INT64_MIN};
        const struct redis_options options = {
            .loop = lock->options.loop,
            .endpoint = endpoints[i],
            .tls = lock->tls,
            /* It delays nothing else, so it may take longer than a vote. */
            .connect_timeout_us = lock->options.node_timeout_us * CONNECT_TIMEOUTS,
            .scripts = scripts_all,
            .script_count = lock->options.no_line ? SCRIPTS_WITHOUT_LINES : SCRIPTS_COUNT,
            .on_up = on_up,
            .on_down = on_down,
            .ctx = n,
        };
        st = redis_node_open(&options, &n->redis, err);
    }
    return st;
}

void nodes_close(struct redlock_async *lock)
{
    for (size_t i = 0; i < lock->options.node_count; i++) {
        redis_node_close(TAKE(lock->nodes[i].redis));
    }
    redis_tls_free(TAKE(lock->tls));
}

bool node_may_vote(const struct node_slot *n)
{
    return n->redis != NULL && redis_node_is_up(n->redis) && n->is_known && !n->is_quarantined;
}

/* A node that refuses again as soon as it may vote is still in the same trouble: the pause
 * doubles. */
static int64_t next_pause_us(const struct node_slot *n, enum redis_error_class class,
                             int64_t now_us)
{
    bool is_same = n->pause_us > 0 && now_us - n->pause_end_us < PAUSE_FORGOTTEN_US;
    int64_t pause_us = is_same ? 2 * n->pause_us : PAUSE_OF_NODE_US;
    return class == REDIS_ERROR_CONFIG || pause_us > PAUSE_OF_CONFIG_US ? PAUSE_OF_CONFIG_US
                                                                        : pause_us;
}

void node_note_error(struct node_slot *n, const struct redis_value *v)
{
    enum redis_error_class class = redis_error_class(v);
    if (class == REDIS_ERROR_NONE || class == REDIS_ERROR_KEY || n->is_quarantined) {
        return;
    }
    int64_t now_us = clock_boot_us();
    n->pause_us = next_pause_us(n, class, now_us);
    n->pause_end_us = now_us + n->pause_us;
    quarantine(n, n->pause_end_us, v->text);
    tell(n, REDLOCK_EVENT_REFUSED, n->quarantine_why);
}

void node_warn(struct node_slot *n, const char *text)
{
    char why[REDLOCK_MESSAGE_SIZE];
    put_why(n, why, text);
    tell(n, REDLOCK_EVENT_WARNED, why);
}

void node_clock_stepped(struct node_slot *n, int64_t step_us)
{
    char text[80];
    char why[REDLOCK_MESSAGE_SIZE];
    int64_t ms = (step_us > 0 ? step_us : -step_us) / US_PER_MS;
    if (step_us < 0) {
        (void)snprintf(text, sizeof text, "its clock went back by %" PRId64 " ms: keys live longer",
                       ms);
        put_why(n, why, text);
        tell(n, REDLOCK_EVENT_WARNED, why);
        return;
    }
    (void)snprintf(text, sizeof text, "its clock went ahead by %" PRId64 " ms: keys ended early",
                   ms);
    int64_t now_us = clock_boot_us();
    quarantine_since(n, now_us, now_us, text);
    tell(n, REDLOCK_EVENT_QUARANTINED, n->quarantine_why);
    drop_votes(n);
}

void redlock_async_node(const struct redlock_async *lock, size_t node,
                        struct redlock_node_info *ret_info)
{
    assert(node < lock->options.node_count);
    const struct node_slot *n = &lock->nodes[node];
    const struct redis_server_info *i = &n->info;
    int64_t now_us = clock_boot_us();
    *ret_info = (struct redlock_node_info){
        .is_up = redis_node_is_up(n->redis),
        .may_vote = node_may_vote(n),
        .is_master = i->is_master,
        .has_native = i->has_set_ifeq && (i->has_delifeq || i->has_delex),
        .clock_offset_us = n->clock_offset_us,
    };
    redis_endpoint_text(redis_node_endpoint(n->redis), ret_info->name, sizeof ret_info->name);
    memcpy(ret_info->server, i->server, sizeof i->server);
    memcpy(ret_info->version, i->version, sizeof i->version);
    memcpy(ret_info->run_id, i->run_id, sizeof i->run_id);
    memcpy(ret_info->evict_policy, i->evict_policy, sizeof i->evict_policy);
    if (ret_info->is_up) {
        ret_info->uptime_ms = (i->uptime_us + now_us - n->up_us) / US_PER_MS;
    }
    if (n->is_quarantined && n->quarantine_until_us > now_us) {
        ret_info->quarantine_ms = (n->quarantine_until_us - now_us) / US_PER_MS;
    }
    if (!ret_info->may_vote) {
        memcpy(ret_info->why, ret_info->is_up ? n->quarantine_why : n->down_why,
               sizeof ret_info->why);
    }
}

void redlock_async_load(const struct redlock_async *lock, size_t node,
                        struct redlock_async_load *ret_load)
{
    assert(node < lock->options.node_count);
    const struct node_slot *n = &lock->nodes[node];
    *ret_load = (struct redlock_async_load){0};
    if (redis_node_is_up(n->redis)) {
        ret_load->reply_us = n->check_took_us;
        ret_load->memory_bytes = n->info.memory_bytes;
    }
}

int64_t nodes_tick(struct redlock_async *lock, int64_t now_us)
{
    int64_t wake_us = INT64_MAX;
    for (size_t i = 0; i < lock->options.node_count; i++) {
        struct node_slot *n = &lock->nodes[i];
        if (redis_node_is_up(n->redis)) {
            if (now_us >= n->check_us) {
                check(n, now_us);
            }
            wake_us = n->check_us < wake_us ? n->check_us : wake_us;
        }
        if (!n->is_quarantined) {
            continue;
        }
        if (now_us < n->quarantine_until_us) {
            wake_us = n->quarantine_until_us < wake_us ? n->quarantine_until_us : wake_us;
            continue;
        }
        n->is_quarantined = false;
        n->has_forgotten = false;
        if (!redis_node_is_up(n->redis)) {
            continue;
        }
        if (n->is_known) {
            tell(n, REDLOCK_EVENT_VOTING, "");
        } else { /* it could not be asked so far */
            n->is_up_untold = true;
            canary_ask(n);
        }
    }
    return wake_us;
}
