/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl's own documentation: help, examples, completion, suggestions. Needs no server. */
#include "base/nearest.h"
#include "ctl/core/ctl.h"
#include "ctl_bash.h"
#include "support/suite.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>

#define assert_prints(part)                                                            \
    ck_assert_msg(strstr(bash_text(), (part)) != NULL, "printed: %.2000s\nwanted: %s", \
                  bash_text(), (part))

/* ---- the table ---- */

static void assert_example(const struct ctl_command *c, const char *example, size_t len)
{
    char name[80];
    char line[1024];
    (void)snprintf(name, sizeof name, "claimctl %s%s%s", c->noun, c->verb == NULL ? "" : " ",
                   c->verb == NULL ? "" : c->verb);
    (void)snprintf(line, sizeof line, "%.*s", (int)len, example);
    ck_assert_msg(strstr(line, name) != NULL, "'%s' is no example of '%s'", line, name);
    ck_assert_uint_le(len, 78);
    (void)snprintf(line, sizeof line, "%.*s --help", (int)len, example);
    ck_assert_msg(bash_run(line) == 0, "%s\n%s", line, bash_text());
    (void)snprintf(line, sizeof line, "usage: %s", name);
    assert_prints(line);
}

START_TEST(every_command_has_examples_that_parse)
{
    const struct ctl_command *c = ctl_command_at((size_t)_i);
    ck_assert_msg(c->examples != NULL && c->examples[0] != '\0', "%s %s", c->noun, c->verb);
    for (const char *at = c->examples; *at != '\0';) {
        size_t len = strcspn(at, "\n");
        assert_example(c, at, len);
        at += len + (at[len] != '\0');
    }
}
END_TEST

START_TEST(an_example_with_an_unknown_option_would_not_parse)
{
    ck_assert_int_eq(bash_run("claimctl jobs list --colour red --help"), 2);
}
END_TEST

START_TEST(every_command_is_of_a_form_that_help_can_show)
{
    const struct ctl_command *c = ctl_command_at((size_t)_i);
    ck_assert((c->run != NULL) != (c->act != NULL));
    ck_assert_ptr_nonnull(c->words);
    ck_assert_uint_le(c->words_min, c->words_max);
    ck_assert_int_eq(c->words_max > 0, c->words[0] != '\0');
    ck_assert_uint_le(strcspn(c->help, "\n"), 78);
    for (size_t i = 0; i < CTL_OPTIONS_MAX && c->options[i].name != NULL; i++) {
        ck_assert_ptr_nonnull(c->options[i].help);
    }
}
END_TEST

/* 80 columns if there is no terminal; words stay whole, since a line ends at a space. */
START_TEST(no_line_of_help_is_wider_than_80_columns)
{
    const struct ctl_command *c = ctl_command_at((size_t)_i);
    char line[256];
    (void)snprintf(line, sizeof line,
                   "export LC_ALL=C.UTF-8; claimctl help %s %s | wc -L; claimctl help | wc -L",
                   c->noun, c->verb == NULL ? "" : c->verb);
    ck_assert_int_eq(bash_run(line), 0);
    int own = 0;
    int overview = 0;
    ck_assert_int_eq(sscanf(bash_text(), "%d %d", &own, &overview), 2);
    ck_assert_int_le(own, 80);
    ck_assert_int_le(overview, 80);
}
END_TEST

/* ---- which configuration ---- */

START_TEST(a_file_in_the_standard_place_is_read_where_no_other_is_named)
{
    struct ctl ctl = {.out = stdout};
    ctl_find_config(&ctl, NULL, "/etc/passwd");
    ck_assert_str_eq(ctl.config_path, "/etc/passwd");
    ck_assert_int_eq(ctl.config_from, CTL_CONFIG_STANDARD);
    ctl_find_config(&ctl, "/x", "/etc/passwd");
    ck_assert_str_eq(ctl.config_path, "/x");
    ck_assert_int_eq(ctl.config_from, CTL_CONFIG_VARIABLE);
    ctl_find_config(&ctl, "", "/etc/passwd"); /* explicitly none */
    ck_assert_ptr_null(ctl.config_path);
    ctl_find_config(&ctl, NULL, "/nowhere/claimd.json");
    ck_assert_ptr_null(ctl.config_path);
    ck_assert_int_eq(ctl.config_from, CTL_CONFIG_NONE);
}
END_TEST

START_TEST(a_standard_file_that_can_not_be_read_is_told_with_the_way_around_it)
{
    struct ctl ctl = {.out = stdout};
    struct config config;
    struct err err = {0};
    ctl_find_config(&ctl, NULL, "/etc/passwd");
    ck_assert_int_eq(ctl_load_config(&ctl, &config, &err), STATUS_INVALID);
    ck_assert_msg(strstr(err.msg, "unless CLAIMD_CONFIG is set") != NULL, "%s", err.msg);
    ck_assert_msg(strstr(err.msg, "/etc/passwd") != NULL, "%s", err.msg);
}
END_TEST

START_TEST(help_and_the_origins_say_which_file_was_read)
{
    ck_assert_int_eq(bash_run("claimctl help"), 0);
    assert_prints("Configuration: no file: defaults and environment\n");
    ck_assert_int_eq(
        bash_run("f=$(mktemp) && echo '{}' >$f && claimctl --config $f help && "
                 "CLAIMD_CONFIG=$f claimctl help && claimctl --config $f config show "
                 "--origin && claimctl --config $f config show --origin --json; rm $f"),
        0);
    assert_prints(" (--config)\n");
    assert_prints(" ($CLAIMD_CONFIG)\n");
    char line[128];
    (void)snprintf(line, sizeof line, "\nfile %s/", suite_tmp());
    assert_prints(line);
    (void)snprintf(line, sizeof line, "\"file\": \"%s/", suite_tmp());
    assert_prints(line);
    ck_assert_int_eq(bash_run("claimctl config show --origin"), 0);
    assert_prints("file -\n");
}
END_TEST

START_TEST(help_is_the_same_by_word_and_by_option)
{
    ck_assert_int_eq(bash_run("diff <(claimctl help jobs list) <(claimctl jobs list --help)"), 0);
    ck_assert_int_eq(bash_run("diff <(claimctl help jobs) <(claimctl jobs --help)"), 0);
    ck_assert_int_eq(bash_run("diff <(claimctl help) <(claimctl --help)"), 0);
    ck_assert_int_eq(bash_run("claimctl help nix"), 2);
    assert_prints("unknown command 'nix'");
}
END_TEST

START_TEST(the_dump_has_all_commands_with_their_options)
{
    ck_assert_int_eq(bash_run("claimctl help --json"), 0);
    json_t *root = json_loads(bash_text(), 0, NULL);
    json_t *commands = json_object_get(root, "commands");
    ck_assert_uint_eq(json_array_size(commands), ctl_command_count());
    for (size_t i = 0; i < ctl_command_count(); i++) {
        json_t *options = json_object_get(json_array_get(commands, i), "options");
        const char *name = ctl_command_at(i)->options[0].name;
        const char *dumped = json_string_value(json_object_get(json_array_get(options, 0), "name"));
        ck_assert_pstr_eq(dumped, name);
    }
    json_decref(root);
    ck_assert_int_eq(bash_run("claimctl help --man"), 0);
    assert_prints("*claimctl jobs list*");
    assert_prints("*\\-\\-max\\-attempts* N");
}
END_TEST

/* ---- suggestions ---- */

static const struct {
    const char *line;
    const char *says;
} guesses[] = {
    {"claimctl job", "unknown command 'job', did you mean 'jobs'?"},
    {"claimctl wokers", "did you mean 'workers'?"},
    {"claimctl jobs lsit", "unknown command 'jobs lsit', did you mean 'jobs list'?"},
    {"claimctl jobs", "'jobs' needs a subcommand: list"},
    {"claimctl jobs list --quue x", "unknown option --quue, did you mean --queue?"},
    {"claimctl jobs list --quux=x", "did you mean --queue?; known: --state --kind"},
    {"claimctl enqueue a --prioritty 3",
     "unknown option --prioritty, did you mean --priority?; known: --"},
    {"claimctl --jsn", "unknown option --jsn, did you mean --json?"},
    {"claimctl enqueue a --ta=x --t y", "--t is ambiguous: --timeout or --tag"},
    {"claimctl jobs list -s x", "unknown option -s: options have two dashes"},
    {"claimctl jobs list --json=1", "--json takes no value"},
    {"claimctl completion fish", "'fish' is not supported; allowed: bash, zsh"},
};

START_TEST(a_slip_is_exit_2_with_the_nearest)
{
    ck_assert_int_eq(bash_run(guesses[_i].line), 2);
    assert_prints(guesses[_i].says);
}
END_TEST

START_TEST(what_is_far_from_everything_is_not_guessed)
{
    ck_assert_int_eq(bash_run("claimctl frobnicate"), 2);
    ck_assert_ptr_null(strstr(bash_text(), "did you mean"));
    struct nearest n = {.wanted = "x"};
    nearest_try(&n, "dev");
    ck_assert_ptr_null(n.found);
    n = (struct nearest){.wanted = "ststs"};
    nearest_try(&n, "status");
    nearest_try(&n, "stats");
    ck_assert_str_eq(n.found, "stats");
}
END_TEST

/* ---- completion ---- */

START_TEST(the_script_is_bash_and_is_the_same_in_json)
{
    ck_assert_int_eq(bash_run("claimctl completion bash | bash -n"), 0);
    ck_assert_str_eq(bash_text(), "");
    ck_assert_int_eq(bash_run("claimctl completion bash --json"), 0);
    json_t *root = json_loads(bash_text(), 0, NULL);
    json_t *row = json_object_get(root, "completion");
    ck_assert_ptr_nonnull(json_string_value(json_object_get(row, "script")));
    json_decref(root);
    ck_assert_int_eq(bash_run("if type zsh >/dev/null; then claimctl completion zsh | zsh -n; fi"),
                     0);
}
END_TEST

/* The words that bash would offer for a line whose last word is incomplete. */
static const struct {
    const char *words;
    const char *offered;
} completions[] = {
    {"claimctl jo", "jobs"},
    {"claimctl jobs l", "list"},
    {"claimctl --config /x jobs ca", "cancel"},
    {"claimctl --j", "--json"},
    {"claimctl jobs list --ki", "--kind"},
    {"claimctl jobs list --state di", "discarded"},
    {"claimctl jobs list --state = sc", "scheduled"},
    {"claimctl jobs list --state = scheduled --q", "--queue"},
    {"claimctl enqueue resize --pri", "--priority"},
    {"claimctl enqueue --queue jobs l", ""},
    {"claimctl config check /etc/hostn", ""}, /* left to bash, which completes files */
    {"claimctl --config /etc/hostn", "/etc/hostname"},
    {"claimctl help conf", "config"},
    {"claimctl completion z", "zsh"},
};

START_TEST(bash_completes_nouns_verbs_options_and_values)
{
    char line[1024];
    (void)snprintf(line, sizeof line,
                   "eval \"$(claimctl completion bash)\"; compopt() { :; }; COMP_WORDS=(%s); "
                   "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _claimctl; printf %%s "
                   "\"${COMPREPLY[*]}\"",
                   completions[_i].words);
    ck_assert_int_eq(bash_run(line), 0);
    ck_assert_str_eq(bash_text(), completions[_i].offered);
}
END_TEST

START_TEST(bash_offers_every_noun)
{
    ck_assert_int_eq(bash_run("eval \"$(claimctl completion bash)\"; COMP_WORDS=(claimctl ''); "
                              "COMP_CWORD=1; _claimctl; printf ' %s ' \"${COMPREPLY[@]}\""),
                     0);
    for (size_t i = 0; i < ctl_command_count(); i++) {
        char noun[48];
        (void)snprintf(noun, sizeof noun, " %s ", ctl_command_at(i)->noun);
        assert_prints(noun);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl help");
    TCase *tests = tcase_create("help");
    int commands = (int)ctl_command_count();
    tcase_add_checked_fixture(tests, bash_setup, bash_teardown);
    tcase_add_loop_test(tests, every_command_has_examples_that_parse, 0, commands);
    tcase_add_test(tests, an_example_with_an_unknown_option_would_not_parse);
    tcase_add_loop_test(tests, every_command_is_of_a_form_that_help_can_show, 0, commands);
    tcase_add_test(tests, a_file_in_the_standard_place_is_read_where_no_other_is_named);
    tcase_add_test(tests, a_standard_file_that_can_not_be_read_is_told_with_the_way_around_it);
    tcase_add_test(tests, help_and_the_origins_say_which_file_was_read);
    tcase_add_loop_test(tests, no_line_of_help_is_wider_than_80_columns, 0, commands);
    tcase_add_test(tests, help_is_the_same_by_word_and_by_option);
    tcase_add_test(tests, the_dump_has_all_commands_with_their_options);
    tcase_add_loop_test(tests, a_slip_is_exit_2_with_the_nearest, 0, ARRAY_COUNT(guesses));
    tcase_add_test(tests, what_is_far_from_everything_is_not_guessed);
    tcase_add_test(tests, the_script_is_bash_and_is_the_same_in_json);
    tcase_add_loop_test(tests, bash_completes_nouns_verbs_options_and_values, 0,
                        ARRAY_COUNT(completions));
    tcase_add_test(tests, bash_offers_every_noun);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
