/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/wake.h"

#include "base/clock.h"
#include "base/hash.h"
#include "redis/subscriber.h"
#include "redlock/core.h"

#define BUCKETS 256
#define LINGER_US (5 * US_PER_S) /* connections outlive the last listener by so much */
#define MARKER_MS "60000"
#define MARKER_PERIOD_US (25 * US_PER_S)
#define MARKER_RETRY_US US_PER_S
#define COMMAND_BYTES_MAX (WAKE_PREFIX_MAX + 128)

struct wake_subscription {
    struct wake_subscription *prev; /* of the same channel */
    struct wake_subscription *next;
    struct wake_channel *channel;
    unsigned heard; /* bit per node */
    wake_cb *changed;
    void *ctx;
};

struct wake_channel {
    struct wake_channel *next; /* in its bucket */
    struct wake_subscription *subscriptions;
    struct wakes *wakes;
    size_t bucket;
    size_t len;
    char name[];
};

struct wake_node {
    struct wakes *wakes;
    size_t index;
    struct redis_subscriber *subscriber; /* NULL = closed */
    bool is_up;
    bool is_marked;
    bool is_marking; /* a SET is under way */
    bool has_answered;
    int64_t mark_at_us;
};

struct wakes {
    struct redlock_async *lock;
    struct wake_node nodes[REDLOCK_NODES_MAX];
    struct wake_channel *buckets[BUCKETS];
    size_t channel_count;
    int64_t close_at_us; /* when nobody listens until then; INT64_MAX = somebody does, or closed */
};

/* ---- channels ---- */

static size_t bucket_of(const char *name, size_t len)
{
    return hash_bytes(name, len) % BUCKETS;
}

static struct wake_channel *find(const struct wakes *w, const char *name, size_t len)
{
    struct wake_channel *c = w->buckets[bucket_of(name, len)];
    while (c != NULL && (c->len != len || memcmp(c->name, name, len) != 0)) {
        c = c->next;
    }
    return c;
}

static struct wake_channel *channel_new(struct wakes *w, const char *name, size_t len)
{
    struct wake_channel *c = malloc(sizeof *c + len);
    if (c == NULL) {
        return NULL;
    }
    size_t bucket = bucket_of(name, len);
    *c =
        (struct wake_channel){.next = w->buckets[bucket], .wakes = w, .bucket = bucket, .len = len};
    memcpy(c->name, name, len);
    w->buckets[bucket] = c;
    w->channel_count++;
    for (size_t i = 0; i < w->lock->options.node_count; i++) {
        enum status st = redis_subscribe(w->nodes[i].subscriber, c->name, len, NULL);
        (void)st; /* past a bound, or without memory: this node is not covered */
    }
    return c;
}

static void channel_free(struct wake_channel *c)
{
    struct wakes *w = c->wakes;
    struct wake_channel **link = &w->buckets[c->bucket];
    while (*link != c) {
        link = &(*link)->next;
    }
    *link = c->next;
    for (size_t i = 0; i < w->lock->options.node_count; i++) {
        redis_unsubscribe(w->nodes[i].subscriber, c->name, c->len);
    }
    if (--w->channel_count == 0) {
        w->close_at_us = clock_boot_us() + LINGER_US;
        core_wake_at(w->lock, w->close_at_us);
    }
    free(c);
}

static void tell(const struct wake_channel *c)
{
    for (struct wake_subscription *e = c->subscriptions; e != NULL; e = e->next) {
        e->changed(e->ctx);
    }
}

static void tell_all(const struct wakes *w)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        for (const struct wake_channel *c = w->buckets[i]; c != NULL; c = c->next) {
            tell(c);
        }
    }
}

/* ---- the marker ---- */

static void on_marker_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct wake_node *n = ctx;
    (void)index;
    n->has_answered = v->type == REDIS_STATUS;
}

static void on_marker_done(void *ctx, enum status st)
{
    struct wake_node *n = ctx;
    bool was_marked = n->is_marked;
    n->is_marking = false;
    if (n->subscriber == NULL || !n->is_up) {
        return; /* closed meanwhile, or the server may have lost it again */
    }
    n->is_marked = st == STATUS_OK && n->has_answered;
    n->mark_at_us = clock_boot_us() + (n->is_marked ? MARKER_PERIOD_US : MARKER_RETRY_US);
    core_wake_at(n->wakes->lock, n->mark_at_us);
    if (n->is_marked != was_marked) {
        tell_all(n->wakes);
    }
}

static enum status send_marker(struct wake_node *n)
{
    struct redlock_async *lock = n->wakes->lock;
    autobuf struct buf out = BUF_INIT(COMMAND_BYTES_MAX);
    const struct redis_arg words[] = {
        {.bytes = "SET", .len = 3},
        {.bytes = lock->wake_marker, .len = lock->wake_prefix_len + WAKE_MARKER_LEN},
        {.bytes = "1", .len = 1},
        {.bytes = "PX", .len = 2},
        {.bytes = MARKER_MS, .len = sizeof MARKER_MS - 1}};
    enum status st = redis_command(&out, words, ARRAY_COUNT(words), NULL);
    if (st != STATUS_OK) {
        return st;
    }
    const struct redis_request request = {.bytes = buf_at(&out),
                                          .len = out.len,
                                          .reply_count = 1,
                                          .timeout_us = lock->options.node_timeout_us,
                                          .on_reply = on_marker_reply,
                                          .on_done = on_marker_done,
                                          .ctx = n};
    return redis_node_send(lock->nodes[n->index].redis, &request, NULL);
}

static void mark(struct wake_node *n, int64_t now_us)
{
    if (n->is_marking) {
        return;
    }
    n->has_answered = false;
    n->is_marking = send_marker(n) == STATUS_OK;
    n->mark_at_us = now_us + MARKER_RETRY_US;
    core_wake_at(n->wakes->lock, n->mark_at_us);
}

/* ---- the connections ---- */

static void on_message(void *ctx, const char *channel, size_t channel_len, const char *payload,
                       size_t payload_len)
{
    const struct wake_node *n = ctx;
    const struct wake_channel *c = find(n->wakes, channel, channel_len);
    (void)payload;
    (void)payload_len;
    if (c == NULL) {
        return;
    }
    for (struct wake_subscription *e = c->subscriptions; e != NULL; e = e->next) {
        e->heard |= 1U << n->index;
    }
    tell(c);
}

static void on_subscribed(void *ctx, const char *channel, size_t len)
{
    const struct wake_node *n = ctx;
    const struct wake_channel *c = find(n->wakes, channel, len);
    if (c != NULL) {
        tell(c);
    }
}

static void on_up(void *ctx)
{
    struct wake_node *n = ctx;
    n->is_up = true;
    mark(n, clock_boot_us());
}

/* It may be back without the marker. */
static void on_down(void *ctx, const struct err *why)
{
    struct wake_node *n = ctx;
    (void)why;
    n->is_up = false;
    n->is_marked = false;
    tell_all(n->wakes);
}

static void close_all(struct wakes *w)
{
    for (size_t i = 0; i < w->lock->options.node_count; i++) {
        struct wake_node *n = &w->nodes[i];
        redis_subscriber_close(TAKE(n->subscriber));
        n->is_up = false;
        n->is_marked = false;
    }
    w->close_at_us = INT64_MAX;
}

static bool open_all(struct wakes *w)
{
    struct redlock_async *lock = w->lock;
    for (size_t i = 0; i < lock->options.node_count; i++) {
        struct wake_node *n = &w->nodes[i];
        if (n->subscriber != NULL) {
            continue;
        }
        const struct redis_subscriber_options options = {
            .loop = lock->options.loop,
            .endpoint = *redis_node_endpoint(lock->nodes[i].redis),
            .tls = lock->tls,
            .connect_timeout_us = lock->options.node_timeout_us * 5,
            .on_message = on_message,
            .on_subscribed = on_subscribed,
            .on_up = on_up,
            .on_down = on_down,
            .ctx = n};
        n->wakes = w;
        n->index = i;
        if (redis_subscriber_open(&options, &n->subscriber, NULL) != STATUS_OK) {
            close_all(w);
            return false;
        }
    }
    if (w->close_at_us != INT64_MAX) { /* nobody listened: the markers may be due */
        w->close_at_us = INT64_MAX;
        core_wake_at(lock, clock_boot_us());
    }
    return true;
}

/* ---- for those who wait ---- */

static struct wake_channel *channel_of(struct redlock_async *lock, const char *key, size_t len)
{
    char name[WAKE_PREFIX_MAX + REDLOCK_KEY_LEN_MAX];
    if (lock->wake_prefix_len == 0 || lock->is_closing) {
        return NULL;
    }
    if (lock->wakes == NULL) {
        lock->wakes = calloc(1, sizeof *lock->wakes);
        if (lock->wakes == NULL) {
            return NULL;
        }
        lock->wakes->lock = lock;
        lock->wakes->close_at_us = INT64_MAX;
    }
    if (!open_all(lock->wakes)) {
        return NULL;
    }
    memcpy(name, lock->wake_marker, lock->wake_prefix_len);
    memcpy(name + lock->wake_prefix_len, key, len);
    struct wake_channel *c = find(lock->wakes, name, lock->wake_prefix_len + len);
    return c != NULL ? c : channel_new(lock->wakes, name, lock->wake_prefix_len + len);
}

struct wake_subscription *wake_listen(struct redlock_async *lock, const char *key, size_t len,
                                      wake_cb *changed, void *ctx)
{
    struct wake_subscription *e = malloc(sizeof *e);
    struct wake_channel *c = e != NULL ? channel_of(lock, key, len) : NULL;
    if (c == NULL) {
        free(e);
        return NULL;
    }
    *e = (struct wake_subscription){
        .channel = c, .next = c->subscriptions, .changed = changed, .ctx = ctx};
    if (c->subscriptions != NULL) {
        c->subscriptions->prev = e;
    }
    c->subscriptions = e;
    return e;
}

void wake_unlisten(struct wake_subscription *subscription)
{
    if (subscription == NULL) {
        return;
    }
    struct wake_channel *c = subscription->channel;
    *(subscription->prev != NULL ? &subscription->prev->next : &c->subscriptions) =
        subscription->next;
    if (subscription->next != NULL) {
        subscription->next->prev = subscription->prev;
    }
    free(subscription);
    if (c->subscriptions == NULL) {
        channel_free(c);
    }
}

/* A holder was given the key by a quorum of nodes, and releases it on all of these: of those who
 * tell us, at least one is among them. */
bool wake_is_covered(const struct wake_subscription *subscription)
{
    const struct wake_channel *c = subscription->channel;
    const struct redlock_async *lock = c->wakes->lock;
    size_t telling = 0;
    for (size_t i = 0; i < lock->options.node_count; i++) {
        const struct wake_node *n = &c->wakes->nodes[i];
        telling += n->is_marked && redis_is_subscribed(n->subscriber, c->name, c->len);
    }
    return telling >= lock->options.node_count - lock->quorum + 1;
}

unsigned wake_heard(const struct wake_subscription *subscription)
{
    return subscription->heard;
}

void wake_forget(struct wake_subscription *subscription)
{
    subscription->heard = 0;
}

int64_t wake_tick(struct redlock_async *lock, int64_t now_us)
{
    struct wakes *w = lock->wakes;
    if (w == NULL) {
        return INT64_MAX;
    }
    if (now_us >= w->close_at_us) {
        close_all(w);
    }
    int64_t wake_us = w->close_at_us;
    for (size_t i = 0; i < lock->options.node_count && w->channel_count > 0; i++) {
        struct wake_node *n = &w->nodes[i];
        if (!n->is_up) {
            continue;
        }
        if (now_us >= n->mark_at_us) {
            mark(n, now_us);
        }
        wake_us = n->mark_at_us < wake_us ? n->mark_at_us : wake_us;
    }
    return wake_us;
}

void wake_close(struct redlock_async *lock)
{
    if (lock->wakes != NULL) {
        close_all(lock->wakes);
    }
}

void wake_free(struct redlock_async *lock)
{
    free(TAKE(lock->wakes));
}
