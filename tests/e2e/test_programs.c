/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers that are programs, with real daemons: what they may report, and the handling of programs
 * that violate the protocol or cannot be started. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static struct fleet fleet;

#define ASSERT_SQL(expected, ...) ck_assert_str_eq(sql_text(fleet.sql, __VA_ARGS__), (expected))

#define HOW_JSON "{\"how\": \"%s\", \"path\": \"%s/snoozed\"}"

static int64_t enqueue_how(const char *kind, const char *how)
{
    char args[SERVER_PATH_MAX + 64];
    (void)snprintf(args, sizeof args, HOW_JSON, how, fleet.dir);
    return fleet_enqueue(&fleet, kind, args, 1);
}

/* ---- the SDK of Python ---- */

START_TEST(prog_P1_a_function_is_told_of_its_job_and_its_value_is_the_result)
{
    long long id = sql_number(
        fleet.sql, "SELECT claimd.enqueue('py_echo', '{\"x\": \"ü\\n\\u2028\", \"n\":"
                   " 12345678901234567890}', tags => '{t,u v}', metadata => '{\"m\": 1}')");
    fleet_wait_state(&fleet, id, "completed");
    ASSERT_SQL("t 1 [\"t\", \"u v\"] {\"m\": 1} default t",
               "SELECT concat_ws(' ', CASE WHEN result->'args' = args THEN 't' END,"
               " result->'attempt', result->>'checkpoint', result->'tags', result->'metadata',"
               " result->>'queue', CASE WHEN result->>'key' = 'job:%lld' THEN 't' END)"
               " FROM claimd.jobs WHERE id = %lld",
               id, id);
}
END_TEST

START_TEST(prog_P1_a_program_is_used_again_for_the_next_job)
{
    fleet_enqueue(&fleet, "py_echo", "{}", 20);
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.jobs WHERE kind ="
                                               " 'py_echo' AND state <> 'completed'") == 0,
                         SOON_US));
    ck_assert_int_le(sql_number(fleet.sql, "SELECT count(DISTINCT result->'pid') FROM claimd.jobs"
                                           " WHERE kind = 'py_echo'"),
                     4);
}
END_TEST

START_TEST(prog_P2_log_checkpoint_and_retry_are_those_of_the_attempt)
{
    long long id = fleet_enqueue(&fleet, "py_says", "{}", 1);
    fleet_wait_state(&fleet, id, "completed");
    ASSERT_SQL("{\"step\": 3}", "SELECT result FROM claimd.jobs WHERE id = %lld", id);
    ASSERT_SQL("1 failed once more",
               "SELECT concat_ws(' ', attempt, outcome, error) FROM claimd.job_attempt WHERE"
               " job_id = %lld",
               id);
    ASSERT_SQL("t",
               "SELECT CASE WHEN log_tail LIKE '%%printed line\nWARNING root: careful\n%%' AND"
               " log_tail LIKE '%%of a child\n%%' AND log_tail LIKE '%%the last\n%%' THEN 't' ELSE"
               " log_tail END FROM claimd.job_attempt WHERE job_id = %lld",
               id);
}
END_TEST

static const struct {
    const char *how;
    const char *state;
    const char *attempt; /* outcome and error of the first attempt; "" = not recorded */
} ends[] = {
    {"snooze", "completed", "snoozed not packed"},
    {"fail", "discarded", "failed bad order"},
    {"cancel", "cancelled", "cancelled void"},
    {"retry", "retryable", "failed the printer jams"},
    {"exception", "retryable", "failed KeyError: 'order'"},
    {"exit", "retryable", "failed SystemExit: 3"},
    {"big", "discarded", "failed the result has 70002 bytes, at most 65536"},
    {"nan", "discarded",
     "failed the result is not JSON: Out of range float values are not JSON "
     "compliant"},
    {"fork", "completed", ""},
};

START_TEST(prog_P3_an_attempt_ends_as_the_function_says)
{
    long long id = enqueue_how("py_ends", ends[_i].how);
    fleet_wait_state(&fleet, id, ends[_i].state);
    ASSERT_SQL(ends[_i].attempt,
               "SELECT coalesce((SELECT concat_ws(' ', outcome, error) FROM claimd.job_attempt"
               " WHERE job_id = %lld ORDER BY fence LIMIT 1), '')",
               id);
}
END_TEST

START_TEST(prog_P3_an_exception_leaves_its_traceback_in_the_log)
{
    long long id = enqueue_how("py_ends", "exception");
    fleet_wait_state(&fleet, id, "retryable");
    ASSERT_SQL("t",
               "SELECT CASE WHEN log_tail LIKE 'Traceback%%raise KeyError%%' THEN 't' ELSE log_tail"
               " END FROM claimd.job_attempt WHERE job_id = %lld",
               id);
}
END_TEST

START_TEST(prog_P3_a_result_with_NUL_fails_its_job_for_good)
{
    long long id = enqueue_how("py_ends", "nul");
    fleet_wait_state(&fleet, id, "discarded");
}
END_TEST

START_TEST(prog_P1_a_coroutine_is_run_to_its_end)
{
    long long id = fleet_enqueue(&fleet, "py_async", "{}", 1);
    fleet_wait_state(&fleet, id, "completed");
    ASSERT_SQL("\"async\"", "SELECT result FROM claimd.jobs WHERE id = %lld", id);
}
END_TEST

static const char *const stopped[][3] = {
    {"py_polls", "cancel", "cancelled told: cancel"},
    {"py_polls", "timeout", "timeout told: timeout"},
    {"py_sleeps", "cancel", "cancelled stopped: cancel"},
    {"py_sleeps", "timeout", "timeout stopped: timeout"},
};

START_TEST(prog_P4_a_handler_is_told_why_it_should_stop)
{
    bool is_cancel = strcmp(stopped[_i][1], "cancel") == 0;
    long long id = sql_number(fleet.sql, "SELECT claimd.enqueue('%s', timeout => %s)",
                              stopped[_i][0], is_cancel ? "NULL" : "'2 s'");
    if (is_cancel) {
        ck_assert(WAIT_UNTIL(sql_number(fleet.sql,
                                        "SELECT count(*) FROM claimd.job_live WHERE id = %lld"
                                        " AND percent = 1",
                                        id) == 1,
                             SOON_US));
        sql_run(fleet.sql, "SELECT claimd.cancel(%lld)", id);
    }
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql,
                                    "SELECT count(*) FROM claimd.job_attempt WHERE job_id = %lld",
                                    id) == 1,
                         SOON_US));
    ASSERT_SQL(stopped[_i][2],
               "SELECT concat_ws(' ', outcome, error) FROM claimd.job_attempt WHERE job_id = %lld",
               id);
    sql_run(fleet.sql, "SELECT claimd.cancel(%lld)", id);
}
END_TEST

/* ---- programs that violate the protocol ---- */

static const char *const broken[][2] = {
    {"garbage", "the program sent: a line that is not a JSON object"},
    {"utf8", "the program sent: a line that is not UTF-8"},
    {"long", "the program sent a line of more than 131072 bytes"},
    {"twice", "the program ended run 1 again"},
    {"other", "the program sent a line without a run, expected \"n\": 1"},
    {"unknown", "the program sent: a line without any of claimd, log, progress, checkpoint, "
                "result, end"},
    {"closes", "the program closed its descriptor 4"},
    {"forks", "the program ended: exit status 3"},
    {"dies", "the program ended: SIGSEGV"},
};

START_TEST(prog_P5_a_program_that_breaks_the_protocol_costs_its_attempt_and_says_why)
{
    char expected[256];
    long long id = enqueue_how("hostile", broken[_i][0]);
    (void)snprintf(expected, sizeof expected, "crashed %s", broken[_i][1]);
    fleet_wait_state(&fleet, id, "discarded"); /* max_crashes is 1 */
    ASSERT_SQL(
        expected,
        "SELECT concat_ws(' ', outcome, regexp_replace(error, '^poison, crash 1 of 1: ', ''))"
        " FROM claimd.job_attempt WHERE job_id = %lld",
        id);
}
END_TEST

START_TEST(prog_P5_the_last_words_of_a_program_are_in_the_log)
{
    long long id = enqueue_how("hostile", "dies");
    fleet_wait_state(&fleet, id, "discarded");
    ASSERT_SQL("last words\n", "SELECT log_tail FROM claimd.job_attempt WHERE job_id = %lld", id);
}
END_TEST

/* Looks for the process that hostile.py leaves behind. */
static bool is_anybody_left(void)
{
    static const char left[] = "sleep\0987654";
    glob_t found;
    bool is_left = false;
    ck_assert_int_eq(glob("/proc/[0-9]*/cmdline", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char text[64] = "";
        autoclose int fd = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
        is_left = is_left || (n == (ssize_t)sizeof left && memcmp(text, left, sizeof left) == 0);
    }
    globfree(&found);
    return is_left;
}

START_TEST(prog_P6_nothing_is_left_of_a_program_that_does_not_stop)
{
    long long id = sql_number(fleet.sql, "SELECT claimd.enqueue('hostile', '{\"how\": \"never\"}',"
                                         " timeout => '2 s', max_attempts => 1)");
    fleet_wait_state(&fleet, id, "discarded");
    ASSERT_SQL("timeout timeout: the handler did not stop",
               "SELECT concat_ws(' ', outcome, error) FROM claimd.job_attempt WHERE job_id = %lld",
               id);
    ck_assert(WAIT_UNTIL(!is_anybody_left(), SOON_US));
}
END_TEST

START_TEST(prog_P6_what_a_job_leaves_behind_is_ended)
{
    long long id = enqueue_how("hostile", "leaves");
    fleet_wait_state(&fleet, id, "completed");
    ck_assert(WAIT_UNTIL(!is_anybody_left(), SOON_US));
}
END_TEST

START_TEST(prog_P5_a_program_that_dies_between_jobs_costs_nobody_anything)
{
    int before = fleet_log_count(&fleet, "claimd-worker", 0, "event=program_ended");
    for (int i = 1; i <= 3; i++) {
        long long id = enqueue_how("hostile", "late");
        fleet_wait_state(&fleet, id, "completed");
        ck_assert(WAIT_UNTIL(fleet_log_count(&fleet, "claimd-worker", 0, "event=program_ended") ==
                                 before + i,
                             SOON_US));
    }
    ASSERT_SQL("0", "SELECT count(*) FROM claimd.job_attempt a JOIN claimd.jobs j ON j.id ="
                    " a.job_id WHERE j.args->>'how' = 'late'");
}
END_TEST

/* All jobs arrive together, so that most are in the pipe of a program that ends without having read
 * them. */
START_TEST(prog_P5_a_job_that_its_program_did_not_read_is_given_to_the_next_one)
{
    char args[SERVER_PATH_MAX + 64];
    (void)snprintf(args, sizeof args, HOW_JSON, "goes", fleet.dir);
    fleet_enqueue(&fleet, "hostile", args, 12);
    ck_assert(
        WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.jobs WHERE args->>'how' ="
                                         " 'goes' AND state = 'completed'") == 12,
                   SOON_US));
    ASSERT_SQL("", "SELECT string_agg(concat_ws(' ', a.outcome, a.error), ', ') FROM"
                   " claimd.job_attempt a JOIN claimd.jobs j ON j.id = a.job_id WHERE"
                   " j.args->>'how' = 'goes'");
}
END_TEST

START_TEST(prog_P7_what_a_program_says_passes_octet_for_octet_or_cleaned)
{
    long long id = enqueue_how("hostile", "escapes");
    fleet_wait_state(&fleet, id, "completed");
    ASSERT_SQL("{\"a\": 1.50, \"b\": 123456789012345678901234567890}",
               "SELECT result FROM claimd.jobs WHERE id = %lld", id);
    ASSERT_SQL("a\xEF\xBF\xBD"
               "b \xEF\xBF\xBD \\ \" ü 😀\nclaimd: the progress was refused\n",
               "SELECT log_tail FROM claimd.job_attempt WHERE job_id = %lld", id);
}
END_TEST

START_TEST(prog_P7_a_flood_of_log_lines_keeps_the_last_ones)
{
    long long id = enqueue_how("hostile", "flood");
    fleet_wait_state(&fleet, id, "completed");
    ASSERT_SQL("t",
               "SELECT log_tail LIKE '%%line 19999 xxx%%' FROM claimd.job_attempt WHERE"
               " job_id = %lld",
               id);
}
END_TEST

/* ---- programs that run once ---- */

START_TEST(prog_O1_args_are_in_the_command_line_unsplit_and_on_stdin)
{
    long long id = fleet_enqueue(
        &fleet, "sh_once", "{\"how\": \"args\", \"path\": \"a b; $(exit 9) \\\"c\\\" -d\"}", 1);
    fleet_wait_state(&fleet, id, "completed");
    ASSERT_SQL("t",
               "SELECT result = jsonb_build_object('arg', 'pre-a b; $(exit 9) \"c\" -d', 'key',"
               " 'job:%lld', 'attempt', 1) FROM claimd.jobs WHERE id = %lld",
               id, id);
    ASSERT_SQL("t",
               "SELECT log_tail LIKE 'stdin {\"how\": \"args\", \"path\"%%' FROM claimd.job_attempt"
               " WHERE job_id = %lld",
               id);
}
END_TEST

static const struct {
    const char *args;
    const char *state;
    const char *attempt;
} exits[] = {
    {"{\"how\": 75, \"path\": \"x\"}", "retryable", "failed the program ended: exit status 75"},
    {"{\"how\": 3, \"path\": \"x\"}", "discarded", "failed the program ended: exit status 3"},
    {"{\"how\": 4, \"path\": \"x\"}", "cancelled", "cancelled the program ended: exit status 4"},
    {"{\"how\": \"signal\", \"path\": \"x\"}", "retryable", "failed the program ended: SIGKILL"},
    {"{\"how\": \"garbage\", \"path\": \"x\"}", "retryable",
     "failed the program sent: a line that is not a JSON object"},
    {"{\"how\": \"args\"}", "discarded",
     "failed args have no value for {path} of the command, expected a text, a number or a boolean"},
    {"{\"how\": [1], \"path\": \"x\"}", "discarded",
     "failed args have no plain value for {how} of the command, expected a text, a number or a "
     "boolean"},
    {"{\"how\": \"-x\", \"path\": \"x\"}", "discarded",
     "failed args.how begins with '-', which the program would take for an option: put \"--\" "
     "before "
     "{how} in the command"},
};

START_TEST(prog_O2_the_exit_code_says_the_outcome_and_args_that_do_not_fit_fail_for_good)
{
    long long id = fleet_enqueue(&fleet, "sh_once", exits[_i].args, 1);
    fleet_wait_state(&fleet, id, exits[_i].state);
    ASSERT_SQL(exits[_i].attempt,
               "SELECT concat_ws(' ', outcome, error) FROM claimd.job_attempt WHERE job_id = %lld",
               id);
}
END_TEST

static const char *const last_lines[][2] = {
    {"{\"text\": \"two\\nlines\"}", "\"lines\""},
    {"{\"text\": \"a\\n[1, 2]\\n\\n\"}", "[1, 2]"},
    {"{\"text\": true}", "\"{text} -- true\""},
};

START_TEST(prog_O3_the_last_line_is_the_result_where_the_file_says_so)
{
    long long id = fleet_enqueue(&fleet, "sh_line", last_lines[_i][0], 1);
    fleet_wait_state(&fleet, id, "completed");
    ASSERT_SQL(last_lines[_i][1], "SELECT result FROM claimd.jobs WHERE id = %lld", id);
}
END_TEST

START_TEST(prog_O4_what_a_command_leaves_behind_is_ended)
{
    long long id = fleet_enqueue(&fleet, "sh_once", "{\"how\": \"leaves\", \"path\": \"x\"}", 1);
    fleet_wait_state(&fleet, id, "completed");
    ck_assert(WAIT_UNTIL(!is_anybody_left(), SOON_US));
}
END_TEST

/* ---- programs that cannot be started ---- */

START_TEST(prog_P8_a_program_that_cannot_start_withdraws_its_kind_and_charges_nobody)
{
    char json[4096];
    char path[SERVER_PATH_MAX + 32];
    (void)snprintf(path, sizeof path, "%s/may_start", fleet.dir);
    (void)snprintf(json, sizeof json,
                   "{\"command\": [\"/bin/sh\", \"-c\", \"[ -e %s ] || exit 9; exec python3"
                   " %s/tests/programs/hostile.py fickle\"], \"kinds\": {\"fickle\": {}}}",
                   path, getenv("CLAIMD_SOURCE_DIR"));
    fleet_add_handlers(&fleet, "fickle", json);
    fleet_signal(fleet.workers[0], SIGHUP);
    long long id = enqueue_how("fickle", "fine");
    const char *line =
        "file=fickle.json err=\"before its hello: the program ended: exit status 9\"";
    ck_assert(WAIT_UNTIL(fleet_log_count(&fleet, "claimd-worker", 0, line) == 1, SOON_US));
    ck_assert(WAIT_UNTIL(fleet_log_count(&fleet, "claimd-worker", 0,
                                         "event=kind_withdrawn kind=fickle plugin=fickle") == 1,
                         SOON_US));
    fleet_wait_state(&fleet, id, "available");
    ASSERT_SQL("0", "SELECT attempt FROM claimd.jobs WHERE id = %lld", id);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fclose(file), 0);
    fleet_wait_state(&fleet, id, "completed"); /* retried without any intervention */
    ASSERT_SQL("1", "SELECT attempt FROM claimd.jobs WHERE id = %lld", id);
    ASSERT_SQL("0", "SELECT count(*) FROM claimd.job_attempt WHERE job_id = %lld", id);
}
END_TEST

static const char *const refused[][2] = {
    {"{\"command\": [\"python3\"], \"kinds\": {\"k\": {}}}",
     "command: 'python3' does not begin with /"},
    {"{\"command\": [\"/no/such\"], \"kinds\": {\"k\": {}}}",
     "command: /no/such: No such file or directory"},
    {"{\"command\": [\"/etc/passwd\"], \"kinds\": {\"k\": {}}}",
     "command: /etc/passwd is not an executable file"},
    {"{\"command\": [\"/bin/sh\"], \"kinds\": {\"k\": {\"tiemout\": 3}}}",
     "kinds.k has no key 'tiemout': allowed are timeout, max_attempts, max_crashes, backoff, "
     "at_most_once, keep_log"},
    {"{\"command\": [\"/bin/sh\"], \"kinds\": {\"k\": {}}, \"exit_codes\": {\"3\": \"fail\"}}",
     "exit_codes: only with \\\"mode\\\": \\\"once\\\""},
    {"{\"command\": [\"/bin/sh\"], \"kinds\": {\"py_echo\": {}}}",
     "kind py_echo is served by plugin works already"},
    {"{\"command\": [\"/bin/sh\"], \"kinds\": {\"k\": {\"timeout\": \"soon\"}}}",
     "kinds.k.timeout: must be a time up to 31536000 s, as \\\"90s\\\", \\\"10m\\\", or seconds"},
};

START_TEST(prog_P9_a_file_that_is_wrong_is_refused_with_its_place_and_what_is_allowed)
{
    char name[32];
    char line[512];
    (void)snprintf(name, sizeof name, "zz_wrong%d", _i);
    fleet_add_handlers(&fleet, name, refused[_i][0]);
    fleet_signal(fleet.workers[0], SIGHUP);
    (void)snprintf(line, sizeof line, "event=plugin_refused file=%s.json err=\"%s\"", name,
                   refused[_i][1]);
    ck_assert_msg(WAIT_UNTIL(fleet_log_count(&fleet, "claimd-worker", 0, line) >= 1, SOON_US), "%s",
                  line);
}
END_TEST

/* ---- the fleet ---- */

static void add_programs(void)
{
    char json[2048];
    const char *source = getenv("CLAIMD_SOURCE_DIR");
    (void)snprintf(json, sizeof json,
                   "{\"command\": [\"/usr/bin/env\", \"python3\", \"%s/tests/programs/works.py\"],"
                   " \"kinds\": {\"py_echo\": {}, \"py_says\": {}, \"py_ends\": {\"keep_log\":"
                   " true}, \"py_async\": {}, \"py_polls\": {}, \"py_sleeps\": {}},"
                   " \"env\": {\"PYTHONPATH\": \"%s/sdk/python\"}}",
                   source, source);
    fleet_add_handlers(&fleet, "works", json);
    (void)snprintf(
        json, sizeof json,
        "{\"command\": [\"/usr/bin/env\", \"python3\", \"%s/tests/programs/hostile.py\","
        " \"hostile\"], \"kinds\": {\"hostile\": {\"max_crashes\": 1, \"keep_log\": true}"
        "}}",
        source);
    fleet_add_handlers(&fleet, "hostile", json);
    (void)snprintf(json, sizeof json,
                   "{\"command\": [\"/bin/sh\", \"%s/tests/programs/once.sh\","
                   " \"%s/sdk/shell/claimd.sh\", \"{how}\", \"--\", \"pre-{path}\"],"
                   " \"mode\": \"once\", \"kinds\": {\"sh_once\": {\"keep_log\": true}},"
                   " \"exit_codes\": {\"3\": \"fail\", \"4\": \"cancel\"}}",
                   source, source);
    fleet_add_handlers(&fleet, "sh_once", json);
    fleet_add_handlers(&fleet, "sh_line",
                       "{\"command\": [\"/bin/echo\", \"{{text}}\", \"--\", \"{text}\"], \"mode\":"
                       " \"once\", \"result\": \"last_line\", \"kinds\": {\"sh_line\": {}}}");
}

static void setup(void)
{
    struct fleet_options options = {.masters = 1, .has_handlers = true};
    fleet_start(&fleet, &options);
    add_programs();
    fleet_start_scheduler(&fleet, 0);
    fleet_start_worker(&fleet, 0, NULL);
}

static void teardown(void)
{
    fleet_stop(&fleet);
}

static Suite *suite(void)
{
    Suite *s = suite_create("programs");
    TCase *c = tcase_create("programs");
    tcase_set_timeout(c, 120);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_test(c, prog_P1_a_function_is_told_of_its_job_and_its_value_is_the_result);
    tcase_add_test(c, prog_P1_a_program_is_used_again_for_the_next_job);
    tcase_add_test(c, prog_P2_log_checkpoint_and_retry_are_those_of_the_attempt);
    tcase_add_loop_test(c, prog_P3_an_attempt_ends_as_the_function_says, 0, (int)ARRAY_COUNT(ends));
    tcase_add_test(c, prog_P3_an_exception_leaves_its_traceback_in_the_log);
    tcase_add_test(c, prog_P3_a_result_with_NUL_fails_its_job_for_good);
    tcase_add_test(c, prog_P1_a_coroutine_is_run_to_its_end);
    tcase_add_loop_test(c, prog_P4_a_handler_is_told_why_it_should_stop, 0,
                        (int)ARRAY_COUNT(stopped));
    tcase_add_loop_test(c,
                        prog_P5_a_program_that_breaks_the_protocol_costs_its_attempt_and_says_why,
                        0, (int)ARRAY_COUNT(broken));
    tcase_add_test(c, prog_P5_the_last_words_of_a_program_are_in_the_log);
    tcase_add_test(c, prog_P6_nothing_is_left_of_a_program_that_does_not_stop);
    tcase_add_test(c, prog_P6_what_a_job_leaves_behind_is_ended);
    tcase_add_test(c, prog_P5_a_program_that_dies_between_jobs_costs_nobody_anything);
    tcase_add_test(c, prog_P5_a_job_that_its_program_did_not_read_is_given_to_the_next_one);
    tcase_add_test(c, prog_P7_what_a_program_says_passes_octet_for_octet_or_cleaned);
    tcase_add_test(c, prog_P7_a_flood_of_log_lines_keeps_the_last_ones);
    tcase_add_test(c, prog_O1_args_are_in_the_command_line_unsplit_and_on_stdin);
    tcase_add_loop_test(
        c, prog_O2_the_exit_code_says_the_outcome_and_args_that_do_not_fit_fail_for_good, 0,
        (int)ARRAY_COUNT(exits));
    tcase_add_loop_test(c, prog_O3_the_last_line_is_the_result_where_the_file_says_so, 0,
                        (int)ARRAY_COUNT(last_lines));
    tcase_add_test(c, prog_O4_what_a_command_leaves_behind_is_ended);
    tcase_add_test(c, prog_P8_a_program_that_cannot_start_withdraws_its_kind_and_charges_nobody);
    tcase_add_loop_test(c,
                        prog_P9_a_file_that_is_wrong_is_refused_with_its_place_and_what_is_allowed,
                        0, (int)ARRAY_COUNT(refused));
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
