/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/command_words.h"
#include "support/suite.h"

#include <stdio.h>

/* The words, each in brackets; or what was refused. */
static const char *filled(const char *const *template, const char *json)
{
    static char text[1024];
    struct command_words words = COMMAND_WORDS_INIT;
    struct err err = {0};
    size_t at = 0;
    json_t *args = json_loads(json, JSON_DECODE_ANY, NULL);
    enum status st = command_words_fill(&words, template, args, &err);
    for (size_t i = 0; st == STATUS_OK && i < words.count; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "[%s]",
                               buf_at(&words.bytes) + words.at[i]);
    }
    if (st != STATUS_OK) {
        (void)snprintf(text, sizeof text, "%s", err.msg);
    }
    json_decref(args);
    buf_release(&words.bytes);
    return text;
}
#define FILLED(json, ...) filled((const char *const[]){"/bin/{x}", __VA_ARGS__, NULL}, (json))

START_TEST(a_placeholder_is_a_whole_argument_or_a_part_and_never_the_program)
{
    ck_assert_str_eq(FILLED("{\"x\": \"a b\"}", "{x}", "<{x}>", "{{x}}", "{}", "{x"),
                     "[/bin/{x}][a b][<a b>][{x}][{}][{x]");
    ck_assert_str_eq(FILLED("{\"x\": 12.5, \"y\": true}", "{x}{y}"), "[/bin/{x}][12.5true]");
}
END_TEST

START_TEST(what_is_not_plain_needs_json)
{
    static const char args[] = "{\"n\": null, \"o\": {\"a\": [1]}, \"t\": \"q\\\"\", \"i\": 7}";
    ck_assert_str_eq(FILLED(args, "{n:json}", "{o:json}", "{t:json}", "={i:json}", "{{o:json}}"),
                     "[/bin/{x}][null][{\"a\":[1]}][\"q\\\"\"][=7][{o:json}]");
    ck_assert_str_eq(FILLED(args, "{n}"),
                     "args have no plain value for {n} of the command, expected a "
                     "text, a number or a boolean");
    ck_assert_str_eq(FILLED(args, "{z:json}"),
                     "args have no value for {z} of the command, expected a "
                     "text, a number or a boolean");
    ck_assert_str_eq(FILLED(args, "{t:jsonb}"), "[/bin/{x}][{t:jsonb}]");
}
END_TEST

START_TEST(what_would_be_an_option_is_refused_unless_dashes_stand_before_it)
{
    static const char args[] = "{\"x\": \"-rf\", \"n\": -1}";
    ck_assert_str_eq(
        FILLED(args, "{x}"),
        "args.x begins with '-', which the program would take for an option: put \"--\" "
        "before {x} in the command");
    ck_assert_ptr_nonnull(strstr(FILLED(args, "{n:json}"), "args.n begins with '-'"));
    ck_assert_str_eq(FILLED(args, "./{x}", "--", "{x}", "{n}"), "[/bin/{x}][./-rf][--][-rf][-1]");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("command words");
    TCase *tests = tcase_create("command words");
    tcase_add_test(tests, a_placeholder_is_a_whole_argument_or_a_part_and_never_the_program);
    tcase_add_test(tests, what_is_not_plain_needs_json);
    tcase_add_test(tests, what_would_be_an_option_is_refused_unless_dashes_stand_before_it);
    suite_add_tcase(suite, tests);
    return suite_run_as(suite, CK_FORK);
}
