/* SPDX-License-Identifier: Apache-2.0
 *
 * The scripts' calls of lock-vectors.json, by a real server: replies, and what it publishes. */
#include "base/clock.h"
#include "cluster/servers.h"
#include "redis/subscriber.h"
#include "redlock/core/scripts.h"
#include "support/suite_dir.h"
#include "vectors.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_US (120 * US_PER_S)
#define WORDS_MAX 16
#define TEXT_MAX 1024

/* The clients that receive messages. */
static struct client {
    const char *name;
    struct redis_subscriber *subscriber;
    char heard[TEXT_MAX];
} clients[] = {{.name = "aaaaaaaaaaaa"}, {.name = "bbbbbbbbbbbb"}, {.name = "cccccccccccc"}};

static char base_dir[SERVER_PATH_MAX];
static struct redis_server server;
static uv_loop_t loop;
static uv_timer_t tick;
static struct redis_node *node;
static json_t *vectors;
static size_t ready; /* connections */
static bool is_done;
static const char *case_name;

static void run_until(const bool *is_over)
{
    int64_t end_us = clock_boot_us() + LIMIT_US;
    while (!*is_over) {
        ck_assert_msg(clock_boot_us() < end_us, "%s: no answer", case_name);
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
}

/* ---- replies ---- */

static bool is_as_told(const json_t *want, const struct redis_value *v)
{
    const json_t *like = json_object_get(want, "like");
    if (json_is_null(want)) {
        return v->type == REDIS_NIL;
    }
    if (json_is_integer(want)) {
        return v->type == REDIS_INTEGER && v->integer == json_integer_value(want);
    }
    if (json_is_string(want)) {
        return (v->type == REDIS_STRING || v->type == REDIS_STATUS) &&
               strcmp(v->text, json_string_value(want)) == 0;
    }
    if (like != NULL) {
        return v->type == REDIS_STRING && fnmatch(json_string_value(like), v->text, 0) == 0;
    }
    if (json_is_object(want)) {
        return v->type == REDIS_INTEGER && v->integer >= vectors_i64(want, "min") &&
               v->integer <= vectors_i64(want, "max");
    }
    bool is_same = v->type == REDIS_ARRAY && v->len == json_array_size(want);
    for (size_t i = 0; is_same && i < v->len; i++) {
        is_same = is_as_told(json_array_get(want, i), v->items[i]);
    }
    return is_same;
}

static void write_value(char *out, size_t size, const struct redis_value *v)
{
    size_t used = 0;
    if (v->type == REDIS_INTEGER) {
        (void)snprintf(out, size, "%lld", (long long)v->integer);
    } else if (v->type != REDIS_ARRAY) {
        (void)snprintf(out, size, "%s", v->type == REDIS_NIL ? "null" : v->text);
    }
    for (size_t i = 0; v->type == REDIS_ARRAY && i < v->len && used + 2 < size; i++) {
        out[used++] = i == 0 ? '[' : ',';
        write_value(out + used, size - used, v->items[i]);
        used += strlen(out + used);
    }
}

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    const json_t *step = ctx;
    char got[TEXT_MAX] = "";
    (void)index;
    write_value(got, sizeof got, v);
    ck_assert_msg(is_as_told(vectors_get(step, "reply"), v), "%s: %s: got %s", case_name,
                  json_dumps(step, JSON_COMPACT), got);
}

static void on_done(void *ctx, enum status st)
{
    (void)ctx;
    ck_assert_int_eq(st, STATUS_OK);
    is_done = true;
}

/* ---- steps ---- */

static size_t words_of(const json_t *texts, struct redis_arg *ret)
{
    size_t count = json_array_size(texts);
    ck_assert_uint_le(count, WORDS_MAX);
    for (size_t i = 0; i < count; i++) {
        ret[i] = redis_word(json_string_value(json_array_get(texts, i)));
    }
    return count;
}

static const struct redis_script *script_of(const char *name)
{
    size_t i = 0;
    while (i < SCRIPTS_COUNT && strcmp(scripts_all[i]->name, name) != 0) {
        i++;
    }
    ck_assert_msg(i < SCRIPTS_COUNT, "%s: there is no script %s", case_name, name);
    return scripts_all[i];
}

static void run_script(json_t *step)
{
    struct redis_arg keys[WORDS_MAX];
    struct redis_arg args[WORDS_MAX];
    const struct redis_script_call call = {.script = script_of(vectors_text(step, "call")),
                                           .keys = keys,
                                           .key_count = words_of(vectors_get(step, "keys"), keys),
                                           .args = args,
                                           .arg_count = words_of(vectors_get(step, "args"), args),
                                           .timeout_us = LIMIT_US,
                                           .on_reply = on_reply,
                                           .on_done = on_done,
                                           .ctx = step};
    ck_assert_int_eq(redis_node_call(node, &call, NULL), STATUS_OK);
}

static void run_command(json_t *step)
{
    autobuf struct buf out = BUF_INIT(TEXT_MAX);
    struct redis_arg words[WORDS_MAX];
    size_t count = words_of(vectors_get(step, "do"), words);
    ck_assert_int_eq(redis_command(&out, words, count, NULL), STATUS_OK);
    const struct redis_request request = {.bytes = buf_at(&out),
                                          .len = out.len,
                                          .reply_count = 1,
                                          .timeout_us = LIMIT_US,
                                          .on_reply = on_reply,
                                          .on_done = on_done,
                                          .ctx = step};
    ck_assert_int_eq(redis_node_send(node, &request, NULL), STATUS_OK);
}

static void run_step(json_t *step)
{
    is_done = false;
    if (json_object_get(step, "call") != NULL) {
        run_script(step);
    } else {
        run_command(step);
    }
    run_until(&is_done);
}

static void flush(void)
{
    json_t *step = json_pack("{s:[s], s:s}", "do", "FLUSHALL", "reply", "OK");
    run_step(step);
    json_decref(step);
}

/* ---- messages ---- */

static void append_line(char *text, const char *line, size_t len)
{
    size_t used = strlen(text);
    (void)snprintf(text + used, TEXT_MAX - used, "%.*s\n", (int)len, line);
}

static void on_message(void *ctx, const char *payload, size_t payload_len)
{
    struct client *c = ctx;
    append_line(c->heard, payload, payload_len);
}

static void on_subscribed(void *ctx)
{
    (void)ctx;
    ready++;
}

static void expect(const json_t *messages, const char *client, char *ret)
{
    ret[0] = '\0';
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *m = json_array_get(messages, i);
        const json_t *lines = vectors_get(m, "messages");
        for (size_t k = 0;
             strcmp(vectors_text(m, "client"), client) == 0 && k < json_array_size(lines); k++) {
            const char *line = json_string_value(json_array_get(lines, k));
            append_line(ret, line, strlen(line));
        }
    }
}

/* One that nobody expects is found by the next case at the latest. */
static void check_messages(const json_t *messages)
{
    for (size_t i = 0; i < ARRAY_COUNT(clients); i++) {
        struct client *c = &clients[i];
        char expected[TEXT_MAX];
        int64_t end_us = clock_boot_us() + LIMIT_US;
        expect(messages, c->name, expected);
        while (strlen(c->heard) < strlen(expected) && clock_boot_us() < end_us) {
            (void)uv_run(&loop, UV_RUN_ONCE);
        }
        ck_assert_msg(strcmp(c->heard, expected) == 0, "%s: %s was told %s, not %s", case_name,
                      c->name, c->heard, expected);
        c->heard[0] = '\0';
    }
}

START_TEST(R3_L1_L9_the_scripts_do_what_the_vectors_say)
{
    const json_t *v = NULL;
    const json_t *cases = vectors_list(vectors, "scripts");
    for (size_t n = 0; (v = json_array_get(cases, n)) != NULL; n++) {
        const json_t *steps = vectors_get(v, "steps");
        case_name = vectors_text(v, "case");
        for (size_t i = 0; i < json_array_size(steps); i++) {
            run_step(json_array_get(steps, i));
        }
        check_messages(vectors_get(v, "messages"));
        flush();
    }
    check_messages(NULL);
}
END_TEST

/* ---- the server ---- */

static enum status on_up(void *ctx, struct redis_node *n, const struct redis_server_info *info,
                         struct err *err)
{
    (void)ctx;
    (void)n;
    (void)info;
    (void)err;
    ready++;
    return STATUS_OK;
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer; /* wakes the loop */
}

static void subscribe(struct client *c, const struct redis_endpoint *endpoint)
{
    char channel[64];
    int len = snprintf(channel, sizeof channel, "redlock:to:%s", c->name);
    const struct redis_subscriber_options options = {.loop = &loop,
                                                     .endpoint = *endpoint,
                                                     .channel = channel,
                                                     .channel_len = (size_t)len,
                                                     .connect_timeout_us = LIMIT_US,
                                                     .on_message = on_message,
                                                     .on_subscribed = on_subscribed,
                                                     .ctx = c};
    ck_assert_int_eq(redis_subscriber_open(&options, &c->subscriber, NULL), STATUS_OK);
}

static void setup(void)
{
    char dir[SERVER_PATH_MAX + 32];
    struct err err = {0};
    vectors = vectors_load();
    case_name = "setup";
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uv_timer_init(&loop, &tick), 0);
    (void)uv_timer_start(&tick, on_tick, 5, 5);
    (void)snprintf(dir, sizeof dir, "%s/%d", base_dir, (int)getpid());
    ck_assert_msg(redis_server_start(dir, NULL, &server, &err) == STATUS_OK, "%s", err.msg);
    struct redis_options options = {.loop = &loop,
                                    .connect_timeout_us = LIMIT_US,
                                    .scripts = scripts_all,
                                    .script_count = SCRIPTS_COUNT,
                                    .on_up = on_up};
    (void)snprintf(options.endpoint.path, sizeof options.endpoint.path, "%s", server.path);
    ck_assert_int_eq(redis_node_open(&options, &node, NULL), STATUS_OK);
    for (size_t i = 0; i < ARRAY_COUNT(clients); i++) {
        subscribe(&clients[i], &options.endpoint);
    }
    for (int64_t end_us = clock_boot_us() + LIMIT_US; ready < 1 + ARRAY_COUNT(clients);) {
        ck_assert_int_lt(clock_boot_us(), end_us);
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
}

static void teardown(void)
{
    redis_node_close(node);
    for (size_t i = 0; i < ARRAY_COUNT(clients); i++) {
        redis_subscriber_close(clients[i].subscriber);
    }
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0); /* nothing was left open */
    redis_server_stop(&server);
    json_decref(vectors);
}

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, R3_L1_L9_the_scripts_do_what_the_vectors_say);
}

int main(void)
{
    const struct suite_in_dir in = {.name = "redlock_vectors_scripts",
                                    .ret_dir = base_dir,
                                    .dir_size = sizeof base_dir,
                                    .timeout_s = 120,
                                    .setup = setup,
                                    .teardown = teardown,
                                    .add_tests = add_tests};
    return suite_run_in_dir(&in);
}
