/* SPDX-License-Identifier: Apache-2.0 */
#include "redis/node.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/timer.h"

#include <assert.h>
#include <netdb.h>

#define RETRY_MIN_US (50 * US_PER_MS) /* lock.C2 */
#define RETRY_MAX_US (5 * US_PER_S)
#define RETRY_DOUBLINGS_MAX 7 /* 50 ms · 2^7 is past the maximum */
#define NODE_HANDLES 4
/* fraction of the time to connect that a lookup may take before its last answer is used */
#define NAME_SHARE 4

static void node_connect(struct redis_node *n);
static void connect_by_answer(struct redis_node *n);
static void on_timer(uv_timer_t *timer);

static void arm(struct redis_node *n, int64_t at_us)
{
    if (at_us == INT64_MAX || (n->timer_at_us != 0 && n->timer_at_us <= at_us)) {
        return;
    }
    int64_t wait_us = at_us - clock_boot_us();
    uint64_t wait_ms = wait_us <= 0 ? 0 : (uint64_t)((wait_us + US_PER_MS - 1) / US_PER_MS);
    n->timer_at_us = at_us;
    timer_start(&n->timer, on_timer, wait_ms, 0);
}

static void disconnect(struct redis_node *n)
{
    link_close(n->link);
    n->link = NULL;
    (void)uv_timer_stop(&n->timer);
    n->timer_at_us = 0;
    (void)uv_prepare_stop(&n->flush);
    (void)uv_idle_stop(&n->no_wait);
    (void)uv_check_stop(&n->overdue);
}

static void retry_later(struct redis_node *n)
{
    int64_t ceiling = RETRY_MIN_US << n->tries;
    if (ceiling > RETRY_MAX_US) {
        ceiling = RETRY_MAX_US;
    }
    if (n->tries < RETRY_DOUBLINGS_MAX) {
        n->tries++;
    }
    n->retry_us = clock_boot_us() + rand_below(&n->rand, ceiling);
    arm(n, n->retry_us);
}

static void go_down(struct redis_node *n, const struct err *reason, bool is_refusal)
{
    struct err why = *reason;
    char name[REDIS_ENDPOINT_TEXT_SIZE];
    redis_endpoint_text(&n->options.endpoint, name, sizeof name);
    err_prefix(&why, "%s", name);
    if (is_refusal) {
        why.status = STATUS_INVALID;
    } else if (why.status == STATUS_INVALID) {
        why.status = STATUS_UNAVAILABLE;
    }
    disconnect(n);
    if (n->state == NODE_UP && !is_refusal) { /* nothing was ever sent to refused servers */
        stale_add(&n->stale, &n->handshake.info);
    }
    n->state = NODE_WAITING;
    if (is_refusal && reason->status != STATUS_CONFLICT) {
        n->tries = RETRY_DOUBLINGS_MAX;
    }
    retry_later(n);
    requests_end_all(&n->requests, clock_boot_us());
    bool is_news = !n->is_down_told || (is_refusal && !n->is_refusal_told);
    n->is_down_told = true;
    n->is_refusal_told = n->is_refusal_told || is_refusal;
    if (is_news && n->state != NODE_CLOSED && n->options.on_down != NULL) {
        n->options.on_down(n->options.ctx, n, &why);
    }
}

static bool is_overdue(const struct redis_node *n, int64_t now)
{
    if (n->state == NODE_CONNECTING || n->state == NODE_GREETING) {
        return now >= n->give_up_us;
    }
    return requests_earliest_us(&n->requests) <= now;
}

/* True if the name is still being looked up while an earlier answer is known. */
static bool may_use_kept(const struct redis_node *n)
{
    return n->state == NODE_CONNECTING && n->link == NULL && resolver_answer(n->resolver) != NULL;
}

static void arm_next(struct redis_node *n)
{
    if (n->state == NODE_CONNECTING || n->state == NODE_GREETING) {
        arm(n, may_use_kept(n) ? n->kept_us : n->give_up_us);
        return;
    }
    arm(n, requests_earliest_us(&n->requests));
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle;
}

static void let_loop_wait(struct redis_node *n)
{
    if (!uv_is_active((uv_handle_t *)&n->flush) && !uv_is_active((uv_handle_t *)&n->overdue)) {
        (void)uv_idle_stop(&n->no_wait);
    }
}

static const char *lacks(const struct redis_node *n)
{
    if (n->state == NODE_UP) {
        return "no reply in time";
    }
    return n->link != NULL ? link_lacks(n->link) : "no address in time: the name server hangs";
}

static void on_overdue(uv_check_t *check)
{
    struct redis_node *n = check->data;
    (void)uv_check_stop(check);
    let_loop_wait(n);
    if (!is_overdue(n, clock_boot_us())) {
        arm_next(n);
        return;
    }
    if (SEEDED_BUG(8) && n->state == NODE_UP) {
        requests_end_all(&n->requests, clock_boot_us());
        return;
    }
    struct err why = {0};
    err_set(&why, STATUS_TIMEOUT, 0, "%s", lacks(n));
    go_down(n, &why, false);
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_node *n = timer->data;
    int64_t now = clock_boot_us();
    n->timer_at_us = 0;
    if (n->state == NODE_WAITING) {
        if (now >= n->retry_us) {
            node_connect(n);
        } else {
            arm(n, n->retry_us);
        }
    } else if (may_use_kept(n) && now >= n->kept_us) {
        connect_by_answer(n);
    } else if (is_overdue(n, now)) {
        /* libuv runs timers before it reads sockets: after a stall of our own the replies may have
         * arrived already, so the decision is made after this turn's reading. */
        (void)uv_check_start(&n->overdue, on_overdue);
        (void)uv_idle_start(&n->no_wait, on_idle);
    } else {
        arm_next(n);
    }
}

static void on_flush(uv_prepare_t *prepare)
{
    struct redis_node *n = prepare->data;
    (void)uv_prepare_stop(prepare);
    let_loop_wait(n);
    arm(n, requests_written(&n->requests, clock_boot_us()));
    link_flush(n->link);
}

void node_flush_this_turn(struct redis_node *n)
{
    (void)uv_prepare_start(&n->flush, on_flush);
    (void)uv_idle_start(&n->no_wait, on_idle);
}

static void on_killed(void *ctx, enum status st)
{
    struct redis_node *n = ctx;
    if (st == STATUS_OK) {
        n->stale.count = 0;
    }
}

/* Kills earlier connections without waiting for the replies: the server runs commands in order. */
static enum status kill_stale(struct redis_node *n, struct err *err)
{
    autobuf struct buf out = BUF_INIT(STALE_MAX * 128);
    stale_judge(&n->stale, &n->handshake.info, n->handshake.may_kill);
    if (n->stale.count == 0 || !n->handshake.may_kill) {
        return STATUS_OK;
    }
    enum status st = stale_append(&n->stale, &out, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct redis_request request = {.bytes = buf_at(&out),
                                          .len = out.len,
                                          .reply_count = n->stale.count,
                                          .timeout_us = n->options.connect_timeout_us,
                                          .on_done = on_killed,
                                          .ctx = n};
    return redis_node_send(n, &request, err);
}

static void greeted(struct redis_node *n)
{
    struct err err = {0};
    bool goes_on = false;
    enum status st = handshake_go_on(&n->handshake, link_out(n->link), &goes_on, &err);
    if (st != STATUS_OK) {
        go_down(n, &err, false);
        return;
    }
    if (goes_on) {
        node_flush_this_turn(n);
        return;
    }
    if (n->handshake.err.status != STATUS_OK) {
        go_down(n, &n->handshake.err, n->handshake.is_config);
        return;
    }
    n->state = NODE_UP;
    st = kill_stale(n, &err);
    if (st != STATUS_OK) {
        go_down(n, &err, false);
        return;
    }
    if (n->options.on_up != NULL) {
        st = n->options.on_up(n->options.ctx, n, &n->handshake.info, &err);
    }
    if (n->state != NODE_UP) {
        return;
    }
    if (st != STATUS_OK) {
        err_set(&err, st, 0, "refused");
        go_down(n, &err, true);
        return;
    }
    n->tries = 0;
    n->is_down_told = false;
    n->is_refusal_told = false;
}

static void take_reply(struct redis_node *n, const struct redis_value *v)
{
    struct link *l = n->link;
    struct request *r = n->requests.queue.first;
    if (r->script != NULL && redis_error_class(v) == REDIS_ERROR_NOSCRIPT && node_resend_whole(n)) {
        return;
    }
    if (r->on_reply != NULL) {
        r->on_reply(r->ctx, r->replies_seen, v);
    }
    if (n->link != l) {
        return; /* the callback closed the node, and with it the request */
    }
    r->replies_seen++;
    if (r->replies_seen == r->reply_count) {
        request_end(&n->requests, requests_pop(&n->requests), STATUS_OK);
    }
}

static void on_link_bytes(void *ctx, const char *bytes, size_t len)
{
    struct redis_node *n = ctx;
    struct link *l = n->link;
    struct err err = {0};
    enum status st = reader_feed(n->reader, bytes, len, &err);
    while (st == STATUS_OK && n->link == l) {
        const struct redis_value *v = NULL;
        st = reader_next(n->reader, &v, &err);
        if (st != STATUS_OK || v == NULL) {
            break;
        }
        if (n->state == NODE_GREETING) {
            handshake_reply(&n->handshake, v);
            if (handshake_is_over(&n->handshake)) {
                greeted(n);
            }
        } else if (n->options.on_push != NULL && n->options.on_push(n->options.ctx, v)) {
            continue;
        } else if (n->requests.queue.first != NULL) {
            take_reply(n, v);
        } else {
            st = err_fail(&err, STATUS_INVALID, "an unexpected reply");
        }
    }
    if (st != STATUS_OK && n->link == l) {
        bool is_other = n->state == NODE_GREETING && st == STATUS_INVALID;
        if (is_other) {
            err_prefix(&err, "not a Redis server");
        }
        go_down(n, &err, is_other);
    }
}

static void on_link_connected(void *ctx)
{
    struct redis_node *n = ctx;
    struct err err = {0};
    n->state = NODE_GREETING;
    if (handshake_start(&n->handshake, &n->options, link_out(n->link), &err) != STATUS_OK) {
        go_down(n, &err, false);
        return;
    }
    node_flush_this_turn(n);
}

static void on_link_failed(void *ctx, const struct err *why)
{
    go_down(ctx, why, false);
}

/* Returns the next address of the name: repeated tries use them in turn. */
static const struct sockaddr *address_of_try(struct redis_node *n)
{
    size_t count = 0;
    if (n->resolver == NULL) {
        return NULL;
    }
    const struct addrinfo *list = resolver_answer(n->resolver);
    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
        count++;
    }
    assert(count > 0); /* guaranteed by the resolver */
    for (size_t skip = n->tries % count; skip > 0; skip--) {
        list = list->ai_next;
    }
    assert(list->ai_addrlen <= sizeof n->address);
    n->address = (struct sockaddr_storage){0};
    memcpy(&n->address, list->ai_addr, list->ai_addrlen);
    return list->ai_addr;
}

static enum status open_link(struct redis_node *n, struct err *err)
{
    const struct link_events events = {.on_connected = on_link_connected,
                                       .on_bytes = on_link_bytes,
                                       .on_failed = on_link_failed,
                                       .ctx = n};
    const struct link_target target = {
        .endpoint = &n->options.endpoint, .address = address_of_try(n), .tls = n->options.tls};
    return link_open(n->options.loop, &target, &events, &n->link, err);
}

static void connect_by_answer(struct redis_node *n)
{
    struct err err = {0};
    if (open_link(n, &err) != STATUS_OK) {
        go_down(n, &err, false);
        return;
    }
    arm_next(n);
}

static bool has_address(const struct addrinfo *list, const struct sockaddr_storage *address)
{
    while (list != NULL && memcmp(list->ai_addr, address, list->ai_addrlen) != 0) {
        list = list->ai_next;
    }
    return list != NULL;
}

/* A late answer, or one requested by redis_node_doubt(), may show that the connection leads to a
 * server that has another name by now (lock.C7). */
static void on_resolved(void *ctx, const struct err *why)
{
    struct redis_node *n = ctx;
    if (n->link != NULL && !has_address(resolver_answer(n->resolver), &n->address)) {
        struct err moved = {0};
        err_set(&moved, STATUS_UNAVAILABLE, 0, "its name now has another address");
        go_down(n, &moved, false);
    } else if (n->state != NODE_CONNECTING || n->link != NULL) {
        return; /* too late: the next try looks the name up itself */
    } else if (why != NULL) {
        go_down(n, why, false);
    } else {
        connect_by_answer(n);
    }
}

/* Connects to the name's present address, not to an earlier one: servers that are restarted may
 * swap their addresses. */
static void node_connect(struct redis_node *n)
{
    struct err err = {0};
    bool is_known = true;
    reader_free(TAKE(n->reader));
    n->state = NODE_CONNECTING;
    int64_t now = clock_boot_us();
    n->give_up_us = now + n->options.connect_timeout_us;
    n->kept_us = now + n->options.connect_timeout_us / NAME_SHARE;
    enum status st = reader_new(&n->reader, &err);
    if (st == STATUS_OK && n->resolver != NULL) {
        st = resolver_ask(n->resolver, &is_known, &err);
        is_known = is_known || (st != STATUS_OK && resolver_answer(n->resolver) != NULL);
        st = is_known ? STATUS_OK : st;
    }
    if (st != STATUS_OK) {
        go_down(n, &err, false);
    } else if (is_known) {
        connect_by_answer(n);
    } else {
        arm_next(n);
    }
}

void redis_node_refuse(struct redis_node *node, const struct err *why)
{
    if (node->state == NODE_UP) {
        go_down(node, why, true);
    }
}

void redis_node_doubt(struct redis_node *node)
{
    bool is_known = false;
    if (node->resolver != NULL && node->link != NULL) {
        enum status st = resolver_ask(node->resolver, &is_known, NULL);
        (void)st; /* if no thread can be started, nothing changes */
    }
}

/* Makes the parts that may fail, and undoes them if one fails. */
static enum status make_parts(struct redis_node *n, struct err *err)
{
    const struct redis_endpoint *e = &n->options.endpoint;
    enum status st = STATUS_OK;
    if (e->is_tls && n->options.tls == NULL) {
        st = redis_tls_new(&(const struct redis_tls_options){0}, &n->own_tls, err);
        n->options.tls = n->own_tls;
    }
    if (st == STATUS_OK && e->path[0] == '\0') {
        st = resolver_new(n->options.loop, e, on_resolved, n, &n->resolver, err);
    }
    if (st != STATUS_OK) {
        redis_tls_free(n->own_tls);
    }
    return st;
}

enum status redis_node_open(const struct redis_options *options, struct redis_node **ret_node,
                            struct err *err)
{
    if (options->script_count > REDIS_SCRIPTS_MAX) {
        return err_fail(err, STATUS_LIMIT, "redis: more than %d scripts", REDIS_SCRIPTS_MAX);
    }
    struct redis_node *n = calloc(1, sizeof *n);
    if (n == NULL) {
        return err_fail(err, STATUS_NOMEM, "redis: no memory for a node");
    }
    n->options = *options;
    for (size_t i = 0; i < options->script_count; i++) {
        n->scripts[i] = options->scripts[i];
    }
    n->options.scripts = n->scripts;
    enum status st = make_parts(n, err);
    if (st != STATUS_OK) {
        free(n);
        return st;
    }
    requests_reset(&n->requests);
    rand_seed_from_system(&n->rand);
    n->timer.data = n;
    n->flush.data = n;
    n->no_wait.data = n;
    n->overdue.data = n;
    /* These four only fill in fields, so they can't fail. */
    (void)uv_timer_init(options->loop, &n->timer);
    (void)uv_prepare_init(options->loop, &n->flush);
    (void)uv_idle_init(options->loop, &n->no_wait);
    (void)uv_check_init(options->loop, &n->overdue);
    n->handles_open = NODE_HANDLES;
    n->retry_us = clock_boot_us();
    arm(n, n->retry_us); /* connects from the loop, so that no callback comes before this returns */
    *ret_node = n;
    return STATUS_OK;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct redis_node *n = handle->data;
    if (--n->handles_open == 0) {
        reader_free(n->reader);
        redis_tls_free(n->own_tls);
        requests_release(&n->requests);
        free(n);
    }
}

void redis_node_close(struct redis_node *node)
{
    if (node == NULL) {
        return;
    }
    assert(node->state != NODE_CLOSED);
    disconnect(node);
    resolver_close(TAKE(node->resolver));
    node->state = NODE_CLOSED;
    requests_end_all(&node->requests, clock_boot_us());
    uv_close((uv_handle_t *)&node->timer, on_handle_closed);
    uv_close((uv_handle_t *)&node->flush, on_handle_closed);
    uv_close((uv_handle_t *)&node->no_wait, on_handle_closed);
    uv_close((uv_handle_t *)&node->overdue, on_handle_closed);
}

bool redis_node_is_up(const struct redis_node *node)
{
    return node->state == NODE_UP;
}

const struct redis_server_info *redis_node_info(const struct redis_node *node)
{
    return &node->handshake.info;
}

enum status redis_node_set_password(struct redis_node *node, const char *password, struct err *err)
{
    return redis_endpoint_login(&node->options.endpoint, NULL, password, err);
}

const struct redis_endpoint *redis_node_endpoint(const struct redis_node *node)
{
    return &node->options.endpoint;
}
