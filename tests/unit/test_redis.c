/* SPDX-License-Identifier: Apache-2.0 */
#include "redis/info.h"
#include "redis/reader.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

static const struct {
    const char *text;
    struct redis_endpoint want;
} good_endpoints[] = {
    {"localhost", {.host = "localhost", .port = 6379}},
    {"r1.example:7000", {.host = "r1.example", .port = 7000}},
    {"[::1]:7001", {.host = "::1", .port = 7001}},
    {"[fe80::2]", {.host = "fe80::2", .port = 6379}},
    {"unix:/run/redis.sock", {.port = 6379, .path = "/run/redis.sock"}},
    {"redis://h", {.host = "h", .port = 6379}},
    {"redis://h/", {.host = "h", .port = 6379}},
    {"redis://u:p%40ss@h:1/3", {.host = "h", .port = 1, .user = "u", .password = "p@ss", .db = 3}},
    {"rediss://h:1/3", {.host = "h", .port = 1, .db = 3, .is_tls = true}},
    {"redis://:secret@[::1]:2", {.host = "::1", .port = 2, .password = "secret"}},
};

START_TEST(an_endpoint_is_read)
{
    struct redis_endpoint got = {0};
    struct err err = {0};
    const struct redis_endpoint *want = &good_endpoints[_i].want;
    ck_assert_msg(redis_endpoint_parse(good_endpoints[_i].text, &got, &err) == STATUS_OK, "%s: %s",
                  good_endpoints[_i].text, err.msg);
    ck_assert_str_eq(got.host, want->host);
    ck_assert_str_eq(got.path, want->path);
    ck_assert_str_eq(got.user, want->user);
    ck_assert_str_eq(got.password, want->password);
    ck_assert_int_eq(got.port, want->port);
    ck_assert_int_eq(got.db, want->db);
    ck_assert_int_eq(got.is_tls, want->is_tls);
}
END_TEST

static const char *const bad_endpoints[] = {
    "",         ":1",       "h:",          "h:0",          "h:65536",       "h:1x",
    "[::1",     "[::1]x",   "[]:1",        "unix:run",     "unix:",         "rediss://",
    "http://h", "redis://", "redis://h/x", "redis://h/-1", "redis://u%4@h", "redis://u%00@h",
};

START_TEST(a_bad_endpoint_is_refused_with_a_reason)
{
    struct redis_endpoint got = {.port = -1};
    struct err err = {0};
    ck_assert_int_eq(redis_endpoint_parse(bad_endpoints[_i], &got, &err), STATUS_INVALID);
    ck_assert_str_ne(err.msg, "");
    ck_assert_int_eq(got.port, -1);
}
END_TEST

START_TEST(an_endpoint_is_shown_without_its_password)
{
    static const struct redis_endpoint list[] = {{.host = "h", .port = 1, .password = "x"},
                                                 {.host = "::1", .port = 2, .password = "x"},
                                                 {.path = "/s", .password = "x"}};
    static const char *const want[] = {"h:1", "[::1]:2", "unix:/s"};
    char text[REDIS_ENDPOINT_TEXT_SIZE];
    for (size_t i = 0; i < ARRAY_COUNT(list); i++) {
        redis_endpoint_text(&list[i], text, sizeof text);
        ck_assert_str_eq(text, want[i]);
    }
}
END_TEST

START_TEST(K4_commands_are_binary_safe)
{
    autobuf struct buf out = BUF_INIT(4096);
    const struct redis_arg args[] = {{"SET", 3}, {"a\0\r\nb", 5}, {"%s", 2}, {NULL, 0}};
    static const char want[] = "*4\r\n$3\r\nSET\r\n$5\r\na\0\r\nb\r\n$2\r\n%s\r\n$0\r\n\r\n";
    ck_assert_int_eq(redis_command(&out, args, ARRAY_COUNT(args), NULL), STATUS_OK);
    ck_assert_uint_eq(out.len, sizeof want - 1);
    ck_assert_mem_eq(buf_at(&out), want, sizeof want - 1);
}
END_TEST

START_TEST(a_command_past_the_bound_leaves_the_buffer_as_it_was)
{
    autobuf struct buf out = BUF_INIT(40);
    const struct redis_arg args[] = {{"0123456789012345678901234567890123456789", 40}};
    ck_assert_int_eq(buf_append_text(&out, "keep", NULL), STATUS_OK);
    ck_assert_int_eq(redis_command(&out, args, 1, NULL), STATUS_LIMIT);
    ck_assert_uint_eq(out.len, 4);
}
END_TEST

static const char info_text[] = "# Server\r\nredis_version:7.0.15\r\n"
                                "run_id:1bd7e3b2a1bd7e3b2a1bd7e3b2a1bd7e3b2a1bd7\r\n"
                                "uptime_in_seconds:12\r\nmaxmemory:1024\r\n"
                                "maxmemory_policy:allkeys-lru\r\nrole:slave\r\n"
                                "connected_slaves:2\r\ncluster_enabled:1\r\n";

START_TEST(info_is_read)
{
    struct redis_server_info info = {0};
    struct err err = {0};
    ck_assert_msg(redis_info_parse(info_text, sizeof info_text - 1, &info, &err) == STATUS_OK, "%s",
                  err.msg);
    ck_assert_str_eq(info.run_id, "1bd7e3b2a1bd7e3b2a1bd7e3b2a1bd7e3b2a1bd7");
    ck_assert_int_eq(info.version_number, 70015);
    ck_assert_int_eq(info.uptime_us, 12000000);
    ck_assert(!info.is_master && info.is_cluster && info.may_evict);
    ck_assert_int_eq(info.replica_count, 2);
}
END_TEST

static const struct {
    const char *lines;
    const char *server;
    const char *version;
    int version_number;
    bool has_set_ifeq;
} servers[] = {
    {"redis_version:7.0.15\r\n", "redis", "7.0.15", 70015, false},
    {"redis_version:8.2.1\r\n", "redis", "8.2.1", 80201, false},
    {"redis_version:8.4.0\r\n", "redis", "8.4.0", 80400, true},
    {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.2\r\n", "valkey", "8.0.2",
     80002, false},
    {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n", "valkey", "8.1.0",
     80100, true},
    {"redis_version:7.2.4\r\nvalkey_version:9.0.0\r\n", "valkey", "9.0.0", 90000, true},
};

START_TEST(C9_what_a_server_can_do_is_told_by_its_own_version)
{
    autobuf struct buf text = BUF_INIT(4096);
    struct redis_server_info info = {0};
    ck_assert_int_eq(buf_append_text(&text, servers[_i].lines, NULL), STATUS_OK);
    ck_assert_int_eq(buf_append_text(&text, strstr(info_text, "run_id"), NULL), STATUS_OK);
    ck_assert_int_eq(redis_info_parse(buf_at(&text), text.len, &info, NULL), STATUS_OK);
    ck_assert_str_eq(info.server, servers[_i].server);
    ck_assert_str_eq(info.version, servers[_i].version);
    ck_assert_int_eq(info.version_number, servers[_i].version_number);
    ck_assert_int_eq(info.has_set_ifeq, servers[_i].has_set_ifeq);
}
END_TEST

START_TEST(info_without_a_field_that_decides_is_refused)
{
    struct redis_server_info info = {0};
    for (const char *line = info_text; *line != '\0'; line = strchr(line, '\n') + 1) {
        autobuf struct buf cut = BUF_INIT(4096);
        size_t skip = strcspn(line, "\n") + 1;
        ck_assert_int_eq(buf_append(&cut, info_text, (size_t)(line - info_text), NULL), STATUS_OK);
        ck_assert_int_eq(buf_append_text(&cut, line + skip, NULL), STATUS_OK);
        enum status want = line == info_text ? STATUS_OK : STATUS_INVALID;
        ck_assert_int_eq(redis_info_parse(buf_at(&cut), cut.len, &info, NULL), want);
    }
}
END_TEST

static const struct {
    const char *text;
    enum redis_error_class want;
} errors[] = {
    {"LOADING Redis is loading the dataset in memory", REDIS_ERROR_NODE},
    {"BUSY Redis is busy running a script", REDIS_ERROR_NODE},
    {"OOM command not allowed", REDIS_ERROR_NODE},
    {"READONLY You can't write against a read only replica.", REDIS_ERROR_NODE},
    {"MISCONF Redis is configured to save", REDIS_ERROR_NODE},
    {"ERR max number of clients reached", REDIS_ERROR_NODE},
    {"NOSCRIPT No matching script.", REDIS_ERROR_NOSCRIPT},
    {"NOAUTH Authentication required.", REDIS_ERROR_CONFIG},
    {"NOPERM this user has no permissions", REDIS_ERROR_CONFIG},
    {"WRONGTYPE Operation against a key", REDIS_ERROR_CONFIG},
    {"ERR unknown command 'X'", REDIS_ERROR_CONFIG},
    {"BUSYGROUP x", REDIS_ERROR_CONFIG},
};

START_TEST(C8_error_replies_are_classified)
{
    const struct redis_value v = {
        .type = REDIS_ERROR, .text = errors[_i].text, .len = strlen(errors[_i].text)};
    ck_assert_int_eq(redis_error_class(&v), errors[_i].want);
}
END_TEST

static void check_reply(const struct redis_value *v)
{
    ck_assert_ptr_nonnull(v);
    ck_assert_int_eq(v->type, REDIS_ARRAY);
    ck_assert_uint_eq(v->len, 4);
    ck_assert_int_eq(v->items[0]->integer, -7);
    ck_assert_uint_eq(v->items[1]->len, 3);
    ck_assert_mem_eq(v->items[1]->text, "a\0b", 4);
    ck_assert_int_eq(v->items[2]->type, REDIS_NIL);
    ck_assert_int_eq(v->items[3]->items[0]->type, REDIS_ERROR);
    ck_assert_str_eq(v->items[3]->items[0]->text, "ERR x");
}

START_TEST(replies_are_read_however_they_are_cut)
{
    static const char bytes[] = "*4\r\n:-7\r\n$3\r\na\0b\r\n$-1\r\n*1\r\n-ERR x\r\n+OK\r\n*0\r\n";
    size_t len = sizeof bytes - 1;
    for (size_t cut = 1; cut < len; cut++) {
        struct reader *r = NULL;
        const struct redis_value *v = NULL;
        size_t seen = 0;
        ck_assert_int_eq(reader_new(&r, NULL), STATUS_OK);
        for (size_t at = 0; at < len; at += cut) {
            size_t part = len - at < cut ? len - at : cut;
            ck_assert_int_eq(reader_feed(r, bytes + at, part, NULL), STATUS_OK);
            while (reader_next(r, &v, NULL) == STATUS_OK && v != NULL) {
                if (seen == 0) {
                    check_reply(v);
                }
                seen++;
            }
        }
        ck_assert_uint_eq(seen, 3);
        reader_free(r);
    }
}
END_TEST

static const char *const bad_replies[] = {
    "x\r\n",
    "*2000000000\r\n",
    "$-9\r\n",
    ":1x\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
    /* RESP3, which is never requested. */
    "%1\r\n+a\r\n:1\r\n",
    "~1\r\n+a\r\n",
    ">2\r\n+message\r\n+x\r\n",
    "|1\r\n+ttl\r\n:1\r\n+OK\r\n",
    "_\r\n",
    "*1\r\n_\r\n",
    ",1.5\r\n",
    "#t\r\n",
    "(12345678901234567890\r\n",
    "=5\r\ntxt:a\r\n",
    "*2\r\n:1\r\n#f\r\n",
    "*1\r\n%1\r\n+a\r\n:1\r\n",
};

START_TEST(C6_what_is_not_the_protocol_or_too_large_is_refused)
{
    struct reader *r = NULL;
    const struct redis_value *v = NULL;
    ck_assert_int_eq(reader_new(&r, NULL), STATUS_OK);
    ck_assert_int_eq(reader_feed(r, bad_replies[_i], strlen(bad_replies[_i]), NULL), STATUS_OK);
    ck_assert_int_eq(reader_next(r, &v, NULL), STATUS_INVALID);
    reader_free(r);
}
END_TEST

START_TEST(a_reply_that_never_ends_is_refused)
{
    static char block[1 << 20];
    struct reader *r = NULL;
    const struct redis_value *v = NULL;
    enum status st = STATUS_OK;
    ck_assert_int_eq(reader_new(&r, NULL), STATUS_OK);
    ck_assert_int_eq(reader_feed(r, "$99999999\r\n", 11, NULL), STATUS_OK);
    for (int i = 0; i < 32 && st == STATUS_OK; i++) {
        st = reader_feed(r, block, sizeof block, NULL);
        if (st == STATUS_OK) {
            st = reader_next(r, &v, NULL);
        }
    }
    ck_assert_int_eq(st, STATUS_LIMIT);
    reader_free(r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("redis");
    TCase *t = tcase_create("pure");
    tcase_add_loop_test(t, an_endpoint_is_read, 0, (int)ARRAY_COUNT(good_endpoints));
    tcase_add_loop_test(t, a_bad_endpoint_is_refused_with_a_reason, 0,
                        (int)ARRAY_COUNT(bad_endpoints));
    tcase_add_test(t, an_endpoint_is_shown_without_its_password);
    tcase_add_test(t, K4_commands_are_binary_safe);
    tcase_add_test(t, a_command_past_the_bound_leaves_the_buffer_as_it_was);
    tcase_add_test(t, info_is_read);
    tcase_add_loop_test(t, C9_what_a_server_can_do_is_told_by_its_own_version, 0,
                        (int)ARRAY_COUNT(servers));
    tcase_add_test(t, info_without_a_field_that_decides_is_refused);
    tcase_add_loop_test(t, C8_error_replies_are_classified, 0, (int)ARRAY_COUNT(errors));
    tcase_add_test(t, replies_are_read_however_they_are_cut);
    tcase_add_loop_test(t, C6_what_is_not_the_protocol_or_too_large_is_refused, 0,
                        (int)ARRAY_COUNT(bad_replies));
    tcase_add_test(t, a_reply_that_never_ends_is_refused);
    suite_add_tcase(s, t);
    return suite_run(s);
}
