/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl handlers check: its findings about handler files, and that a worker's runner reports the
 * same. Needs no server. */
#include "ctl_bash.h"
#include "support/suite_dir.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>

static char dir[512];

static void setup(void)
{
    (void)umask(022);
    bash_setup();
}

/* Runs a line of bash in the test's folder, which contains only what the line makes; returns its
 * exit code. */
static int shell(const char *line)
{
    char whole[8192];
    (void)snprintf(whole, sizeof whole,
                   "cd %s && rm -rf t && mkdir t t/handlers t/plugins && cd t && %s", dir, line);
    return bash_run(whole);
}

#define GOOD "{\"command\": [\"/bin/true\"], \"kinds\": {\"k\": {}}}"

/* ---- invalid files ---- */

static const struct {
    const char *file;  /* name of the file */
    const char *json;  /* "": `shell` makes the file */
    const char *shell; /* further commands */
    const char *says;  /* the first finding about it */
} wrong[] = {
    {"h.json", "{\"command\": [\"sh\"], \"kinds\": {\"k\": {}}}", "",
     "command: 'sh' does not begin with /"},
    {"h.json", "{\"command\": [\"/no/such\"], \"kinds\": {\"k\": {}}}", "",
     "command: /no/such: No such file or directory"},
    {"h.json", "{\"command\": [\"/etc/passwd\"], \"kinds\": {\"k\": {}}}", "",
     "command: /etc/passwd is not an executable file"},
    {"h.json", "{\"command\": [\"'$PWD'/script\"], \"kinds\": {\"k\": {}}}",
     "echo \"#! /no/such -x\" >script; chmod 755 script; sed -i s,$PWD,/tmp/..$PWD,g "
     "handlers/h.json",
     "command: the interpreter of /tmp/../"},
    {"h.json", "{\"command\": [\"/bin\"], \"kinds\": {\"k\": {}}}", "",
     "command: /bin is not an executable file"},
    {"h.json", "{\"command\": [\"/bin/sh\", \"'$PWD'/script\"], \"kinds\": {\"k\": {}}}",
     "touch script; chmod 646 script", "command: anyone may write to /"},
    {"h.json", "{\"command\": [\"/bin/{p}\"], \"mode\": \"once\", \"kinds\": {\"k\": {}}}", "",
     "command: {p} is in the program's path; allowed only in its arguments"},
    {"h.json", "{\"command\": [\"/bin/true\", 1], \"kinds\": {\"k\": {}}}", "",
     "command[1]: must be a text"},
    {"h.json", "{\"comand\": 1, \"command\": [\"/bin/true\"], \"kinds\": {\"k\": {}}}", "",
     "the file has no key 'comand': allowed are command, mode, kinds, env, cwd, start_timeout, "
     "memory, open_files, exit_codes, result, cpu_seconds, $schema"},
    {"h.json", "{\"command\": [\"/bin/true\"], \"kinds\": {\"k\": {\"tiemout\": 1}}}", "",
     "kinds.k has no key 'tiemout': allowed are timeout, max_attempts, max_crashes, backoff, "
     "at_most_once, keep_log"},
    {"h.json", "{\"command\": [\"/bin/true\"], \"kinds\": {\"k\": {\"max_attempts\": 0}}}", "",
     "kinds.k.max_attempts: must be a whole number, 1…1000"},
    {"h.json", "{\"command\": [\"/bin/true\"], \"kinds\": {\"k\": {\"backoff\": \"no\"}}}", "",
     "kinds.k: backoff 'no': must be exponential:15s:1h, linear:10s:1h, fixed:30s or list:1s,5s"},
    {"h.json", "{\"command\": [\"/bin/true\"], \"kinds\": {\"k\": {}}, \"mode\": \"twice\"}", "",
     "mode: must be \"serve\" or \"once\""},
    {"h.json", "{\"command\": [\"/bin/true\"], \"kinds\": {\"K\": {}}}", "",
     "kind 'K': must match ^[a-z][a-z0-9_]*$ and have at most 64 bytes"},
    {"h.json", "{\"command\": [\"/bin/true\"],\n\"kinds\"}", "", "line 2: ':' expected near '}'"},
    {"H-1.json", GOOD, "", "the file's name: kind 'H-1': must match ^[a-z][a-z0-9_]*$"},
    {"h.json", GOOD, "chmod 664 handlers/h.json",
     "writable by group or others (mode 0664), expected at most 0755: chmod go-w"},
    {"h.json", "", "ln -s /dev/null handlers/h.json", "a symbolic link"},
    {"h.json", "", "mkdir handlers/h.json", "not a regular file"},
};

static void make_line(char *ret, size_t size, int i, const char *command)
{
    char made[2048] = "true";
    if (wrong[i].json[0] != '\0') {
        (void)snprintf(made, sizeof made, "echo '%s' >handlers/%s", wrong[i].json, wrong[i].file);
    }
    (void)snprintf(ret, size, "%s && { %s; } && %s", made,
                   wrong[i].shell[0] == '\0' ? "true" : wrong[i].shell, command);
}

START_TEST(prog_P9_check_says_what_is_wrong_with_file_place_and_what_is_allowed)
{
    char line[4096];
    char wanted[1024];
    make_line(line, sizeof line, _i, "claimctl handlers check handlers");
    ck_assert_int_eq(shell(line), 2);
    int n = snprintf(wanted, sizeof wanted, "handlers/%s: %s", wrong[_i].file, wrong[_i].says);
    ck_assert_msg(strncmp(bash_text(), wanted, (size_t)n) == 0, "said: %s\nwanted: %s", bash_text(),
                  wanted);
}
END_TEST

START_TEST(prog_P9_a_runner_refuses_the_same_files_with_the_same_words)
{
    char line[4096];
    make_line(line, sizeof line, _i, "claimd-runner --list --plugins plugins --handlers handlers");
    ck_assert_int_eq(shell(line), 0);
    json_auto_t *root = json_loads(bash_text(), 0, NULL);
    const json_t *refused = json_array_get(json_object_get(root, "refused"), 0);
    const char *reason = json_string_value(json_object_get(refused, "reason"));
    ck_assert_msg(reason != NULL, "%s", bash_text());
    size_t len = strlen(wrong[_i].says);
    ck_assert_msg(strncmp(reason, wrong[_i].says, len) == 0, "%s", bash_text());
}
END_TEST

START_TEST(prog_P9_check_says_all_that_is_wrong_at_once)
{
    ck_assert_int_eq(
        shell("echo '{\"command\": [\"sh\"], \"kinds\": {\"k\": {\"timeout\": \"x\", \"y\": 1}},"
              " \"env\": {\"1\": \"\"}, \"memory\": 1, \"z\": 2}' >handlers/a.json; cd handlers;"
              " claimctl handlers check a.json | sed 's/: must be.*/:/; s/: allowed.*//'"),
        0);
    ck_assert_str_eq(bash_text(), "a.json: the file has no key 'z'\n"
                                  "a.json: kinds.k.timeout:\n"
                                  "a.json: kinds.k has no key 'y'\n"
                                  "a.json: env.1:\n"
                                  "a.json: memory:\n"
                                  "a.json: command: 'sh' does not begin with /\n");
}
END_TEST

START_TEST(prog_P9_two_handlers_of_one_kind_are_found_across_files_and_folders)
{
    ck_assert_int_eq(shell("mkdir more; echo '" GOOD "' | tee handlers/a.json >more/b.json;"
                           " claimctl handlers check handlers more/b.json"),
                     2);
    ck_assert_str_eq(bash_text(), "more/b.json: kind k is served by plugin a already\n"
                                  "handlers/a.json: ok, serves k\n");
    ck_assert_int_eq(shell("echo '" GOOD "' >handlers/a.json; mkdir more;"
                           " sed s/k/l/ handlers/a.json >more/a.json;"
                           " claimctl handlers check more handlers"),
                     2);
    ck_assert_ptr_nonnull(
        strstr(bash_text(), "handlers/a.json: another file is plugin a already\n"));
}
END_TEST

START_TEST(prog_P9_what_is_no_handler_file_is_an_error)
{
    ck_assert_int_eq(shell("claimctl handlers check handlers"), 2);
    ck_assert_str_eq(bash_text(), "handlers: no NAME.json is in this folder\n");
    ck_assert_int_eq(shell("claimctl handlers check README handlers/no.json /no/such/a.json"), 2);
    ck_assert_str_eq(bash_text(),
                     "README: workers read NAME.json alone\n"
                     "handlers/no.json: cannot open: No such file or directory\n"
                     "/no/such: cannot open the directory: No such file or directory\n");
    ck_assert_int_eq(shell("chmod 777 handlers; claimctl handlers check handlers/a.json "
                           "handlers/b.json"),
                     2);
    ck_assert_str_eq(bash_text(),
                     "handlers: writable by group or others (mode 0777), expected at most "
                     "0755: chmod go-w\n");
}
END_TEST

/* ---- valid files ---- */

#define ONCE                                                                           \
    "{\"command\": [\"/bin/echo\", \"--\", \"{b}\", \"x{a}{b}\", \"{{c}}\", \"{d\"], " \
    "\"mode\": \"once\", \"kinds\": {\"k\": {}, \"l\": {}}}"

START_TEST(prog_P9_check_says_which_kinds_and_args_a_good_file_has)
{
    ck_assert_int_eq(shell("echo '" ONCE "' >handlers/a.json; claimctl handlers check handlers"),
                     0);
    ck_assert_str_eq(bash_text(), "handlers/a.json: ok, serves k, l; takes args b, a\n");
    ck_assert_int_eq(
        shell("echo '" ONCE "' >handlers/a.json; claimctl handlers check handlers --json"), 0);
    json_auto_t *root = json_loads(bash_text(), 0, NULL);
    json_auto_t *wanted =
        json_loads("{\"handlers\": [{\"file\": \"handlers/a.json\", \"kinds\": "
                   "[\"k\", \"l\"], \"args\": [\"b\", \"a\"]}], \"findings\": []}",
                   0, NULL);
    ck_assert_msg(json_equal(root, wanted), "%s", bash_text());
}
END_TEST

START_TEST(prog_P9_an_arg_that_nobody_fills_in_is_warned_of)
{
    ck_assert_int_eq(shell("echo '{\"command\": [\"/bin/sh\", \"-c\", \"${x}\", \"{y}\"],"
                           " \"kinds\": {\"k\": {}}}' >handlers/a.json;"
                           " claimctl handlers check handlers"),
                     0);
    ck_assert_str_eq(bash_text(), "handlers/a.json: warning: command: {y} is filled in only with "
                                  "\"mode\": \"once\"\nhandlers/a.json: ok, serves k\n");
}
END_TEST

START_TEST(prog_P9_findings_are_json_where_that_is_wanted)
{
    ck_assert_int_eq(shell("echo 1 >handlers/a.json; claimctl handlers check handlers --json"), 2);
    json_auto_t *root = json_loads(bash_text(), 0, NULL);
    json_auto_t *wanted =
        json_loads("{\"handlers\": [], \"findings\": [{\"file\": \"handlers/a.json\", \"level\": "
                   "\"error\", \"problem\": \"line 1: '[' or '{' expected near '1'\"}]}",
                   0, NULL);
    ck_assert_msg(json_equal(root, wanted), "%s", bash_text());
}
END_TEST

START_TEST(prog_P9_more_files_than_a_worker_takes_are_an_error)
{
    ck_assert_int_eq(shell("for i in $(seq 10 74); do echo '" GOOD "' | sed s/k/k$i/2 "
                           ">handlers/h$i.json; done; claimctl handlers check handlers"),
                     2);
    ck_assert_ptr_nonnull(
        strstr(bash_text(), "handlers/h74.json: more than 64 plugins and programs\n"));
    ck_assert_ptr_nonnull(strstr(bash_text(), "handlers/h73.json: ok, serves k73\n"));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, prog_P9_check_says_what_is_wrong_with_file_place_and_what_is_allowed, 0,
                        ARRAY_COUNT(wrong));
    tcase_add_loop_test(t, prog_P9_a_runner_refuses_the_same_files_with_the_same_words, 0,
                        ARRAY_COUNT(wrong));
    tcase_add_test(t, prog_P9_check_says_all_that_is_wrong_at_once);
    tcase_add_test(t, prog_P9_two_handlers_of_one_kind_are_found_across_files_and_folders);
    tcase_add_test(t, prog_P9_what_is_no_handler_file_is_an_error);
    tcase_add_test(t, prog_P9_check_says_which_kinds_and_args_a_good_file_has);
    tcase_add_test(t, prog_P9_an_arg_that_nobody_fills_in_is_warned_of);
    tcase_add_test(t, prog_P9_findings_are_json_where_that_is_wanted);
    tcase_add_test(t, prog_P9_more_files_than_a_worker_takes_are_an_error);
}

int main(void)
{
    const struct suite_in_dir in = {.name = "ctl handlers",
                                    .ret_dir = dir,
                                    .dir_size = sizeof dir,
                                    .timeout_s = 60,
                                    .setup = setup,
                                    .teardown = bash_teardown,
                                    .add_tests = add_tests};
    return suite_run_in_dir(&in);
}
