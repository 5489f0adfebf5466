/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"
#include "ctl/commands/enqueue/job_line.h"
#include "ctl/options/job_check.h"
#include "ctl/options/job_time.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define NOW_US INT64_C(1767225600123456) /* 2026-01-01 00:00:00.123456 UTC */
#define NOW_TEXT "2026-01-01 00:00:00.123456+00"
#define MUTATIONS 20000

static enum status row(const char *line, struct buf *out, struct err *err)
{
    buf_reset(out);
    *err = (struct err){0};
    bool is_request = false;
    return job_line_put(line, strlen(line), NOW_US, &is_request, out, NULL, err);
}

/* kind, args, queue, priority, scheduled_at, max_attempts, timeout, tags, metadata. Columns that
 * are added after them belong in END. */
#define COLUMNS 10
#define END "\t\\N\n"
static const struct {
    const char *line;
    const char *row;
} rows[] = {
    {"{\"kind\":\"a\"}", "a\t{}\tdefault\t4\t" NOW_TEXT "\t\\N\t\\N\t\\N\t\\N" END},
    {"{\"args\":[1.10,{\"x\":\"]}\\\"\"},[]],\"kind\":\"a\"}",
     "a\t[1.10,{\"x\":\"]}\\\\\"\"},[]]\tdefault\t4\t" NOW_TEXT "\t\\N\t\\N\t\\N\t\\N" END},
    {" { \"kind\" : \"a\" , \"args\" : -1e3 , \"priority\" : 0 } ",
     "a\t-1e3\tdefault\t0\t" NOW_TEXT "\t\\N\t\\N\t\\N\t\\N" END},
    {"{\"kind\":\"a\",\"args\":{\"a\":\t1}}",
     "a\t{\"a\":\\t1}\tdefault\t4\t" NOW_TEXT "\t\\N\t\\N\t\\N\t\\N" END},
    {"{\"kind\":\"a\",\"args\":\"\\\\N\\n\"}",
     "a\t\"\\\\\\\\N\\\\n\"\tdefault\t4\t" NOW_TEXT "\t\\N\t\\N\t\\N\t\\N" END},
    {"{\"kind\":\"a\",\"delay\":1}",
     "a\t{}\tdefault\t4\t2026-01-01 00:00:01.123456+00\t\\N\t\\N\t\\N\t\\N" END},
    {"{\"kind\":\"a\",\"delay\":\"250ms\"}",
     "a\t{}\tdefault\t4\t2026-01-01 00:00:00.373456+00\t\\N\t\\N\t\\N\t\\N" END},
    {"{\"kind\":\"a\",\"at\":\"1999-12-31T23:59:59.5-05:30\"}",
     "a\t{}\tdefault\t4\t1999-12-31T23:59:59.5-05:30\t\\N\t\\N\t\\N\t\\N" END},
    {"{\"kind\":\"a\",\"timeout\":\"1m\",\"max_attempts\":1,\"tags\":[],\"metadata\":{}}",
     "a\t{}\tdefault\t4\t" NOW_TEXT "\t1\t60000000 microseconds\t{}\t{}" END},
    {"{\"kind\":\"a\",\"tags\":[\"x,y\",\"q\\\"\\\\\",\" \"]}",
     "a\t{}\tdefault\t4\t" NOW_TEXT "\t\\N\t\\N\t{\"x,y\",\"q\\\\\"\\\\\\\\\",\" \"}\t\\N" END},
    {"{\"kind\":\"a\",\"queue\":null,\"args\":null,\"delay\":null,\"at\":null,\"tags\":null}",
     "a\t{}\tdefault\t4\t" NOW_TEXT "\t\\N\t\\N\t\\N\t\\N" END},
};

START_TEST(a_line_becomes_one_row_of_copy)
{
    autobuf struct buf out = BUF_INIT(1 << 16);
    struct err err;
    ck_assert_msg(row(rows[_i].line, &out, &err) == STATUS_OK, "%s", err.msg);
    ck_assert_str_eq(buf_at(&out), rows[_i].row);
}
END_TEST

START_TEST(a_key_written_with_escapes_is_no_way_around_the_check)
{
    autobuf struct buf out = BUF_INIT(1 << 16);
    struct err err;
    ck_assert_int_eq(row("{\"kind\":\"a\",\"ki\\u006ed\":\"b\"}", &out, &err), STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.msg, "duplicate object key"));
    ck_assert_int_eq(row("{\"ki\\u006ed\":\"b\"}", &out, &err), STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.msg, "unknown key"));
}
END_TEST

START_TEST(feat_B9_an_unknown_key_is_refused_with_the_nearest_and_all_that_are_known)
{
    autobuf struct buf out = BUF_INIT(1 << 16);
    struct err err;
    ck_assert_int_eq(row("{\"kind\":\"a\",\"prioritty\":1}", &out, &err), STATUS_INVALID);
    ck_assert_ptr_nonnull(strstr(err.msg, "prioritty: unknown key; known: kind, args"));
    ck_assert_ptr_nonnull(strstr(err.msg, "; did you mean 'priority'?"));
    ck_assert_int_eq(row("{\"kind\":\"a\",\"colour\":1}", &out, &err), STATUS_INVALID);
    ck_assert_ptr_null(strstr(err.msg, "did you mean"));
}
END_TEST

static const struct {
    const char *line;
    const char *request; /* or part of the refusal */
    enum status status;
} requests[] = {
    {"{\"kind\":\"a\",\"unique_key\":\"u\"}", "[{\"kind\":\"a\",\"unique_key\":\"u\"}", STATUS_OK},
    {"{\"exclusive_key\":\"e\", \"args\":{\"n\": 1.10},\"timeout\":5,\"kind\":\"a\",\"delay\":1}",
     "[{\"kind\":\"a\",\"args\":{\"n\": 1.10},\"timeout\":\"5000000 microseconds\","
     "\"scheduled_at\":\"2026-01-01 00:00:01.123456+00\",\"exclusive_key\":\"e\"}",
     STATUS_OK},
    {"{\"kind\":\"a\",\"unique_by\":[\"args.x\"],\"unique_for\":\"1s\",\"on_conflict\":\"ignore\"}",
     "[{\"kind\":\"a\",\"unique_by\":[\"args.x\"],\"unique_for\":\"1000000 microseconds\","
     "\"on_conflict\":\"ignore\"}",
     STATUS_OK},
    {"{\"kind\":\"a\",\"after\":[1,2],\"if_dead\":\"run\",\"share_key\":null}",
     "[{\"kind\":\"a\",\"after\":[1,2],\"if_dead\":\"run\"}", STATUS_OK},
    {"{\"kind\":\"a\",\"after\":[\"1\"]}", "after: allowed: an array of ids", STATUS_INVALID},
    {"{\"kind\":\"a\",\"unique_by\":\"args\"}", "unique_by: allowed: an array of texts",
     STATUS_INVALID},
    {"{\"kind\":\"a\",\"share_key\":7}", "share_key: allowed: a text", STATUS_INVALID},
    {"{\"kind\":\"a\",\"unique_key\":\"u\",\"unique_for\":\"soon\"}", "unique_for", STATUS_INVALID},
    {"{\"kind\":\"a\",\"backoff\":\"soon\"}", "backoff", STATUS_INVALID},
    {"{\"kind\":\"a\",\"at\":\"2026-01-31T08:00:00Z\",\"scheduled_at\":\"2026-01-31T08:00:00Z\"}",
     "one of at, delay and scheduled_at", STATUS_INVALID},
};

START_TEST(what_no_row_can_hold_becomes_an_element_of_enqueue_many)
{
    autobuf struct buf out = BUF_INIT(1 << 16);
    autobuf struct buf request = BUF_INIT(1 << 16);
    struct err err = {0};
    bool is_request = false;
    const char *line = requests[_i].line;
    enum status st = job_line_put(line, strlen(line), NOW_US, &is_request, &out, &request, &err);
    ck_assert_msg(st == requests[_i].status, "%s", err.msg);
    if (st == STATUS_OK) {
        ck_assert(is_request);
        ck_assert_str_eq(buf_at(&request), requests[_i].request);
        ck_assert(job_line_put(line, strlen(line), NOW_US, &is_request, &out, &request, &err) ==
                  STATUS_OK);
        ck_assert_ptr_nonnull(strstr(buf_at(&request), "},{\"kind\""));
    } else {
        ck_assert_msg(strstr(err.msg, requests[_i].request) != NULL, "%s", err.msg);
    }
}
END_TEST

static size_t count_byte(const struct buf *b, char byte)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++) {
        n += buf_at(b)[i] == byte;
    }
    return n;
}

/* Random bytes are refused, or give exactly one row. */
START_TEST(broken_lines_are_refused_or_one_row)
{
    static const char line[] =
        "{\"kind\":\"a\",\"args\":{\"x\":[1,\"\\u00e9\\n\",null]},\"queue\":\"q\",\"priority\":3,"
        "\"delay\":\"1s\",\"timeout\":9,\"tags\":[\"t\"],\"metadata\":{\"m\":true}}";
    static const char bytes[] = "{}[]\",:\\u0\t1a-. \n";
    autobuf struct buf out = BUF_INIT(1 << 16);
    autobuf struct buf request = BUF_INIT(1 << 16);
    struct rand random;
    rand_seed(&random, 42);
    for (int i = 0; i < MUTATIONS; i++) {
        char text[sizeof line];
        struct err err = {0};
        memcpy(text, line, sizeof line);
        for (int64_t k = rand_below(&random, 4); k >= 0; k--) {
            text[rand_below(&random, (int64_t)sizeof line - 1)] =
                bytes[rand_below(&random, (int64_t)sizeof bytes - 1)];
        }
        buf_reset(&out);
        bool is_request = false;
        enum status st =
            job_line_put(text, sizeof line - 1, NOW_US, &is_request, &out, &request, &err);
        ck_assert(st == STATUS_OK || st == STATUS_INVALID);
        if (st == STATUS_OK) {
            ck_assert(is_request == (request.len > 0));
            buf_reset(&request);
            ck_assert_uint_eq(count_byte(&out, '\n'), 1);
            ck_assert_uint_eq(count_byte(&out, '\t'), COLUMNS - 1);
        } else {
            ck_assert_int_ne(err.msg[0], '\0');
        }
    }
}
END_TEST

static const struct {
    const char *text;
    enum status status;
} times[] = {
    {"2026-01-31T08:00:00Z", STATUS_OK},
    {"2026-01-31 08:00:00+01:00", STATUS_OK},
    {"2026-01-31T08:00:00.123Z", STATUS_OK},
    {"2026-01-31T08:00:00", STATUS_INVALID},
    {"2026-01-31", STATUS_INVALID},
    {"", STATUS_INVALID},
    {"2026-01-31T08:00:00.Z", STATUS_INVALID},
    {"2026-01-31T08:00:00Zx", STATUS_INVALID},
    {"2026-01-31T08:00:00+1:00", STATUS_INVALID},
    {"infinity", STATUS_INVALID},
    {"99999-01-31T08:00:00Z", STATUS_INVALID},
    {"2285-12-31T23:59:60Z", STATUS_OK},
    {"2286-01-01T00:00:00Z", STATUS_INVALID},
    {"0000-01-01T00:00:00Z", STATUS_INVALID},
    {"2024-02-29T00:00:00-15:59", STATUS_OK},
    {"2026-02-29T00:00:00Z", STATUS_INVALID},
    {"2100-02-29T00:00:00Z", STATUS_INVALID},
    {"2026-13-01T00:00:00Z", STATUS_INVALID},
    {"2026-00-01T00:00:00Z", STATUS_INVALID},
    {"2026-04-31T00:00:00Z", STATUS_INVALID},
    {"2026-01-01T24:00:00Z", STATUS_INVALID},
    {"2026-01-01T00:60:00Z", STATUS_INVALID},
    {"2026-01-01T00:00:61Z", STATUS_INVALID},
    {"2026-01-01T00:00:00+16:00", STATUS_INVALID},
    {"2026-01-01T00:00:00+01:60", STATUS_INVALID},
};

START_TEST(a_time_needs_its_zone)
{
    ck_assert_int_eq(job_time_check(times[_i].text, NULL), times[_i].status);
}
END_TEST

START_TEST(a_time_is_the_same_in_every_zone)
{
    ck_assert_int_eq(job_time_us("1970-01-01T00:00:00Z"), 0);
    ck_assert_int_eq(job_time_us("2026-01-31T08:00:00.25Z"), INT64_C(1769846400250000));
    ck_assert_int_eq(job_time_us("2026-01-31T09:30:00.2500000+01:30"), INT64_C(1769846400250000));
    ck_assert_int_eq(job_time_us("2026-01-30 23:59:60-08:00"), INT64_C(1769846400000000));
    ck_assert_int_eq(job_time_us("1969-12-31T23:59:59.999999Z"), -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job line");
    TCase *tests = tcase_create("job line");
    tcase_add_loop_test(tests, a_line_becomes_one_row_of_copy, 0, ARRAY_COUNT(rows));
    tcase_add_loop_test(tests, what_no_row_can_hold_becomes_an_element_of_enqueue_many, 0,
                        ARRAY_COUNT(requests));
    tcase_add_test(tests,
                   feat_B9_an_unknown_key_is_refused_with_the_nearest_and_all_that_are_known);
    tcase_add_test(tests, a_key_written_with_escapes_is_no_way_around_the_check);
    tcase_add_test(tests, broken_lines_are_refused_or_one_row);
    tcase_add_loop_test(tests, a_time_needs_its_zone, 0, ARRAY_COUNT(times));
    tcase_add_test(tests, a_time_is_the_same_in_every_zone);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
