/* SPDX-License-Identifier: Apache-2.0
 *
 * The form of sql/check.sql, which other programs read as well. */
#include "ctl/commands/doctor/checks.h"
#include "sql/queries.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

START_TEST(the_shipped_file_has_its_form)
{
    struct err err = {0};
    auto_checks struct checks checks = {.count = 0};
    enum status st = checks_read(sql_check_text, &checks, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    ck_assert_uint_ge(checks.count, 13);
    for (size_t i = 0; i < checks.count; i++) {
        const struct check *c = &checks.list[i];
        char column[64];
        (void)snprintf(column, sizeof column, "SELECT '%s' AS \"check\", '%s' AS rule, ", c->name,
                       c->rule);
        ck_assert_msg(strstr(c->sql, column) != NULL, "%s does not name itself: %s", c->name,
                      column);
        ck_assert_msg(strstr(c->sql, " LIMIT 100") != NULL, "%s has no bound", c->name);
        ck_assert_msg(strchr(c->sql, ';') == NULL, "%s has a semicolon inside", c->name);
        ck_assert_ptr_eq(checks_find(&checks, c->name), c);
        ck_assert_int_eq(c->is_suspect, strcmp(c->name, "unfed") == 0);
        ck_assert_int_eq(c->is_warning, strcmp(c->name, "idle_beside_due") == 0);
    }
    ck_assert_ptr_null(checks_find(&checks, "nothing"));
}
END_TEST

START_TEST(queries_are_cut_at_their_semicolons)
{
    static const char text[] = "-- About.\n\n-- check: a inv.S1 one thing\nSELECT 1\n  FROM t;\n"
                               "-- check: b inv.S2 another\n-- suspect: it may be\nSELECT 2;";
    auto_checks struct checks checks = {.count = 0};
    ck_assert_int_eq(checks_read(text, &checks, NULL), STATUS_OK);
    ck_assert_uint_eq(checks.count, 2);
    ck_assert_str_eq(checks.list[0].sql, "SELECT 1\n  FROM t");
    ck_assert_str_eq(checks.list[0].rule, "inv.S1");
    ck_assert_str_eq(checks.list[0].says, "one thing");
    ck_assert_str_eq(checks.list[1].sql, "SELECT 2");
    ck_assert(checks.list[1].is_suspect && !checks.list[0].is_suspect);
}
END_TEST

START_TEST(another_form_is_refused_with_its_line)
{
    static const struct {
        const char *text;
        const char *why;
    } wrong[] = {
        {"-- x\nSELECT 1;\n", "line 2: a query without"},
        {"-- check: a\nSELECT 1;\n", "line 1: must be"},
        {"-- check: a inv.S1\nSELECT 1;\n", "line 1: must be"},
        {"-- check: a inv.S1 b\nSELECT 1\n", "does not end with a semicolon"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct err err = {0};
        struct checks checks;
        ck_assert_int_eq(checks_read(wrong[i].text, &checks, &err), STATUS_INVALID);
        ck_assert_msg(strstr(err.msg, wrong[i].why) != NULL, "%s", err.msg);
        ck_assert_ptr_null(checks.text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checks");
    TCase *tests = tcase_create("checks");
    tcase_add_test(tests, the_shipped_file_has_its_form);
    tcase_add_test(tests, queries_are_cut_at_their_semicolons);
    tcase_add_test(tests, another_form_is_refused_with_its_line);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
