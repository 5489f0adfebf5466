/* SPDX-License-Identifier: Apache-2.0 */
#include "redis/subscriber.h"

#include "base/clock.h"
#include "base/timer.h"

#define PING_AFTER_US (15 * US_PER_S)
#define WIRE_BYTES_MAX ((size_t)REDIS_CHANNELS_MAX * (REDIS_CHANNEL_LEN_MAX + 64))

struct channel {
    uint64_t number; /* of the SUBSCRIBE whose reply counts, on this connection; 0 = none */
    bool is_subscribed;
    size_t len;
    char bytes[];
};

struct redis_subscriber {
    struct redis_subscriber_options options;
    struct redis_node *node;
    uv_timer_t ping;
    bool was_heard; /* since the timer's last look */
    bool is_refusal_told;
    uint64_t sent; /* commands about channels on this connection, one reply each */
    uint64_t answered;
    struct channel **channels; /* sorted: by length, then by bytes */
    size_t count;
    size_t capacity;
};

/* ---- the channels ---- */

/* Where it is, or where it belongs. */
static bool find(const struct redis_subscriber *s, const char *bytes, size_t len, size_t *ret_at)
{
    size_t low = 0;
    size_t high = s->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct channel *c = s->channels[middle];
        int order = c->len == len ? memcmp(c->bytes, bytes, len) : c->len < len ? -1 : 1;
        if (order == 0) {
            *ret_at = middle;
            return true;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *ret_at = low;
    return false;
}

static enum status make_room(struct redis_subscriber *s, struct err *err)
{
    if (s->count == REDIS_CHANNELS_MAX) {
        return err_fail(err, STATUS_LIMIT, "redis: more than %d channels", REDIS_CHANNELS_MAX);
    }
    if (s->count < s->capacity) {
        return STATUS_OK;
    }
    size_t capacity = s->capacity == 0 ? 16 : 2 * s->capacity;
    struct channel **list = realloc(s->channels, capacity * sizeof(struct channel *));
    if (list == NULL) {
        return err_fail(err, STATUS_NOMEM, "redis: no memory for a channel");
    }
    s->channels = list;
    s->capacity = capacity;
    return STATUS_OK;
}

static enum status insert(struct redis_subscriber *s, size_t at, const char *bytes, size_t len,
                          struct err *err)
{
    enum status st = make_room(s, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct channel *c = malloc(sizeof *c + len);
    if (c == NULL) {
        return err_fail(err, STATUS_NOMEM, "redis: no memory for a channel");
    }
    *c = (struct channel){.len = len};
    memcpy(c->bytes, bytes, len);
    memmove(s->channels + at + 1, s->channels + at, (s->count - at) * sizeof(struct channel *));
    s->channels[at] = c;
    s->count++;
    return STATUS_OK;
}

static void drop(struct redis_subscriber *s, size_t at)
{
    free(s->channels[at]);
    s->count--;
    memmove(s->channels + at, s->channels + at + 1, (s->count - at) * sizeof(struct channel *));
}

/* ---- what comes ---- */

static bool is_word(const struct redis_value *v, const char *word)
{
    return v->type == REDIS_STRING && v->len == strlen(word) && memcmp(v->text, word, v->len) == 0;
}

static bool is_triple(const struct redis_value *v, const char *word)
{
    return v->type == REDIS_ARRAY && v->len == 3 && is_word(v->items[0], word) &&
           v->items[1]->type == REDIS_STRING;
}

static bool on_push(void *ctx, const struct redis_value *v)
{
    struct redis_subscriber *s = ctx;
    size_t at = 0;
    if (!is_triple(v, "message") || v->items[2]->type != REDIS_STRING) {
        return false;
    }
    const struct redis_value *channel = v->items[1];
    s->was_heard = true;
    if (s->options.on_message != NULL && find(s, channel->text, channel->len, &at)) {
        s->options.on_message(s->options.ctx, channel->text, channel->len, v->items[2]->text,
                              v->items[2]->len);
    }
    return true;
}

static void refused(struct redis_subscriber *s, const struct redis_value *v)
{
    struct err why = {0};
    char name[REDIS_ENDPOINT_TEXT_SIZE];
    if (s->is_refusal_told || s->options.on_refused == NULL) {
        return;
    }
    s->is_refusal_told = true;
    redis_endpoint_text(&s->options.endpoint, name, sizeof name);
    err_set(&why, STATUS_UNAVAILABLE, 0, "%s: SUBSCRIBE refused: %s", name, v->text);
    s->options.on_refused(s->options.ctx, &why);
}

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct redis_subscriber *s = ctx;
    size_t at = 0;
    (void)index;
    s->was_heard = true;
    s->answered++;
    if (v->type == REDIS_ERROR) {
        refused(s, v);
    } else if (is_triple(v, "subscribe") && find(s, v->items[1]->text, v->items[1]->len, &at) &&
               s->channels[at]->number == s->answered) {
        s->channels[at]->is_subscribed = true;
        if (s->options.on_subscribed != NULL) {
            s->options.on_subscribed(s->options.ctx, v->items[1]->text, v->items[1]->len);
        }
    }
}

static void on_pong(void *ctx, size_t index, const struct redis_value *v)
{
    struct redis_subscriber *s = ctx;
    (void)index;
    (void)v;
    s->was_heard = true;
}

/* ---- what is said ---- */

static enum status append(struct buf *out, const char *word, const char *bytes, size_t len,
                          struct err *err)
{
    const struct redis_arg args[] = {{.bytes = word, .len = strlen(word)},
                                     {.bytes = bytes, .len = len}};
    return redis_command(out, args, ARRAY_COUNT(args), err);
}

static enum status ask(struct redis_subscriber *s, const struct buf *out, size_t replies,
                       redis_reply_cb *reply, struct err *err)
{
    const struct redis_request request = {.bytes = buf_at(out),
                                          .len = out->len,
                                          .reply_count = replies,
                                          .timeout_us = s->options.connect_timeout_us,
                                          .on_reply = reply,
                                          .ctx = s};
    return redis_node_send(s->node, &request, err);
}

/* SUBSCRIBE or UNSUBSCRIBE; yields its number on this connection, 0 = it is not up. */
static enum status say(struct redis_subscriber *s, const char *word, const char *bytes, size_t len,
                       uint64_t *ret_number, struct err *err)
{
    autobuf struct buf out = BUF_INIT(WIRE_BYTES_MAX);
    *ret_number = 0;
    if (!redis_node_is_up(s->node)) {
        return STATUS_OK;
    }
    enum status st = append(&out, word, bytes, len, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ask(s, &out, 1, on_reply, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret_number = ++s->sent;
    return STATUS_OK;
}

/* A command per channel, so that an error is of one channel alone. */
static enum status subscribe_all(struct redis_subscriber *s, struct err *err)
{
    autobuf struct buf out = BUF_INIT(WIRE_BYTES_MAX);
    enum status st = STATUS_OK;
    for (size_t i = 0; st == STATUS_OK && i < s->count; i++) {
        struct channel *c = s->channels[i];
        c->number = ++s->sent;
        st = append(&out, "SUBSCRIBE", c->bytes, c->len, err);
    }
    return st == STATUS_OK && s->count > 0 ? ask(s, &out, s->count, on_reply, err) : st;
}

static enum status on_up(void *ctx, struct redis_node *node, const struct redis_server_info *info,
                         struct err *err)
{
    struct redis_subscriber *s = ctx;
    (void)node;
    (void)info;
    s->sent = 0;
    s->answered = 0;
    s->is_refusal_told = false;
    s->was_heard = true;
    enum status st = subscribe_all(s, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (s->options.on_up != NULL) {
        s->options.on_up(s->options.ctx);
    }
    return STATUS_OK;
}

static void on_down(void *ctx, struct redis_node *node, const struct err *why)
{
    struct redis_subscriber *s = ctx;
    (void)node;
    for (size_t i = 0; i < s->count; i++) {
        s->channels[i]->number = 0;
        s->channels[i]->is_subscribed = false;
    }
    if (s->options.on_down != NULL) {
        s->options.on_down(s->options.ctx, why);
    }
}

static void on_ping(uv_timer_t *timer)
{
    static const struct redis_arg ping = {.bytes = "PING", .len = 4};
    struct redis_subscriber *s = timer->data;
    bool was_heard = s->was_heard;
    s->was_heard = false;
    if (was_heard || !redis_node_is_up(s->node)) {
        return;
    }
    autobuf struct buf out = BUF_INIT(64);
    if (redis_command(&out, &ping, 1, NULL) == STATUS_OK) {
        (void)ask(s, &out, 1, on_pong, NULL); /* without memory for it: at the next look */
    }
}

/* ---- its life ---- */

enum status redis_subscriber_open(const struct redis_subscriber_options *options,
                                  struct redis_subscriber **ret_sub, struct err *err)
{
    struct redis_subscriber *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_fail(err, STATUS_NOMEM, "redis: no memory for a subscriber");
    }
    s->options = *options;
    const struct redis_options node = {.loop = options->loop,
                                       .endpoint = options->endpoint,
                                       .tls = options->tls,
                                       .connect_timeout_us = options->connect_timeout_us,
                                       .on_up = on_up,
                                       .on_down = on_down,
                                       .on_push = on_push,
                                       .ctx = s};
    enum status st = redis_node_open(&node, &s->node, err);
    if (st != STATUS_OK) {
        free(s);
        return st;
    }
    int64_t ping_us = options->ping_after_us > 0 ? options->ping_after_us : PING_AFTER_US;
    uint64_t ping_ms = (uint64_t)((ping_us + US_PER_MS - 1) / US_PER_MS);
    (void)uv_timer_init(options->loop, &s->ping);
    s->ping.data = s;
    timer_start(&s->ping, on_ping, ping_ms, ping_ms);
    *ret_sub = s;
    return STATUS_OK;
}

static void on_ping_closed(uv_handle_t *handle)
{
    struct redis_subscriber *s = handle->data;
    while (s->count > 0) {
        drop(s, s->count - 1);
    }
    free(s->channels);
    free(s);
}

void redis_subscriber_close(struct redis_subscriber *sub)
{
    if (sub != NULL) {
        redis_node_close(TAKE(sub->node));
        uv_close((uv_handle_t *)&sub->ping, on_ping_closed);
    }
}

enum status redis_subscribe(struct redis_subscriber *sub, const char *channel, size_t len,
                            struct err *err)
{
    size_t at = 0;
    if (len > REDIS_CHANNEL_LEN_MAX) {
        return err_fail(err, STATUS_INVALID, "redis: a channel of %zu bytes, allowed are %d", len,
                        REDIS_CHANNEL_LEN_MAX);
    }
    if (find(sub, channel, len, &at)) {
        return STATUS_OK;
    }
    enum status st = insert(sub, at, channel, len, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = say(sub, "SUBSCRIBE", channel, len, &sub->channels[at]->number, err);
    if (st != STATUS_OK) {
        drop(sub, at);
    }
    return st;
}

void redis_unsubscribe(struct redis_subscriber *sub, const char *channel, size_t len)
{
    size_t at = 0;
    uint64_t number = 0;
    if (find(sub, channel, len, &at)) {
        drop(sub, at);
        /* Without memory to say so its messages still come, and are not passed on. */
        (void)say(sub, "UNSUBSCRIBE", channel, len, &number, NULL);
    }
}

bool redis_is_subscribed(const struct redis_subscriber *sub, const char *channel, size_t len)
{
    size_t at = 0;
    return find(sub, channel, len, &at) && sub->channels[at]->is_subscribed;
}
