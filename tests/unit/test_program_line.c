/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines of handler programs (docs/handler-protocol.md). */
#include "base/clock.h"
#include "runner/program_line.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static enum status parse(const char *line, struct program_line *ret, struct err *err)
{
    *err = (struct err){0};
    return program_line_parse(line, strlen(line), ret, err);
}

static struct program_line parsed(const char *line)
{
    struct program_line said;
    struct err err;
    ck_assert_msg(parse(line, &said, &err) == STATUS_OK, "%s: %s", line, err.msg);
    return said;
}

static const char *text_of(struct json_span span)
{
    static char text[256];
    (void)json_text(span, text, sizeof text);
    return text;
}

START_TEST(prog_hello_names_version_kinds_and_whether_signals_are_wanted)
{
    struct program_line said =
        parsed("{\"claimd\": 1, \"kinds\": [\"a\", \"thumb\\u006eail\"], \"sigterm\": true}");
    ck_assert_int_eq(said.said, SAID_HELLO);
    ck_assert_int_eq(said.number, 1);
    ck_assert(said.takes_sigterm);
    ck_assert(program_line_has_kind(&said, "thumbnail"));
    ck_assert(!program_line_has_kind(&said, "thumb"));
    said = parsed("{\"claimd\": 1}");
    ck_assert(!program_line_has_kind(&said, "a"));
    said = parsed("{\"claimd\": 1, \"kinds\": {\"a\": 1}}");
    ck_assert(!program_line_has_kind(&said, "a"));
}
END_TEST

START_TEST(prog_said_is_what_the_line_has)
{
    struct program_line said = parsed("{\"n\":3,\"log\":\"scaling\",\"of\":[1,{\"x\":null}]}");
    ck_assert_int_eq(said.said, SAID_LOG);
    ck_assert_int_eq(said.n, 3);
    ck_assert_str_eq(text_of(said.text), "scaling");
    said = parsed(" { \"progress\" : 40.0 , \"text\":\"x\", \"n\":4 } ");
    ck_assert_int_eq(said.said, SAID_PROGRESS);
    ck_assert_int_eq(said.number, 40);
    said = parsed("{\"n\":1,\"checkpoint\":null}");
    ck_assert_int_eq(said.said, SAID_CHECKPOINT);
    ck_assert_uint_eq(said.json.len, 4);
    said = parsed("{\"n\":1,\"end\":\"snooze\",\"delay_ms\":1500,\"error\":\"not yet\"}");
    ck_assert_int_eq(said.end, CLAIMD_SNOOZE);
    ck_assert_int_eq(said.number, 1500);
    ck_assert_str_eq(text_of(said.text), "not yet");
}
END_TEST

START_TEST(prog_results_are_passed_on_octet_for_octet)
{
    const char *result = "{\"a\" : 1.50, \"b\":[123456789012345678901234567890, \"\\u00fc\"]}";
    char line[256];
    (void)snprintf(line, sizeof line, "{\"n\":1,\"end\":\"done\",\"result\":  %s }", result);
    struct program_line said = parsed(line);
    ck_assert_int_eq(said.end, CLAIMD_DONE);
    ck_assert_uint_eq(said.json.len, strlen(result));
    ck_assert_mem_eq(said.json.at, result, strlen(result));
    said = parsed("{\"n\":1,\"end\":\"done\",\"result\":null}");
    ck_assert_uint_eq(said.json.len, 0);
}
END_TEST

static const char *const texts[][2] = {
    {"\"a\\n\\t\\\"\\\\\\/\"", "a\n\t\"\\/"},
    {"\"\\u00fc\\u20ac\\ud83d\\ude00\"", "\u00fc\u20ac\U0001F600"},
    {"\"\\ud800x\\udc00\\ud800\\u0041\"", "\uFFFDx\uFFFD\uFFFDA"},
    {"\"a\\u0000b\"", "a\uFFFDb"},
    {"12", ""},
};

START_TEST(prog_texts_have_neither_NUL_nor_half_a_pair)
{
    struct json_span span = {.at = texts[_i][0], .len = strlen(texts[_i][0])};
    ck_assert_str_eq(text_of(span), texts[_i][1]);
}
END_TEST

START_TEST(prog_a_text_is_cut_between_characters)
{
    char text[6];
    struct json_span span = {.at = "\"aa\u20ac\u20ac\"", .len = strlen("\"aa\u20ac\u20ac\"")};
    ck_assert_uint_eq(json_text(span, text, sizeof text), 5);
    ck_assert_str_eq(text, "aa\u20ac");
}
END_TEST

static const char *const refused[] = {
    "",
    "no json",
    "[1]",
    "{\"n\":1",
    "{\"n\":1,}",
    "{\"n\":1}}",
    "{\"n\":1} x",
    "{\"n\":1,\"log\":\"a\x01\"}",
    "{\"n\":1,\"log\":\"\\x\"}",
    "{\"n\":1,\"log\":\"\\u12g4\"}",
    "{\"n\":1,\"log\":\"\xff\"}",
    "{\"n\":1,\"log\":7}",
    "{\"n\":1,\"log\":null}",
    "{\"n\":1,\"log\":\"a\",\"log\":\"b\"}",
    "{\"n\":01,\"log\":\"a\"}",
    "{\"n\":\"1\",\"log\":\"a\"}",
    "{\"n\":1e99,\"log\":\"a\"}",
    "{\"n\":1,\"progress\":\"40\"}",
    "{\"n\":1,\"progress\":4,\"text\":5}",
    "{\"n\":1,\"end\":\"won\"}",
    "{\"n\":1,\"end\":true}",
    "{\"n\":1,\"end\":\"retry\",\"delay_ms\":\"1\"}",
    "{\"n\":1,\"end\":\"retry\",\"error\":[]}",
    "{\"n\":1,\"colour\":\"red\"}",
    "{}",
    "{\"claimd\":\"one\"}",
};

START_TEST(prog_what_is_none_of_the_protocol_is_refused)
{
    struct program_line said;
    struct err err;
    ck_assert_msg(parse(refused[_i], &said, &err) == STATUS_INVALID, "%s", refused[_i]);
    ck_assert_uint_gt(strlen(err.msg), 10);
}
END_TEST

START_TEST(prog_deep_nesting_ends_in_a_refusal)
{
    static const char begin[] = "{\"n\":1,\"result\":";
    static char line[100000];
    struct program_line said;
    struct err err;
    memset(line, '[', sizeof line - 1);
    memcpy(line, begin, sizeof begin - 1);
    ck_assert_int_eq(parse(line, &said, &err), STATUS_INVALID);
}
END_TEST

/* Every truncation and every changed octet of a valid line is parsed or refused without reading
 * beyond its end, which the sanitizers would detect. */
START_TEST(prog_garbage_is_never_read_beyond_its_end)
{
    static const char good[] =
        "{\"n\":12,\"end\":\"done\",\"error\":\"\\u00fc\\ud83d\\ude00\",\"delay_ms\""
        ":-1.5e3,\"result\":[true,false,null,{\"a\":[]}],\"kinds\":[\"a\"]}";
    size_t len = strlen(good);
    unsigned seed = 1;
    for (size_t cut = 0; cut <= len; cut++) {
        for (int round = 0; round < 50; round++) {
            char *line = malloc(cut + 1);
            struct program_line said;
            struct err err = {0};
            char text[64];
            memcpy(line, good, cut);
            for (int k = 0; k < round % 4 && cut > 0; k++) {
                seed = seed * 1103515245U + 12345U;
                line[(seed >> 8) % cut] = (char)(seed >> 16);
            }
            if (program_line_parse(line, cut, &said, &err) == STATUS_OK) {
                (void)json_text(said.text, text, sizeof text);
                (void)program_line_has_kind(&said, "a");
            }
            free(line);
        }
    }
}
END_TEST

START_TEST(prog_a_job_is_one_line_whatever_its_texts)
{
    autobuf struct buf out = BUF_INIT(PROGRAM_JOB_MAX);
    struct err err = {0};
    const char *args = "{\"a\":\n\"b\"}";
    const struct claimd_context job = {.size = sizeof job,
                                       .id = 812,
                                       .fence = 90,
                                       .kind = "thumbnail",
                                       .args = args,
                                       .args_len = strlen(args),
                                       .attempt = 1,
                                       .max_attempts = 25,
                                       .deadline_us = 3 * US_PER_S,
                                       .idempotency_key = "job:812",
                                       .queue = "default",
                                       .tags = "[\"t\"]",
                                       .created_at_us = 7};
    ck_assert_int_eq(program_line_put_job(&out, 2, &job, US_PER_S, &err), STATUS_OK);
    ck_assert_str_eq(
        buf_at(&out),
        "{\"n\":2,\"job\":812,\"kind\":\"thumbnail\",\"attempt\":1,\"max_attempts\":25,\"crashes\":"
        "0,"
        "\"generation\":0,\"fence\":90,\"key\":\"job:812\",\"queue\":\"default\",\"timeout_ms\":"
        "2000,"
        "\"created_at_us\":7,\"args\":{\"a\": \"b\"},\"tags\":[\"t\"],\"metadata\":null,"
        "\"checkpoint\":null,\"predecessors\":null}\n");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("program_line");
    TCase *c = tcase_create("lines");
    tcase_add_test(c, prog_hello_names_version_kinds_and_whether_signals_are_wanted);
    tcase_add_test(c, prog_said_is_what_the_line_has);
    tcase_add_test(c, prog_results_are_passed_on_octet_for_octet);
    tcase_add_loop_test(c, prog_texts_have_neither_NUL_nor_half_a_pair, 0, (int)ARRAY_COUNT(texts));
    tcase_add_test(c, prog_a_text_is_cut_between_characters);
    tcase_add_loop_test(c, prog_what_is_none_of_the_protocol_is_refused, 0,
                        (int)ARRAY_COUNT(refused));
    tcase_add_test(c, prog_deep_nesting_ends_in_a_refusal);
    tcase_add_test(c, prog_garbage_is_never_read_beyond_its_end);
    tcase_add_test(c, prog_a_job_is_one_line_whatever_its_texts);
    suite_add_tcase(s, c);
    return suite_run(s);
}
