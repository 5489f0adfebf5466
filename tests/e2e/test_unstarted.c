/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that cannot be started: their kinds are withdrawn and no job is charged; doctor, workers
 * and a metric report it until the program is repaired. */
#include "cluster/scrape.h"
#include "operator.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX ((size_t)1 << 20)

static struct fleet fleet;
static char http[128];

/* Each file has one kind of the same name. */
static const struct {
    const char *name;
    const char *json; /* its command and related members; @ is the fleet's folder */
    const char *why;
} unstarted[] = {
    {"lost", "\"command\": [\"@/script\"]",
     "command: the interpreter of @/script: /no/such: No such file or directory"},
    {"lost_once", "\"mode\": \"once\", \"command\": [\"@/script\"]",
     "command: the interpreter of @/script: /no/such: No such file or directory"},
    {"ends", "\"command\": [\"/bin/sh\", \"-c\", \"exit 9\"]",
     "before its hello: the program ended: exit status 9"},
    {"slow", "\"command\": [\"/bin/sleep\", \"987654\"], \"start_timeout\": \"1s\"",
     "the program sent no hello within 1000 ms"},
    {"other",
     "\"command\": [\"/usr/bin/env\", \"python3\", \"@@/tests/programs/hostile.py\", "
     "\"x\"]",
     "the program has no handler of kind other"},
};

static void add_file(const char *name, const char *members)
{
    char expanded[OPERATOR_TEXT_SIZE];
    char json[2 * OPERATOR_TEXT_SIZE];
    const char *source = strstr(members, "@@");
    if (source != NULL) {
        (void)snprintf(expanded, sizeof expanded, "%.*s%s%s", (int)(source - members), members,
                       getenv("CLAIMD_SOURCE_DIR"), source + 2);
    } else {
        operator_expand(&fleet, members, expanded);
    }
    (void)snprintf(json, sizeof json, "{%s, \"kinds\": {\"%s\": {}}}", expanded, name);
    fleet_add_handlers(&fleet, name, json);
}

static void add_good(const char *name)
{
    char members[256];
    (void)snprintf(members, sizeof members,
                   "\"command\": [\"/usr/bin/env\", \"python3\", "
                   "\"@@/tests/programs/hostile.py\", \"%s\"]",
                   name);
    add_file(name, members);
}

static double refused_files(void)
{
    autobuf struct buf text = BUF_INIT(TEXT_MAX);
    enum status st = scrape_get(http, "/metrics", SOON_US, &text, NULL);
    return st == STATUS_OK ? scrape_sum(buf_at(&text), "claimd_worker_plugins_refused", NULL) : -1;
}

/* Checks the output and the exit code of claimctl with these words. */
static void assert_says(const char *words, int code, const char *part)
{
    autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
    int ended = operator_ctl(&fleet, "config.json", "", words, &out);
    ck_assert_msg(strstr(buf_at(&out), part) != NULL, "%s: wanted %s, said %s", words, part,
                  buf_at(&out));
    ck_assert_msg(ended == code, "%s: exit code %d, said %s", words, ended, buf_at(&out));
}

static int64_t count_refused(const char *text)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM claimd.worker WHERE refused = ARRAY['%s']",
                      text);
}

static void run_one(const char *kind)
{
    fleet_wait_state(&fleet, fleet_enqueue(&fleet, kind, "{\"how\": \"fine\"}", 1), "completed");
}

START_TEST(prog_P8_what_can_not_be_started_is_said_by_doctor_workers_and_a_metric)
{
    char file[64];
    char why[OPERATOR_TEXT_SIZE];
    char refused[2 * OPERATOR_TEXT_SIZE];
    char line[3 * OPERATOR_TEXT_SIZE];
    const char *name = unstarted[_i].name;
    (void)snprintf(file, sizeof file, "%s.json", name);
    operator_expand(&fleet, unstarted[_i].why, why);
    (void)snprintf(refused, sizeof refused, "%s: %s", file, why);
    add_file(name, unstarted[_i].json);
    fleet_signal(fleet.workers[0], SIGHUP);
    int64_t id = fleet_enqueue(&fleet, name, "{\"how\": \"fine\"}", 1);

    ck_assert_msg(WAIT_UNTIL(count_refused(refused) == 1, SOON_US), "%s", refused);
    ck_assert(WAIT_UNTIL(refused_files() == 1, SOON_US));
    assert_says("workers", 0, file);
    (void)snprintf(line, sizeof line, "\"refused\": \"%s\", \"refusals\": [\"%s\"]", file, refused);
    assert_says("workers --json", 0, line);
    (void)snprintf(line, sizeof line, "(pid %d): %s", (int)fleet.workers[0], refused);
    assert_says("doctor", 1, line);
    ck_assert_int_eq(sql_number(fleet.sql,
                                "SELECT count(*) FROM claimd.worker WHERE '%s' = ANY"
                                " (kinds)",
                                name),
                     0);
    ck_assert_int_eq(
        sql_number(fleet.sql, "SELECT attempt FROM claimd.jobs WHERE id = %lld", (long long)id), 0);
    run_one("steady");

    add_good(name);
    fleet_signal(fleet.workers[0], SIGHUP);
    fleet_wait_state(&fleet, id, "completed");
    ck_assert(WAIT_UNTIL(refused_files() == 0, SOON_US));
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.worker WHERE refused ="
                                               " '{}'") == 1,
                         SOON_US));
    ck_assert_int_eq(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_attempt"), 0);
}
END_TEST

static int64_t count_serving(const char *kinds)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM claimd.worker WHERE '%s' <@ kinds", kinds);
}

static long long start_nap(void)
{
    long long id = fleet_enqueue(&fleet, "nap", "{\"ms\": 600000}", 1);
    fleet_wait_state(&fleet, id, "running");
    return id;
}

static void end_nap(long long id)
{
    sql_run(fleet.sql, "SELECT claimd.cancel(%lld)", id);
    fleet_wait_state(&fleet, id, "completed"); /* a cancelled nap ends with done */
}

/* Naps leave one runner idle, a different one each time, which has not tried the others' files. */
START_TEST(prog_P8_what_several_runners_can_not_start_is_said_of_all)
{
    static const char *const names[] = {"one", "two", "three"};
    long long naps[ARRAY_COUNT(names)];
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        add_file(names[i], "\"command\": [\"/bin/sh\", \"-c\", \"exit 9\"]");
    }
    fleet_signal(fleet.workers[0], SIGHUP);
    ck_assert(WAIT_UNTIL(count_serving("{one,two,three}") == 1, SOON_US));
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        naps[i] = start_nap();
    }
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char kinds[32];
        (void)snprintf(kinds, sizeof kinds, "{%s}", names[i]);
        fleet_enqueue(&fleet, names[i], "{\"how\": \"fine\"}", 1);
        ck_assert(WAIT_UNTIL(count_serving(kinds) == 0, SOON_US));
        ck_assert(WAIT_UNTIL(refused_files() == (double)i + 1, SOON_US));
        long long nap = start_nap();
        end_nap(naps[i]);
        naps[i] = nap;
    }
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.worker WHERE"
                                               " cardinality(refused) = 3") == 1,
                         SOON_US));
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        add_good(names[i]);
        end_nap(naps[i]);
    }
    fleet_signal(fleet.workers[0], SIGHUP);
    ck_assert(
        WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.jobs WHERE kind <> 'nap'"
                                         " AND state <> 'completed'") == 0,
                   SOON_US));
    ck_assert(WAIT_UNTIL(refused_files() == 0, SOON_US));
}
END_TEST

static void setup(void)
{
    struct fleet_options options = {.masters = 1, .slots = 4, .has_handlers = true};
    fleet_start(&fleet, &options);
    operator_write(&fleet, "script", "#!/no/such\n", 0755);
    add_good("steady");
    fleet_start_scheduler(&fleet, 0);
    fleet_start_worker(&fleet, 0, NULL);
    fleet_http(&fleet, "claimd-worker", 0, http, sizeof http);
}

static void teardown(void)
{
    fleet_stop(&fleet);
}

int main(void)
{
    Suite *s = suite_create("unstarted");
    TCase *c = tcase_create("unstarted");
    tcase_set_timeout(c, 120);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, prog_P8_what_can_not_be_started_is_said_by_doctor_workers_and_a_metric,
                        0, (int)ARRAY_COUNT(unstarted));
    tcase_add_test(c, prog_P8_what_several_runners_can_not_start_is_said_of_all);
    suite_add_tcase(s, c);
    return suite_run_in_one(s);
}
