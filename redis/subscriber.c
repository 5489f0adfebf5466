/* SPDX-License-Identifier: Apache-2.0 */
#include "redis/subscriber.h"

#include "base/clock.h"
#include "base/timer.h"

#define PING_AFTER_US (15 * US_PER_S)
#define WIRE_BYTES_MAX (REDIS_CHANNEL_LEN_MAX + 128) /* a command with the channel */

struct redis_subscriber {
    struct redis_subscriber_options options; /* the channel is stored behind this struct */
    struct redis_node *node;
    uv_timer_t ping;
    bool was_heard; /* since the timer last fired */
    char channel[];
};

/* ---- receiving ---- */

static bool is_bytes(const struct redis_value *v, const char *bytes, size_t len)
{
    return v->type == REDIS_STRING && v->len == len && memcmp(v->text, bytes, len) == 0;
}

/* Checks for [word, a channel, anything]. */
static bool is_triple(const struct redis_value *v, const char *word)
{
    return v->type == REDIS_ARRAY && v->len == 3 && is_bytes(v->items[0], word, strlen(word)) &&
           v->items[1]->type == REDIS_STRING;
}

static bool is_of_channel(const struct redis_subscriber *s, const struct redis_value *triple)
{
    return is_bytes(triple->items[1], s->channel, s->options.channel_len);
}

static bool on_push(void *ctx, const struct redis_value *v)
{
    struct redis_subscriber *s = ctx;
    if (!is_triple(v, "message") || v->items[2]->type != REDIS_STRING) {
        return false;
    }
    s->was_heard = true;
    if (s->options.on_message != NULL && is_of_channel(s, v)) {
        s->options.on_message(s->options.ctx, v->items[2]->text, v->items[2]->len);
    }
    return true;
}

static void refused(struct redis_subscriber *s, const struct redis_value *v)
{
    struct err why = {0};
    char name[REDIS_ENDPOINT_TEXT_SIZE];
    redis_endpoint_text(&s->options.endpoint, name, sizeof name);
    err_set(&why, STATUS_UNAVAILABLE, 0, "%s: SUBSCRIBE refused: %s", name, v->text);
    if (s->options.on_refused != NULL) {
        s->options.on_refused(s->options.ctx, &why);
    }
}

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct redis_subscriber *s = ctx;
    (void)index;
    s->was_heard = true;
    if (v->type == REDIS_ERROR) {
        refused(s, v);
    } else if (s->options.on_subscribed != NULL && is_triple(v, "subscribe") &&
               is_of_channel(s, v)) {
        s->options.on_subscribed(s->options.ctx);
    }
}

static void on_pong(void *ctx, size_t index, const struct redis_value *v)
{
    struct redis_subscriber *s = ctx;
    (void)index;
    (void)v;
    s->was_heard = true;
}

/* ---- sending ---- */

static enum status say(struct redis_subscriber *s, const struct redis_arg *args, size_t count,
                       redis_reply_cb *reply, struct err *err)
{
    autobuf struct buf out = BUF_INIT(WIRE_BYTES_MAX);
    enum status st = redis_command(&out, args, count, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct redis_request request = {.bytes = buf_at(&out),
                                          .len = out.len,
                                          .reply_count = 1,
                                          .timeout_us = s->options.connect_timeout_us,
                                          .on_reply = reply,
                                          .ctx = s};
    return redis_node_send(s->node, &request, err);
}

static enum status on_up(void *ctx, struct redis_node *node, const struct redis_server_info *info,
                         struct err *err)
{
    struct redis_subscriber *s = ctx;
    const struct redis_arg args[] = {redis_word("SUBSCRIBE"),
                                     redis_bytes(s->channel, s->options.channel_len)};
    (void)node;
    (void)info;
    s->was_heard = true;
    return say(s, args, ARRAY_COUNT(args), on_reply, err);
}

static void on_ping(uv_timer_t *timer)
{
    struct redis_subscriber *s = timer->data;
    const struct redis_arg ping = redis_word("PING");
    bool was_heard = s->was_heard;
    s->was_heard = false;
    if (!was_heard && redis_node_is_up(s->node)) {
        (void)say(s, &ping, 1, on_pong, NULL); /* if memory runs out, the next timer repeats it */
    }
}

/* ---- opening and closing ---- */

static enum status check_channel(size_t len, struct err *err)
{
    if (len < 1 || len > REDIS_CHANNEL_LEN_MAX) {
        return err_fail(err, STATUS_INVALID, "redis: a channel of %zu bytes, allowed are 1 to %d",
                        len, REDIS_CHANNEL_LEN_MAX);
    }
    return STATUS_OK;
}

static enum status open_node(struct redis_subscriber *s, struct err *err)
{
    const struct redis_options options = {.loop = s->options.loop,
                                          .endpoint = s->options.endpoint,
                                          .tls = s->options.tls,
                                          .connect_timeout_us = s->options.connect_timeout_us,
                                          .on_up = on_up,
                                          .on_push = on_push,
                                          .ctx = s};
    return redis_node_open(&options, &s->node, err);
}

enum status redis_subscriber_open(const struct redis_subscriber_options *options,
                                  struct redis_subscriber **ret_sub, struct err *err)
{
    enum status st = check_channel(options->channel_len, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct redis_subscriber *s = calloc(1, sizeof *s + options->channel_len);
    if (s == NULL) {
        return err_fail(err, STATUS_NOMEM, "redis: no memory for a subscriber");
    }
    s->options = *options;
    memcpy(s->channel, options->channel, options->channel_len);
    s->options.channel = s->channel;
    st = open_node(s, err);
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
    free(handle->data);
}

enum status redis_subscriber_set_password(struct redis_subscriber *sub, const char *password,
                                          struct err *err)
{
    return redis_node_set_password(sub->node, password, err);
}

void redis_subscriber_close(struct redis_subscriber *sub)
{
    if (sub != NULL) {
        redis_node_close(TAKE(sub->node));
        uv_close((uv_handle_t *)&sub->ping, on_ping_closed);
    }
}
