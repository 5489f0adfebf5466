/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends commands and script calls. */
#include "redis/node.h"

#include <assert.h>
#include <stdio.h>

static enum status may_send(const struct redis_node *n, size_t len, struct err *err)
{
    if (n->state != NODE_UP) {
        return err_fail(err, STATUS_UNAVAILABLE, "redis: not connected");
    }
    if (len > REDIS_IN_FLIGHT_BYTES_MAX - n->requests.bytes) {
        return err_fail(err, STATUS_LIMIT, "redis: more than %zu bytes in flight",
                        REDIS_IN_FLIGHT_BYTES_MAX);
    }
    return STATUS_OK;
}

static void request_start(struct redis_node *n, struct request *r)
{
    requests_push(&n->requests, r);
    node_flush_this_turn(n);
}

enum status redis_node_send(struct redis_node *node, const struct redis_request *request,
                            struct err *err)
{
    assert(request->reply_count > 0);
    enum status st = may_send(node, request->len, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct request *r = request_new(&node->requests, 0);
    if (r == NULL) {
        return err_fail(err, STATUS_NOMEM, "redis: no memory for a request");
    }
    st = buf_append(link_out(node->link), request->bytes, request->len, err);
    if (st != STATUS_OK) {
        request_drop(&node->requests, r);
        return st;
    }
    *r = (struct request){.timeout_us = request->timeout_us,
                          .reply_count = request->reply_count,
                          .len = request->len,
                          .on_reply = request->on_reply,
                          .on_done = request->on_done,
                          .ctx = request->ctx};
    request_start(node, r);
    return STATUS_OK;
}

static const char *sha_of(const struct redis_node *n, const struct redis_script *script)
{
    for (size_t i = 0; i < n->options.script_count; i++) {
        if (n->scripts[i] == script) {
            return n->handshake.sha[i];
        }
    }
    return NULL;
}

static size_t call_words(const struct redis_script_call *call)
{
    return 3 + call->key_count + call->arg_count;
}

/* Writes "EVALSHA sha numkeys key… arg…"; *ret_tail_at is where the part begins that EVAL
 * shares. */
static enum status put_call(struct buf *out, const struct redis_script_call *call, const char *sha,
                            size_t *ret_tail_at, struct err *err)
{
    const struct redis_arg name[] = {{.bytes = "EVALSHA", .len = 7},
                                     {.bytes = sha, .len = REDIS_SHA_LEN}};
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%zu", call->key_count);
    const struct redis_arg key_count = {.bytes = digits, .len = (size_t)len};
    enum status st = redis_command_head(out, call_words(call), err);
    if (st != STATUS_OK) {
        return st;
    }
    st = redis_command_args(out, name, 2, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret_tail_at = out->len;
    st = redis_command_args(out, &key_count, 1, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = redis_command_args(out, call->keys, call->key_count, err);
    if (st != STATUS_OK) {
        return st;
    }
    return redis_command_args(out, call->args, call->arg_count, err);
}

enum status redis_node_call(struct redis_node *node, const struct redis_script_call *call,
                            struct err *err)
{
    enum status st = may_send(node, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *sha = sha_of(node, call->script);
    if (sha == NULL) {
        return err_fail(err, STATUS_INVALID, "redis: script '%s' is not registered with the node",
                        call->script->name);
    }
    struct buf *out = link_out(node->link);
    size_t before = out->len;
    size_t tail_at = 0;
    struct request *r = NULL;
    st = put_call(out, call, sha, &tail_at, err);
    if (st == STATUS_OK) {
        st = may_send(node, out->len - before, err);
    }
    if (st == STATUS_OK) {
        r = request_new(&node->requests, out->len - tail_at);
        st = r != NULL ? STATUS_OK : err_fail(err, STATUS_NOMEM, "redis: no memory for a request");
    }
    if (st != STATUS_OK) {
        out->len = before;
        return st;
    }
    *r = (struct request){.timeout_us = call->timeout_us,
                          .reply_count = 1,
                          .len = out->len - before,
                          .on_reply = call->on_reply,
                          .on_done = call->on_done,
                          .ctx = call->ctx,
                          .script = call->script,
                          .word_count = call_words(call),
                          .tail_len = out->len - tail_at};
    memcpy(r->tail, buf_at(out) + tail_at, r->tail_len);
    request_start(node, r);
    return STATUS_OK;
}

/* Sends the same call once more, with the body, after SCRIPT FLUSH or a restart behind a proxy. */
bool node_resend_whole(struct redis_node *n)
{
    struct request *r = n->requests.queue.first;
    const struct redis_arg head[] = {{.bytes = "EVAL", .len = 4},
                                     {.bytes = r->script->body, .len = strlen(r->script->body)}};
    struct buf *out = link_out(n->link);
    size_t before = out->len;
    if (redis_command_head(out, r->word_count, NULL) != STATUS_OK ||
        redis_command_args(out, head, ARRAY_COUNT(head), NULL) != STATUS_OK ||
        buf_append(out, r->tail, r->tail_len, NULL) != STATUS_OK) {
        out->len = before;
        return false;
    }
    r = requests_pop(&n->requests);
    r->script = NULL;
    requests_push(&n->requests, r);
    node_flush_this_turn(n);
    return true;
}
