/* SPDX-License-Identifier: Apache-2.0 */
#include "hints/nodes.h"

#include "base/clock.h"
#include "base/timer.h"

#include <assert.h>

#define REST_US US_PER_S
#define VERSION_MIN 70000 /* for BZMPOP */

enum state { STATE_UNKNOWN, STATE_UP, STATE_DOWN };

struct node {
    struct hints_nodes *nodes;
    struct redis_node *connection;
    enum state told; /* the state that was reported last */
    char run_id[41]; /* of the last server seen here; "" before the first */
    struct err why;  /* set while it can't be used for a known reason */
    int64_t rest_until_us;
    bool is_connected;
    bool is_empty_memory;
};

struct hints_nodes {
    struct hints_options user;
    hints_nodes_up_cb *on_up;
    void *ctx;
    uv_timer_t timer; /* reports changes, which is never done from inside a call */
    struct node list[HINTS_NODES_MAX];
    size_t count;
};

static enum state state_now(const struct node *n, int64_t now_us)
{
    if (n->is_connected && now_us >= n->rest_until_us) {
        return STATE_UP;
    }
    return n->why.status == STATUS_OK ? STATE_UNKNOWN : STATE_DOWN;
}

static void tell(struct hints_nodes *nodes, size_t i)
{
    struct node *n = &nodes->list[i];
    enum state now = state_now(n, clock_boot_us());
    if (now == n->told || now == STATE_UNKNOWN) {
        return;
    }
    n->told = now;
    bool is_up = now == STATE_UP;
    bool is_empty_memory = is_up && n->is_empty_memory;
    if (is_up) {
        n->is_empty_memory = false;
        n->why = (struct err){0};
    }
    if (nodes->user.on_node != NULL) {
        nodes->user.on_node(nodes->user.ctx, i, is_up, is_empty_memory, is_up ? NULL : &n->why);
    }
    if (is_up && nodes->on_up != NULL) {
        nodes->on_up(nodes->ctx, i);
    }
}

static void on_timer(uv_timer_t *timer);

/* Wakes up at once if a change is to be reported, otherwise at the end of the next rest. */
static void plan(struct hints_nodes *nodes)
{
    int64_t now_us = clock_boot_us();
    int64_t wait_us = INT64_MAX;
    for (size_t i = 0; i < nodes->count; i++) {
        const struct node *n = &nodes->list[i];
        enum state now = state_now(n, now_us);
        if (now != n->told && now != STATE_UNKNOWN) {
            wait_us = 0;
        } else if (n->is_connected && n->rest_until_us > now_us) {
            int64_t rest_us = n->rest_until_us - now_us;
            wait_us = rest_us < wait_us ? rest_us : wait_us;
        }
    }
    if (wait_us != INT64_MAX) {
        timer_start(&nodes->timer, on_timer, (uint64_t)((wait_us + US_PER_MS - 1) / US_PER_MS), 0);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct hints_nodes *nodes = timer->data;
    for (size_t i = 0; i < nodes->count; i++) {
        tell(nodes, i);
    }
    plan(nodes);
}

static enum status on_connected(void *ctx, struct redis_node *connection,
                                const struct redis_server_info *info, struct err *err)
{
    struct node *n = ctx;
    (void)connection;
    if (!info->is_master) {
        return err_fail(err, STATUS_INVALID, "a replica can't hold hints");
    }
    if (info->is_cluster) {
        return err_fail(err, STATUS_INVALID, "a node of a Redis Cluster can't hold hints");
    }
    if (info->version_number < VERSION_MIN) {
        return err_fail(err, STATUS_INVALID, "version %s: hints need Redis 7.0 or newer",
                        info->version);
    }
    if (n->run_id[0] != '\0' && strcmp(n->run_id, info->run_id) != 0) {
        n->is_empty_memory = true;
    }
    memcpy(n->run_id, info->run_id, sizeof n->run_id);
    n->is_connected = true;
    n->rest_until_us = 0;
    plan(n->nodes);
    return STATUS_OK;
}

static void on_disconnected(void *ctx, struct redis_node *connection, const struct err *why)
{
    struct node *n = ctx;
    (void)connection;
    n->is_connected = false;
    n->why = *why;
    n->told = STATE_UNKNOWN; /* a node that was down may be refused by now: report that, too */
    plan(n->nodes);
}

void hints_nodes_rest(struct hints_nodes *nodes, size_t node, const struct err *why)
{
    assert(node < nodes->count && why->status != STATUS_OK);
    nodes->list[node].rest_until_us = clock_boot_us() + REST_US;
    nodes->list[node].why = *why;
    nodes->list[node].why.status = STATUS_INVALID;
    plan(nodes);
}

enum status hints_nodes_set_password(struct hints_nodes *nodes, const char *password,
                                     struct err *err)
{
    enum status st = STATUS_OK;
    for (size_t i = 0; i < nodes->count && st == STATUS_OK; i++) {
        st = redis_node_set_password(nodes->list[i].connection, password, err);
    }
    return st;
}

size_t hints_nodes_count(const struct hints_nodes *nodes)
{
    return nodes->count;
}

/* A node that was not reported as up is not up yet; a node that is known to be down is down at
 * once. */
bool hints_nodes_is_up(const struct hints_nodes *nodes, size_t node)
{
    const struct node *n = &nodes->list[node];
    return n->told == STATE_UP && state_now(n, clock_boot_us()) == STATE_UP;
}

int hints_nodes_first_up(const struct hints_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        if (hints_nodes_is_up(nodes, i)) {
            return (int)i;
        }
    }
    return -1;
}

struct redis_node *hints_nodes_connection(const struct hints_nodes *nodes, size_t node)
{
    return nodes->list[node].connection;
}

static void on_timer_closed(uv_handle_t *timer)
{
    free(timer->data);
}

void hints_nodes_close(struct hints_nodes *nodes)
{
    if (nodes == NULL) {
        return;
    }
    for (size_t i = 0; i < nodes->count; i++) {
        redis_node_close(TAKE(nodes->list[i].connection));
        nodes->list[i].is_connected = false;
    }
    uv_close((uv_handle_t *)&nodes->timer, on_timer_closed);
}

static enum status connect_node(struct hints_nodes *nodes, size_t i,
                                const struct hints_nodes_options *options, struct err *err)
{
    struct node *n = &nodes->list[i];
    n->nodes = nodes;
    struct redis_options redis = {.loop = options->user->loop,
                                  .endpoint = options->user->nodes[i],
                                  .connect_timeout_us = options->user->timeout_us,
                                  .scripts = &options->script,
                                  .script_count = options->script == NULL ? 0 : 1,
                                  .on_up = on_connected,
                                  .on_down = on_disconnected,
                                  .ctx = n};
    enum status st = redis_node_open(&redis, &n->connection, err);
    if (st != STATUS_OK) {
        return st;
    }
    nodes->count = i + 1;
    return STATUS_OK;
}

enum status hints_nodes_open(const struct hints_nodes_options *options,
                             struct hints_nodes **ret_nodes, struct err *err)
{
    const struct hints_options *user = options->user;
    assert(user->node_count >= 1 && user->node_count <= HINTS_NODES_MAX);
    struct hints_nodes *nodes = calloc(1, sizeof *nodes);
    if (nodes == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the hint nodes");
    }
    nodes->user = *user;
    nodes->on_up = options->on_up;
    nodes->ctx = options->ctx;
    (void)uv_timer_init(user->loop, &nodes->timer); /* can't fail */
    nodes->timer.data = nodes;
    for (size_t i = 0; i < user->node_count; i++) {
        enum status st = connect_node(nodes, i, options, err);
        if (st != STATUS_OK) {
            hints_nodes_close(nodes);
            return st;
        }
    }
    *ret_nodes = nodes;
    return STATUS_OK;
}
