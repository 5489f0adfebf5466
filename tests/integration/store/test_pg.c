/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection: requests, values, errors, notifications. Losses are in test_pg_loss.c. */
#include "support/pg_fixture.h"

#include <stdlib.h>
#include <string.h>

static struct pg *pg;

struct seen {
    int ups;
    int downs;
    int notes;
    char channel[64];
    char payload[64];
    char why[ERR_TEXT_MAX];
};
static struct seen seen;

static void on_up(void *ctx)
{
    ((struct seen *)ctx)->ups++;
}

static void on_down(void *ctx, const struct err *why)
{
    struct seen *s = ctx;
    s->downs++;
    (void)snprintf(s->why, sizeof s->why, "%s", why->msg);
}

static void on_notify(void *ctx, const char *channel, const char *payload)
{
    struct seen *s = ctx;
    s->notes++;
    (void)snprintf(s->channel, sizeof s->channel, "%s", channel);
    (void)snprintf(s->payload, sizeof s->payload, "%s", payload);
}

static struct pg_options options(void)
{
    return (struct pg_options){.loop = &world.loop,
                               .conninfo = world.conninfo,
                               .application_name = "tested",
                               .listen = "claimd",
                               .timeout_us = 5 * US_PER_S,
                               .lock_timeout_ms = 200,
                               .statement_timeout_ms = 4000,
                               .on_up = on_up,
                               .on_down = on_down,
                               .on_notify = on_notify,
                               .ctx = &seen};
}

static void setup(void)
{
    world_setup();
    seen = (struct seen){0};
    struct pg_options o = options();
    ck_assert_int_eq(pg_open(&o, &pg, NULL), STATUS_OK);
    RUN_UNTIL(seen.ups == 1);
}

static void teardown(void)
{
    pg_close(pg);
    world_teardown();
}

/* Copies of the arguments of a request's callback. */
struct reply {
    int calls;
    enum status st;
    char code[6];
    char msg[ERR_TEXT_MAX];
    int rows[PG_STEPS_MAX];
    int64_t first[PG_STEPS_MAX];
    int step_count;
};

static void on_reply(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct reply *r = ctx;
    r->calls++;
    r->st = st;
    memcpy(r->code, err->code, sizeof r->code);
    (void)snprintf(r->msg, sizeof r->msg, "%s", err->msg);
    for (int i = 0; st == STATUS_OK && i < r->step_count; i++) {
        r->rows[i] = pg_row_count(results[i]);
        r->first[i] = r->rows[i] > 0 ? pg_i64(results[i], 0, 0) : -1;
    }
}

static void send_steps(struct reply *r, const struct pg_statement *const *statements, int count)
{
    struct pg_request request = {.step_count = count, .done = on_reply, .ctx = r};
    r->step_count = count;
    for (int i = 0; i < count; i++) {
        request.steps[i].statement = statements[i];
    }
    struct err err = {0};
    ck_assert_msg(pg_send(pg, &request, &err) == STATUS_OK, "%s", err.msg);
    ck_assert_int_eq(r->calls, 0);
}
#define SEND(reply, ...)                                          \
    do {                                                          \
        const struct pg_statement *const list_[] = {__VA_ARGS__}; \
        send_steps((reply), list_, (int)ARRAY_COUNT(list_));      \
    } while (0)

static const struct pg_statement insert_one = {
    "insert_one", "INSERT INTO claimd.queue (name) VALUES ('a')", NULL, 0};
static const struct pg_statement insert_two = {
    "insert_two", "INSERT INTO claimd.queue (name) VALUES ('b'), ('c')", NULL, 0};
static const struct pg_statement pause_queues = {"pause_queues",
                                                 "UPDATE claimd.queue SET paused = true", NULL, 0};
static const struct pg_statement count_queues = {"count_queues",
                                                 "SELECT count(*) FROM claimd.queue", NULL, 0};
static const struct pg_statement refused = {
    "refused", "INSERT INTO claimd.queue (name) VALUES ('NO')", NULL, 0};
static const struct pg_statement broken = {"broken", "SELECT nothing FROM public.nowhere", NULL, 0};

START_TEST(a_request_is_one_transaction_and_answers_step_by_step)
{
    struct reply r = {0};
    SEND(&r, &insert_one, &insert_two, &count_queues);
    RUN_UNTIL(r.calls == 1);
    ck_assert_int_eq(r.st, STATUS_OK);
    ck_assert_int_eq(r.first[2], 3);
}
END_TEST

START_TEST(an_error_in_the_middle_undoes_the_segment_and_the_next_goes_on)
{
    struct reply bad = {0};
    struct reply good = {0};
    SEND(&bad, &insert_one, &refused, &insert_two);
    SEND(&good, &count_queues);
    RUN_UNTIL(good.calls == 1);
    ck_assert_int_eq(bad.calls, 1);
    ck_assert_int_eq(bad.st, STATUS_INVALID);
    ck_assert_str_eq(bad.code, "23514");
    ck_assert_int_eq(good.st, STATUS_OK);
    ck_assert_int_eq(good.first[0], 0);
    ck_assert_int_eq(seen.downs, 0);
}
END_TEST

/* The error comes after all results, in place of the sync's commit. */
START_TEST(a_commit_that_is_refused_is_no_success)
{
    static const struct pg_statement twice = {
        "twice", "INSERT INTO public.deferred VALUES (1), (1)", NULL, 0};
    struct sql *side = sql_open(world.conninfo);
    sql_run(side, "CREATE TABLE deferred (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    struct reply bad = {0};
    struct reply good = {0};
    SEND(&bad, &twice);
    SEND(&good, &count_queues);
    RUN_UNTIL(good.calls == 1);
    ck_assert_str_eq(bad.code, "23505");
    ck_assert_int_eq(bad.st, STATUS_INVALID);
    ck_assert_int_eq(good.st, STATUS_OK);
    ck_assert_int_eq(sql_number(side, "SELECT count(*)::text FROM deferred"), 0);
    sql_close(side);
}
END_TEST

START_TEST(a_statement_that_can_not_be_prepared_says_why_and_is_tried_again)
{
    struct reply first = {0};
    struct reply both = {0};
    SEND(&first, &broken);
    SEND(&both, &insert_one, &broken);
    RUN_UNTIL(both.calls == 1);
    ck_assert_str_eq(first.code, "42P01");
    ck_assert_str_eq(both.code, "42P01");
    ck_assert_msg(strstr(first.msg, "prepare broken") != NULL, "%s", first.msg);
    struct sql *side = sql_open(world.conninfo);
    sql_run(side, "CREATE TABLE nowhere AS SELECT 7::bigint AS nothing");
    struct reply third = {0};
    SEND(&third, &broken);
    RUN_UNTIL(third.calls == 1);
    ck_assert_msg(third.st == STATUS_OK, "%s", third.msg);
    ck_assert_int_eq(third.first[0], 7);
    sql_close(side);
}
END_TEST

START_TEST(many_requests_of_one_turn_are_answered_in_order)
{
    struct reply r[40] = {0};
    for (size_t i = 0; i < ARRAY_COUNT(r); i++) {
        SEND(&r[i], &count_queues);
    }
    RUN_UNTIL(r[39].calls == 1);
    for (size_t i = 0; i < ARRAY_COUNT(r); i++) {
        ck_assert_int_eq(r[i].calls, 1);
        ck_assert_int_eq(r[i].st, STATUS_OK);
    }
}
END_TEST

START_TEST(the_session_has_its_settings)
{
    static const struct {
        const char *name;
        const char *value;
    } settings[] = {{"plan_cache_mode", "force_custom_plan"},
                    {"jit", "off"},
                    {"lock_timeout", "200ms"},
                    {"statement_timeout", "4s"},
                    {"application_name", "tested"},
                    {"TimeZone", "UTC"},
                    {"synchronous_commit", "on"},
                    {"client_encoding", "UTF8"}};
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
        char sql[128];
        (void)snprintf(sql, sizeof sql, "SELECT current_setting('%s')", settings[i].name);
        ck_assert_str_eq(world_ask(pg, sql), settings[i].value);
    }
    ck_assert_int_eq(strtoll(world_ask(pg, "SELECT pg_backend_pid()::text"), NULL, 10),
                     pg_backend_pid(pg));
    ck_assert_int_ge(pg_server_version(pg), 140000);
    ck_assert_int_gt(pg_up_since_us(pg), 0);
}
END_TEST

/* Other programs may accept such a loss; a session of ours must not lose a commit that was reported
 * as done. */
static const char *const commits[][2] = {
    {"off", "on"}, {"local", "local"}, {"remote_apply", "remote_apply"}};

START_TEST(G1_a_session_whose_commits_would_not_wait_for_the_disk_waits_all_the_same)
{
    struct pg_options o = options();
    struct pg *other = NULL;
    struct sql *side = sql_open(world.conninfo);
    sql_run(side,
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET synchronous_commit = %s', "
            "current_database()); END $$",
            commits[_i][0]);
    ck_assert_int_eq(pg_open(&o, &other, NULL), STATUS_OK);
    RUN_UNTIL(seen.ups == 2);
    ck_assert_str_eq(world_ask(other, "SELECT current_setting('synchronous_commit')"),
                     commits[_i][1]);
    pg_close(other);
    sql_close(side);
}
END_TEST

START_TEST(a_locked_row_is_refused_after_lock_timeout)
{
    struct sql *side = sql_open(world.conninfo);
    sql_run(side, "INSERT INTO claimd.queue (name) VALUES ('a')");
    sql_run(side, "BEGIN");
    sql_run(side, "SELECT 1 FROM claimd.queue FOR UPDATE");
    struct reply r = {0};
    SEND(&r, &pause_queues);
    RUN_UNTIL(r.calls == 1);
    ck_assert_str_eq(r.code, "55P03");
    ck_assert_int_eq(r.st, STATUS_TIMEOUT);
    sql_close(side);
}
END_TEST

START_TEST(notifications_arrive_while_idle_and_under_load)
{
    struct sql *side = sql_open(world.conninfo);
    sql_run(side, "SELECT pg_notify('claimd', 'hello')");
    RUN_UNTIL(seen.notes == 1);
    ck_assert_str_eq(seen.channel, "claimd");
    ck_assert_str_eq(seen.payload, "hello");
    struct reply r[20] = {0};
    for (size_t i = 0; i < ARRAY_COUNT(r); i++) {
        SEND(&r[i], &count_queues);
    }
    sql_run(side, "SELECT pg_notify('claimd', 'again')");
    RUN_UNTIL(seen.notes == 2 && r[19].calls == 1);
    sql_close(side);
}
END_TEST

/* ---- values ---- */

struct values {
    bool is_done;
    bool flags[2];
    bool is_null;
    int64_t numbers[8];
    int64_t time_us;
    int64_t infinity_us;
    char text[64];
    char uuid[64];
};

static void on_values(void *ctx, enum status st, const struct pg_result *const *results,
                      const struct err *err)
{
    struct values *v = ctx;
    const struct pg_result *r = results != NULL ? results[0] : NULL;
    ck_assert_msg(st == STATUS_OK, "%s", err->msg);
    v->is_done = true;
    for (int i = 0; i < 8; i++) {
        v->numbers[i] = pg_i64(r, 0, i);
    }
    v->flags[0] = pg_bool(r, 0, 8);
    v->flags[1] = pg_bool(r, 0, 9);
    v->time_us = pg_time_us(r, 0, 10);
    v->infinity_us = pg_time_us(r, 0, 11);
    (void)snprintf(v->text, sizeof v->text, "%s", pg_text(r, 0, 12, NULL));
    (void)snprintf(v->uuid, sizeof v->uuid, "%s", pg_text(r, 0, 13, NULL));
    v->is_null = pg_is_null(r, 0, 14);
}

START_TEST(values_make_the_round_trip_in_binary)
{
    static const unsigned types[] = {PG_INT8, PG_INT4, PG_INT8_ARRAY, PG_TEXT_ARRAY, PG_TEXT,
                                     PG_BOOL, PG_UUID, PG_TEXT,       PG_INT8_ARRAY, PG_INT8_ARRAY};
    static const struct pg_statement statement = {
        "values",
        "SELECT $1, $2, 32767::int2, ($3::int8[])[3], array_length($3, 1), array_length($4, 1),"
        " ($9::int8[])[2], cardinality($10), $6, NOT $6, timestamptz '2026-01-02 03:04:05.678901Z',"
        " timestamptz 'infinity', ($4::text[])[1] || ($4)[3] || coalesce(($4)[2], '~') || $5,"
        " $7::text, $8",
        types, ARRAY_COUNT(types)};
    const int64_t numbers[] = {1, INT64_MIN, INT64_MAX};
    const int64_t pair[] = {5, -7};
    const char *const texts[] = {"a\"{},\\ß", NULL, ""};
    char storage[3][16];
    autobuf struct buf int8s = BUF_INIT(4096);
    autobuf struct buf two = BUF_INIT(4096);
    autobuf struct buf words = BUF_INIT(4096);
    autobuf struct buf empty = BUF_INIT(64);
    struct pg_param uuid;
    ck_assert_int_eq(pg_array_i64(&int8s, numbers, 3, NULL), STATUS_OK);
    ck_assert_int_eq(pg_array_text(&words, texts, NULL, 3, NULL), STATUS_OK);
    ck_assert_int_eq(pg_array_i64(&two, pair, 2, NULL), STATUS_OK);
    ck_assert_int_eq(pg_array_i64(&empty, NULL, 0, NULL), STATUS_OK);
    ck_assert_int_eq(pg_param_uuid("0123ABCD-4567-89ef-0123-456789abcdef", storage[2], &uuid, NULL),
                     STATUS_OK);
    const struct pg_param params[] = {pg_param_i64(INT64_MIN, storage[0]),
                                      pg_param_i32(-2, storage[1]),
                                      pg_param_buf(&int8s),
                                      pg_param_buf(&words),
                                      pg_param_text("end"),
                                      pg_param_bool(true),
                                      uuid,
                                      pg_param_text(NULL),
                                      pg_param_buf(&two),
                                      pg_param_buf(&empty)};
    struct values v = {0};
    struct err err = {0};
    const struct pg_request request = {.steps = {{.statement = &statement, .params = params}},
                                       .step_count = 1,
                                       .done = on_values,
                                       .ctx = &v};
    ck_assert_msg(pg_send(pg, &request, &err) == STATUS_OK, "%s", err.msg);
    RUN_UNTIL(v.is_done);
    const int64_t expected[] = {INT64_MIN, -2, 32767, INT64_MAX, 3, 3, -7, 0};
    ck_assert_mem_eq(v.numbers, expected, sizeof expected);
    ck_assert(v.flags[0] && !v.flags[1] && v.is_null);
    ck_assert_int_eq(v.time_us, INT64_C(1767323045678901));
    ck_assert_int_eq(v.infinity_us, INT64_MAX);
    ck_assert_str_eq(v.text, "a\"{},\\ß~end");
    ck_assert_str_eq(v.uuid, "0123abcd-4567-89ef-0123-456789abcdef");
}
END_TEST

static void on_places(void *ctx, enum status st, const struct pg_result *const *results,
                      const struct err *err)
{
    int64_t *places = ctx;
    ck_assert_msg(st == STATUS_OK, "%s", err->msg);
    for (int i = 0; i < 4; i++) {
        places[i] = pg_tid(results[0], 0, i);
    }
    places[4] = pg_bool(results[0], 0, 4);
}

START_TEST(places_of_rows_make_the_round_trip)
{
    static const unsigned types[] = {PG_TID_ARRAY};
    static const struct pg_statement statement = {
        "places", "SELECT $1[1], $1[2], $1[3], tid '(4294967294,65535)', $1[2] = '(65536,7)'::tid",
        types, ARRAY_COUNT(types)};
    const int64_t sent[] = {PG_TID_NULL, (INT64_C(65536) << 16) + 7, 0};
    autobuf struct buf array = BUF_INIT(4096);
    ck_assert_int_eq(pg_array_tid(&array, sent, 3, NULL), STATUS_OK);
    const struct pg_param param = pg_param_buf(&array);
    int64_t got[5] = {0, 0, 0, 0, -1};
    ck_assert_int_eq(pg_send_one(pg, &statement, &param, on_places, got, NULL), STATUS_OK);
    RUN_UNTIL(got[4] != -1);
    const int64_t expected[] = {PG_TID_NULL, sent[1], 0, (INT64_C(4294967294) << 16) + 65535, 1};
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++) {
        ck_assert_int_eq(got[i], expected[i]);
    }
}
END_TEST

START_TEST(a_text_that_is_no_uuid_is_refused)
{
    static const char *const bad[] = {"", "0123", "0123abcd-4567-89ef-0123-456789abcdeg",
                                      "0123abcd-4567-89ef-0123-456789abcdef0"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        char storage[16];
        struct pg_param param;
        ck_assert_int_eq(pg_param_uuid(bad[i], storage, &param, NULL), STATUS_INVALID);
    }
}
END_TEST

START_TEST(a_megabyte_goes_in_and_comes_out)
{
    enum { SIZE = 1 << 20 };
    static const unsigned types[] = {PG_TEXT};
    static const struct pg_statement statement = {"", "SELECT octet_length($1)::int8, $1", types,
                                                  1};
    autofree char *text = malloc(SIZE + 1);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', SIZE);
    text[SIZE] = '\0';
    const struct pg_param params[] = {pg_param_text(text)};
    struct reply r[4] = {0};
    for (size_t i = 0; i < ARRAY_COUNT(r); i++) {
        r[i].step_count = 1;
        const struct pg_request request = {.steps = {{.statement = &statement, .params = params}},
                                           .step_count = 1,
                                           .done = on_reply,
                                           .ctx = &r[i]};
        ck_assert_int_eq(pg_send(pg, &request, NULL), STATUS_OK);
    }
    RUN_UNTIL(r[3].calls == 1);
    for (size_t i = 0; i < ARRAY_COUNT(r); i++) {
        ck_assert_int_eq(r[i].first[0], SIZE);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pg");
    TCase *requests = tcase_create("requests");
    tcase_add_checked_fixture(requests, setup, teardown);
    tcase_set_timeout(requests, 30);
    tcase_add_test(requests, a_request_is_one_transaction_and_answers_step_by_step);
    tcase_add_test(requests, an_error_in_the_middle_undoes_the_segment_and_the_next_goes_on);
    tcase_add_test(requests, a_commit_that_is_refused_is_no_success);
    tcase_add_test(requests, a_statement_that_can_not_be_prepared_says_why_and_is_tried_again);
    tcase_add_test(requests, many_requests_of_one_turn_are_answered_in_order);
    tcase_add_test(requests, the_session_has_its_settings);
    tcase_add_loop_test(requests,
                        G1_a_session_whose_commits_would_not_wait_for_the_disk_waits_all_the_same,
                        0, (int)ARRAY_COUNT(commits));
    tcase_add_test(requests, a_locked_row_is_refused_after_lock_timeout);
    tcase_add_test(requests, notifications_arrive_while_idle_and_under_load);
    tcase_add_test(requests, values_make_the_round_trip_in_binary);
    tcase_add_test(requests, places_of_rows_make_the_round_trip);
    tcase_add_test(requests, a_text_that_is_no_uuid_is_refused);
    tcase_add_test(requests, a_megabyte_goes_in_and_comes_out);
    suite_add_tcase(suite, requests);
    return world_run(suite);
}
