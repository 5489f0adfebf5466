/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl db and enqueue: the real program against a real PostgreSQL. */
#include "ctl_fixture.h"

#include <stdio.h>

#define JOBS "SELECT count(*)::text FROM claimd.job"

/* ---- schema ---- */

START_TEST(the_schema_goes_up_down_and_up)
{
    ck_assert_int_eq(ctl_exit("db", "status", "--json"), 0);
    json_t *status = ctl_json();
    json_t *first = json_array_get(json_object_get(status, "migrations"), 0);
    ck_assert(json_is_false(json_object_get(first, "applied")));
    json_decref(status);
    ck_assert_int_eq(ctl_exit("db", "migrate"), 0);
    assert_says("applied 0001_jobs");
    ck_assert_int_eq(ctl_exit("db", "migrate"), 0);
    assert_says("nothing to do");
    ck_assert_int_eq(ctl_exit("db", "rollback"), 2);
    assert_says("--yes");
    while (ctl_exit("db", "rollback", "--yes") == 0) {
        assert_says("undone ");
    }
    assert_says("no migration is applied");
    ck_assert_int_eq(ctl_exit("db", "migrate"), 0);
    ck_assert_int_eq(sql_number(db, JOBS), 0);
}
END_TEST

START_TEST(a_database_without_the_schema_is_refused_with_the_migration)
{
    ck_assert_int_eq(ctl_exit("workers"), 5);
    assert_says("version 0");
    assert_says("claimctl db migrate");
    assert_says("0001_jobs");
}
END_TEST

START_TEST(B40_an_upgrade_is_finished_once_no_older_program_is_left)
{
    sql_run(db, "UPDATE claimd.cluster SET oldest_program = 1");
    sql_run(db, "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, "
                "token_prefix, version, queues, built_for) VALUES (gen_random_uuid(), now(), 77, "
                "1, 'attic', 'd', 't', 'v', '{default}', 1)");
    ck_assert_int_eq(ctl_exit("db", "finish"), 5);
    assert_says("worker 77 on attic");
    sql_run(db, "UPDATE claimd.worker SET stopped = true");
    ck_assert_int_eq(ctl_exit("db", "finish"), 0);
    ck_assert_int_eq(ctl_exit("db", "finish", "--json"), 0);
    ck_assert_int_eq(
        sql_number(
            db, "SELECT count(*)::text FROM claimd.cluster WHERE oldest_program = schema_version"),
        1);
}
END_TEST

START_TEST(a_newer_schema_is_refused)
{
    sql_run(db, "UPDATE claimd.cluster SET schema_version = 999, oldest_program = 999");
    ck_assert_int_eq(ctl_exit("workers"), 5);
    assert_says("version 999");
    ck_assert_int_eq(ctl_exit("db", "status"), 5);
    ck_assert_int_eq(ctl_exit("db", "migrate"), 5);
}
END_TEST

START_TEST(postgresql_away_is_exit_3_with_the_reason)
{
    (void)snprintf(ctl.conninfo, sizeof ctl.conninfo, "host=/nowhere");
    ck_assert_int_eq(ctl_exit("enqueue", "a"), 3);
    assert_says("/nowhere");
    ck_assert_int_eq(ctl_exit("db", "status"), 3);
}
END_TEST

/* ---- one job ---- */

/* Adds a live worker, so that standard error stays silent. */
static void given_worker(const char *queues, const char *kinds)
{
    sql_run(db,
            "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, "
            "token_prefix, version, queues, kinds) VALUES (gen_random_uuid(), now() + interval '1 "
            "h', 1, 1, 'h', '/s', 'p', '1', '{%s}', '{%s}')",
            queues, kinds);
}

START_TEST(B20_a_job_may_have_an_exclusive_key_with_and_without_a_unique_one)
{
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--exclusive", "m1"), 0);
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--exclusive", "m1", "--unique", "u"), 0);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.job WHERE exclusive_key = 'm1'"), 2);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.job WHERE unique_key IS NOT NULL"), 1);
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--exclusive", ""), 2);
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--share", "acme"), 0);
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--share", "acme", "--unique", "v"), 0);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.job WHERE share_key = 'acme'"), 2);
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--share", ""), 2);
}
END_TEST

START_TEST(a_kind_or_queue_that_nobody_serves_is_warned_of_and_stored)
{
    ck_assert_int_eq(ctl_exit("enqueue", "resize"), 0);
    assert_says("claimctl: warning: kind resize is unknown: no worker has ever announced it");
    assert_says("\n1\n");
    given_worker("default", "resize");
    sql_run(db, "INSERT INTO claimd.kind (name) VALUES ('resize'), ('mail')");
    ck_assert_int_eq(ctl_exit("enqueue", "resize"), 0);
    ck_assert_str_eq(ctl_text(), "2\n");
    ck_assert_int_eq(ctl_exit("enqueue", "resize", "--queue", "img"), 0);
    assert_says("warning: no live worker serves queue img (worker.queues)");
    ck_assert_int_eq(ctl_exit("enqueue", "mail"), 0);
    assert_says("warning: no live worker of queue default serves kind mail");
    ck_assert_int_eq(sql_number(db, JOBS), 4);
}
END_TEST

START_TEST(strict_refuses_what_nobody_serves_before_anything_is_stored)
{
    static const char lines[] = "{\"kind\": \"resize\"}\n{\"kind\": \"resize\", \"queue\": "
                                "\"img\"}\n{\"kind\": \"resize\"}\n";
    given_worker("default", "resize");
    sql_run(db, "INSERT INTO claimd.kind (name) VALUES ('resize')");
    ck_assert_int_eq(ctl_exit("enqueue", "mail", "--strict"), 5);
    assert_says("claimctl: kind mail is unknown");
    const char *path = ctl_write_file("jobs", lines, sizeof lines - 1);
    ck_assert_int_eq(ctl_exit("enqueue", "--strict", "--file", path), 5);
    assert_says("no live worker serves queue img");
    assert_says("nothing was enqueued");
    ck_assert_int_eq(sql_number(db, JOBS), 0);
    ck_assert_int_eq(ctl_exit("enqueue", "resize", "--strict"), 0);
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path), 0);
    assert_says("warning: no live worker serves queue img");
    assert_says("enqueued 3");
    ck_assert_int_eq(sql_number(db, JOBS), 4);
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path, "--priority", "1"), 2);
    assert_says("a file takes no --priority");
}
END_TEST

START_TEST(a_unique_job_is_made_once_and_shows_its_key)
{
    given_worker("default", "sync");
    sql_run(db, "INSERT INTO claimd.kind (name) VALUES ('sync')");
    ck_assert_int_eq(ctl_exit("enqueue", "sync", "--unique", "customer-7", "--metadata",
                              "{\"customer\": 7}", "--tag", "x"),
                     0);
    ck_assert_str_eq(ctl_text(), "1\n");
    ck_assert_int_eq(ctl_exit("enqueue", "sync", "--unique", "customer-7"), 5);
    assert_says("unique_key: job 1 has this key and waits");
    ck_assert_int_eq(
        ctl_exit("enqueue", "sync", "--unique", "customer-7", "--on-conflict", "ignore"), 0);
    assert_says("claimctl: job 1 was there already");
    ck_assert_int_eq(ctl_exit("enqueue", "sync", "--unique-by", "kind,args.c", "--args",
                              "{\"c\": 7, \"d\": 1}", "--unique-for", "1h", "--on-conflict",
                              "ignore", "--json"),
                     0);
    assert_says("\"inserted\": true");
    ck_assert_int_eq(ctl_exit("enqueue", "sync", "--unique-by", "args.c,kind", "--args",
                              "{\"c\": 7, \"d\": 2}", "--unique-for", "1h", "--on-conflict",
                              "replace_args", "--json"),
                     0);
    assert_says("\"inserted\": false");
    ck_assert_int_eq(
        sql_number(db, "SELECT (args->'d')::text FROM claimd.job WHERE unique_key ~ 'args.c'"), 2);
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    assert_says("customer-7");
    assert_says("\"customer\": 7");
    ck_assert_int_eq(sql_number(db, JOBS), 2);
}
END_TEST

START_TEST(one_job_prints_its_id_and_is_stored_as_said)
{
    given_worker("default,img", "resize");
    ck_assert_int_eq(ctl_exit("enqueue", "resize", "--args", "{\"w\": 1.10}", "--queue", "img",
                              "--priority", "2", "--delay", "1h", "--max-attempts", "7",
                              "--timeout", "90s", "--tag", "a\"b", "--tag", "c,d"),
                     0);
    ck_assert_str_eq(ctl_text(), "1\n");
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.job WHERE kind = 'resize' AND args::text "
                       "= '{\"w\": 1.10}' AND queue = 'img' AND priority = 2 AND max_attempts = 7 "
                       "AND timeout = '90 s' AND tags = ARRAY['a\"b', 'c,d'] AND scheduled_at "
                       "BETWEEN now() + interval '59 min' AND now() + interval '61 min'"),
        1);
    ck_assert_int_eq(ctl_exit("enqueue", "resize", "--at", "2020-02-03T04:05:06+01:00", "--json"),
                     0);
    json_t *out = ctl_json();
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(out, "job"), "id")), 2);
    json_decref(out);
    ck_assert_int_eq(
        sql_number(
            db, "SELECT extract(epoch FROM scheduled_at)::int::text FROM claimd.job WHERE id = 2"),
        1580699106);
}
END_TEST

static const struct {
    const char *words[8];
    const char *reason;
} bad_options[] = {
    {{"enqueue", "No"}, "kind"},
    {{"enqueue", "a", "--queue", "A"}, "queue 'A': must match"},
    {{"enqueue", "a", "--args", "{\"a\": 1, \"a\": 2}"}, "args: duplicate object key"},
    {{"enqueue", "a", "--args", "{\"x\": {\"a\": 1, \"a\": 2}}"}, "duplicate object key"},
    {{"enqueue", "a", "--args", "{"}, "args: not JSON"},
    {{"enqueue", "a", "--args", "\"\\u0000\""}, "args: \\u0000 is not allowed in a text"},
    {{"enqueue", "a", "--args", "1e999"}, "args: a number is too large"},
    {{"enqueue", "a", "--priority", "10"}, "--priority: 10 is not allowed; allowed: 0 to 9"},
    {{"enqueue", "a", "--delay", "-1s"}, "--delay: '-1s'"},
    {{"enqueue", "a", "--delay", ""}, "'' is not a duration: a number of seconds, or one"},
    {{"enqueue", "a", "--tag", "\xff"}, "--tag: is not UTF-8"},
    {{"enqueue", "a\xff"}, "[KIND|-]: is not UTF-8"},
    {{"jobs", "cancel", "--kind", "a,B"}, "--kind: kind 'B': must match"},
    {{"jobs", "cancel", "--queue", ""}, "--queue: queue '': must match"},
    {{"jobs", "delete", "--error", ""}, "--error: '' is not allowed"},
    {{"jobs", "retry", "--worker", ""}, "--worker: '' is not allowed"},
    {{"jobs", "list", "--since", "2026-02-30T08:00:00Z"}, "--since: '2026-02-30T08:00:00Z' is"},
    {{"enqueue", "a", "--timeout", "0"}, "--timeout: '0' is not allowed"},
    {{"enqueue", "a", "--at", "tomorrow"}, "2026-01-31T08:00:00Z"},
    {{"enqueue", "a", "--at", "2026-02-30T08:00:00Z"}, "at: '2026-02-30T08:00:00Z' is not"},
    {{"enqueue", "a", "--at", "2299-02-01T08:00:00Z"}, "a time before the year 2286"},
    {{"enqueue", "a", "--max-attempts", "0"}, "--max-attempts: 0 is not allowed; allowed: 1 to "},
    {{"enqueue", "a", "--delay", "1s", "--at", "2026-02-01T08:00:00Z"}, "either --at or --delay"},
    {{"enqueue"}, "either a KIND or --file"},
    {{"enqueue", "a", "b"}, "unexpected argument 'b'"},
    {{"enqueue", "a", "--metadata", "[1]"}, "metadata: allowed: a JSON object"},
    {{"jobs", "list", "--metadata", "{"}, "metadata: not JSON"},
    {{"jobs", "cancel", "--metadata", "7"}, "metadata: allowed: a JSON object"},
    {{"enqueue", "a", "--unique-for", "1h"}, "need --unique or --unique-by"},
    {{"enqueue", "a", "--unique", "k", "--unique-for", "soon"}, "--unique-for: 'soon'"},
    {{"enqueue", "a", "--unique", "k", "--unique-by", "args"}, "unique_by: together"},
    {{"enqueue", "a", "--unique-by", "kind,shape"}, "unique_by: must be a list of kind"},
    {{"enqueue", "a", "--unique", "k", "--unique-states", "dead"}, "unique_states: must be"},
    {{"enqueue", "a", "--unique", "k", "--on-conflict", "x"}, "on_conflict: must be error"},
    {{"enqueue", "a", "--after", "1,x"}, "--after: 'x' is not a decimal number"},
    {{"enqueue", "a", "--after", "1,"}, "--after: "},
    {{"enqueue", "-", "--priority", "1"}, "a file takes no --priority"},
    {{"enqueue", "-", "--file", "x"}, "either a KIND or --file"},
    {{"enqueue", "a", "--colour"}, "unknown option --colour"},
    {{"enqueue", "a", "--args"}, "--args needs a value"},
    {{"enqueue", "--file", "/nowhere/jobs"}, "cannot read '/nowhere/jobs'"},
    {{"enqueue", "--file", "/"}, "cannot read '/': Is a directory"},
    {{"jobs", "list", "--state", "done"}, "allowed: waiting, scheduled"},
    {{"jobs", "list", "--limit", "0"}, "--limit: 0 is not allowed; allowed: 1 to 10000"},
    {{"jobs", "show", "x"}, "'x' is not a decimal number"},
    {{"jobs", "show"}, "ID is missing"},
    {{"jobs", "eat"}, "known: list show watch cancel"},
    {{"job"}, "known: db enqueue jobs"},
};

START_TEST(bad_input_is_exit_2_with_place_and_allowed_form)
{
    for (size_t i = 0; i < ARRAY_COUNT(bad_options); i++) {
        ck_assert_int_eq(ctl_run_words(bad_options[i].words), 2);
        assert_says(bad_options[i].reason);
    }
    ck_assert_int_eq(sql_number(db, JOBS), 0);
}
END_TEST

/* The server is still busy when we give up: it is unknown whether the job will be stored. */
START_TEST(an_answer_that_never_came_is_not_called_a_failure)
{
    static const char line[] = "{\"kind\": \"a\"}\n";
    const char *path = ctl_write_file("jobs", line, sizeof line - 1);
    sql_run(db, "CREATE FUNCTION claimd.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                "PERFORM pg_sleep(20); RETURN NULL; END $$");
    sql_run(db, "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON claimd.job DEFERRABLE INITIALLY "
                "DEFERRED FOR EACH ROW EXECUTE FUNCTION claimd.slow()");
    ctl.env[0] = "CLAIMD_POSTGRES_TIMEOUT_MS=700";
    ck_assert_int_eq(ctl_exit("enqueue", "a"), 1);
    assert_says("it is unknown whether this was done");
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path), 1);
    assert_says("it is unknown whether this was done");
}
END_TEST

/* ---- a file ---- */

START_TEST(ten_thousand_lines_are_one_transaction)
{
    autobuf struct buf lines = BUF_INIT(4 << 20);
    struct err err = {0};
    for (int i = 0; i < 10000; i++) {
        enum status st =
            buf_printf(&lines, &err, "{\"kind\": \"noop\", \"args\": {\"i\": %d}}\n", i);
        ck_assert_int_eq(st, STATUS_OK);
    }
    const char *path = ctl_write_file("jobs", buf_at(&lines), lines.len);
    given_worker("default", "noop");
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path), 0);
    ck_assert_str_eq(ctl_text(), "enqueued 10000\n");
    ck_assert_int_eq(sql_number(db, JOBS), 10000);
    ck_assert_int_eq(sql_number(db, "SELECT count(DISTINCT args->'i')::text FROM claimd.job"),
                     10000);
    ck_assert_int_eq(sql_number(db, "SELECT count(DISTINCT xmin::text)::text FROM claimd.job"), 1);
}
END_TEST

START_TEST(a_line_says_all_that_an_option_can)
{
    static const char text[] =
        "{\"tags\": [\"a\\\"b\\\\c\", \"d\"], \"args\": {\"n\": 0.1, \"t\": \"\\\\\\t\\u00e9\"}, "
        "\"kind\": \"a\", \"queue\": \"q.x\", \"priority\": 9, \"delay\": \"2h\", "
        "\"max_attempts\": 3, \"timeout\": 30, \"metadata\": {\"by\": \"me\"}}\n"
        "{\"kind\": \"b\", \"at\": \"2020-02-03T04:05:06Z\", \"args\": null}";
    given_worker("default,q.x", "a,b");
    ck_assert_int_eq(
        ctl_exit("enqueue", "--json", "--file", ctl_write_file("jobs", text, strlen(text))), 0);
    json_t *out = ctl_json();
    json_t *count = json_object_get(json_object_get(out, "jobs"), "enqueued");
    ck_assert_int_eq(json_integer_value(count), 2);
    json_decref(out);
    ck_assert_int_eq(
        sql_number(db,
                   "SELECT count(*)::text FROM claimd.job WHERE kind = 'a' AND tags = "
                   "ARRAY['a\"b\\c', 'd'] AND args->>'n' = '0.1' AND args->>'t' = "
                   "E'\\\\\\t\\u00e9' AND queue = 'q.x' AND priority = 9 AND max_attempts = 3 AND "
                   "timeout = '30 s' AND metadata->>'by' = 'me' AND ready_at > now() + '1h'"),
        1);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.job WHERE kind = 'b' AND args = '{}' AND "
                       "ready_at <= clock_timestamp() AND scheduled_at = '2020-02-03T04:05:06Z'"),
        1);
}
END_TEST

#define GOOD "{\"kind\": \"a\"}\n"

static const struct {
    const char *text;
    const char *reason;
} bad_files[] = {
    {GOOD GOOD "{\"kind\": \"A\"}\n" GOOD, "line 3: kind 'A': must match"},
    {GOOD "\n" GOOD, "line 2: empty; allowed: one JSON object per line"},
    {GOOD "\r\n", "line 2: empty"},
    {GOOD "{\"kind\": \"a\"", "line 2: not JSON"},
    {GOOD "[]", "line 2: allowed: one JSON object per line"},
    {"{\"args\": {}}", "line 1: kind: allowed: a text, it must be given"},
    {"{\"kind\": \"a\", \"kind\": \"b\"}", "line 1: duplicate object key"},
    {"{\"kind\": \"a\", \"args\": {\"x\": [{\"y\": 1, \"y\": 1}]}}", "duplicate object key"},
    {"{\"kind\": \"a\", \"prio\": 1}", "line 1: prio: unknown key; known: kind, args"},
    {"{\"kind\": \"a\", \"priority\": 10}", "line 1: priority: 10 is not allowed; allowed: 0 to 9"},
    {"{\"kind\": \"a\", \"priority\": \"1\"}", "line 1: priority: "},
    {"{\"kind\": \"a\", \"priority\": 1.0}", "line 1: priority: '1.0' is not a decimal number"},
    {"{\"kind\": \"a\", \"queue\": 5}", "line 1: queue: allowed: a text"},
    {"{\"kind\": \"a\", \"delay\": 1.5}", "line 1: delay: allowed: a text such as \"10s\""},
    {"{\"kind\": \"a\", \"delay\": \"-1s\"}", "line 1: delay: "},
    {"{\"kind\": \"a\", \"delay\": 1, \"at\": \"2026-01-31T08:00:00Z\"}", "one of at, delay and"},
    {GOOD "{\"kind\": \"a\", \"unique_key\": \"\"}", "line 2: unique_key: must have 1 to 512"},
    {GOOD "{\"kind\": \"a\", \"unique_key\": \"u\"}\n{\"kind\": \"a\", \"unique_states\": \"x\"}",
     "line 3: unique_states: needs unique_key"},
    {GOOD "{\"kind\": \"a\", \"share_key\": 1}", "line 2: share_key: allowed: a text"},
    {"{\"kind\": \"a\", \"at\": \"now\"}", "line 1: at: 'now' is not allowed"},
    {GOOD "{\"kind\": \"a\", \"at\": \"2026-02-30T08:00:00Z\"}", "line 2: "},
    {"{\"kind\": \"a\", \"timeout\": \"400d\"}", "line 1: timeout: '400d' is not allowed"},
    {"{\"kind\": \"a\", \"tags\": \"x\"}", "line 1: tags: allowed: an array of texts"},
    {"{\"kind\": \"a\", \"args\": \"\\ud800\"}", "line 1: not JSON"},
    {"{\"kind\": \"a\", \"metadata\": [1]}", "line 1: metadata: allowed: a JSON object"},
    {GOOD "{\"kind\": \"a\", \"at\": \"2285-12-31T23:00:00-02:00\"}",
     "line 2: scheduled_at: from the year 1 to before 2286"},
    {GOOD "{\"kind\": \"a\", \"at\": 5}", "line 2: at: allowed: a text"},
};

START_TEST(a_bad_line_is_named_and_nothing_is_stored)
{
    for (size_t i = 0; i < ARRAY_COUNT(bad_files); i++) {
        const char *text = bad_files[i].text;
        const char *path = ctl_write_file("jobs", text, strlen(text));
        ck_assert_int_eq(ctl_exit("enqueue", "--file", path), 2);
        assert_says(bad_files[i].reason);
        assert_says("nothing was enqueued");
    }
    ck_assert_int_eq(sql_number(db, JOBS), 0);
}
END_TEST

/* Plain rows around them keep their order; one statement takes a thousand rows. */
START_TEST(lines_take_all_that_enqueue_takes)
{
    static const char taken[] = "{\"kind\": \"a\", \"unique_key\": \"u1\"}\n";
    static const char unknown[] = "{\"kind\": \"a\", \"after\": [99999]}\n";
    autobuf struct buf lines = BUF_INIT(8 << 20);
    struct err err = {0};
    ck_assert_int_eq(buf_append_text(&lines, "{\"kind\": \"first\"}\n", &err), STATUS_OK);
    for (int i = 0; i < 2500; i++) {
        ck_assert_int_eq(
            buf_printf(&lines, &err, "{\"kind\": \"a\", \"unique_key\": \"u%d\"}\n", i), STATUS_OK);
    }
    ck_assert_int_eq(buf_append_text(&lines,
                                     "{\"kind\": \"last\", \"after\": [1], \"if_dead\": \"run\", "
                                     "\"exclusive_key\": \"e\", \"second_key\": \"f\"}\n",
                                     &err),
                     STATUS_OK);
    sql_run(db, "SELECT claimd.enqueue('before')");
    ck_assert_int_eq(
        ctl_exit("enqueue", "--file", ctl_write_file("jobs", buf_at(&lines), lines.len)), 0);
    assert_says("enqueued 2502");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_key k JOIN claimd.job j "
                                    "ON j.id = k.job_id AND j.unique_key = k.key"),
                     2500);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.jobs WHERE kind = 'last' AND state = "
                       "'waiting' AND (exclusive_key, second_key) = ('e', 'f')"),
        1);
    ck_assert_int_eq(ctl_exit("enqueue", "--file", ctl_write_file("jobs", taken, sizeof taken - 1)),
                     5);
    assert_says("line 1: unique_key: job ");
    ck_assert_int_eq(
        ctl_exit("enqueue", "--file", ctl_write_file("jobs", unknown, sizeof unknown - 1)), 5);
    assert_says("line 1: after: job 99999 not found");
    ck_assert_int_eq(sql_number(db, JOBS), 2503);
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--after", "1,2", "--if-dead", "hold"), 0);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_after"), 3);
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--after", "x"), 2);
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--if-dead", "run"), 2);
}
END_TEST

START_TEST(what_is_too_long_is_named_by_its_key)
{
    static char ids[80000]; /* 40,000 ids */
    autobuf struct buf lines = BUF_INIT(1 << 20);
    struct err err = {0};
    ck_assert_int_eq(
        buf_printf(&lines, &err, GOOD "{\"kind\": \"a\", \"tags\": [\"%09000d\"]}\n", 0),
        STATUS_OK);
    const char *path = ctl_write_file("jobs", buf_at(&lines), lines.len);
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path), 2);
    assert_says("line 2: tags: at most 8192 bytes");
    for (size_t i = 0; i + 1 < sizeof ids; i++) {
        ids[i] = i % 2 == 0 ? '1' : ',';
    }
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--after", ids), 2);
    assert_says("after: must be 1 to 10000 ids");
    ck_assert_int_eq(sql_number(db, JOBS), 0);
}
END_TEST

START_TEST(the_help_names_each_key_of_a_line)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    static const char text[] = "{\"kind\": \"a\", \"none\": 1}";
    char known[1024];
    ck_assert_int_eq(ctl_exit("enqueue", "--file", ctl_write_file("jobs", text, strlen(text))), 2);
    assert_says("known: kind, ");
    (void)snprintf(known, sizeof known, "%s", strstr(ctl_text(), "known: ") + strlen("known: "));
    ck_assert_int_eq(ctl_exit("enqueue", "--help"), 0);
    for (const char *key = known; key != NULL;) {
        char quoted[64];
        size_t len = strspn(key, letters);
        (void)snprintf(quoted, sizeof quoted, "\"%.*s\"", (int)len, key);
        assert_says(quoted);
        key = strncmp(key + len, ", ", 2) == 0 ? key + len + 2 : NULL;
    }
}
END_TEST

/* The first lines have already been sent to the server when the last one turns out to be bad. */
START_TEST(a_bad_last_line_of_many_undoes_all)
{
    autobuf struct buf lines = BUF_INIT(8 << 20);
    struct err err = {0};
    for (int i = 0; i < 40000; i++) {
        ck_assert_int_eq(buf_append_text(&lines, "{\"kind\": \"noop\"}\n", &err), STATUS_OK);
    }
    ck_assert_int_eq(buf_append_text(&lines, "{\"kind\": 1}\n", &err), STATUS_OK);
    const char *path = ctl_write_file("jobs", buf_at(&lines), lines.len);
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path), 2);
    assert_says("line 40001: kind");
    ck_assert_int_eq(sql_number(db, JOBS), 0);
}
END_TEST

static void put_large_line(struct buf *out, size_t args_bytes)
{
    struct err err = {0};
    ck_assert_int_eq(buf_append_text(out, "{\"kind\": \"a\", \"args\": \"", &err), STATUS_OK);
    ck_assert_int_eq(buf_reserve(out, args_bytes, &err), STATUS_OK);
    memset(buf_at(out) + out->len, 'x', args_bytes - 2);
    buf_grew(out, args_bytes - 2);
    ck_assert_int_eq(buf_append_text(out, "\"}\n", &err), STATUS_OK);
}

START_TEST(args_of_one_mebibyte_are_taken_and_one_byte_more_is_not)
{
    autobuf struct buf lines = BUF_INIT(8 << 20);
    put_large_line(&lines, 1 << 20);
    const char *path = ctl_write_file("jobs", buf_at(&lines), lines.len);
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path), 0);
    put_large_line(&lines, (1 << 20) + 1);
    path = ctl_write_file("jobs", buf_at(&lines), lines.len);
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path), 2);
    assert_says("line 2: args: 1048577 bytes of JSON text; allowed: at most 1048576");
    buf_reset(&lines);
    put_large_line(&lines, 3 << 20);
    path = ctl_write_file("jobs", buf_at(&lines), lines.len);
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path), 2);
    assert_says("line 1: longer than 2097152 bytes");
    ck_assert_int_eq(sql_number(db, JOBS), 1);
}
END_TEST

/* One argument of a program may have at most 128 KiB. */
START_TEST(args_come_from_a_file_too)
{
    const size_t most = (size_t)1 << 20;
    char given[SERVER_PATH_MAX + 80];
    autobuf struct buf text = BUF_INIT(8 << 20);
    ck_assert_int_eq(buf_reserve(&text, 5 * most, NULL), STATUS_OK);
    char *json = buf_at(&text);
    memset(json, 'x', 5 * most);
    json[0] = json[most - 1] = '"';
    json[most] = '\n';
    (void)snprintf(given, sizeof given, "@%s", ctl_write_file("args", json, most + 1));
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--args", given), 0);
    ck_assert_int_eq(sql_number(db, "SELECT octet_length(args::text)::text FROM claimd.job"),
                     (int64_t)most);
    json[most - 1] = 'x';
    json[most] = '"';
    (void)ctl_write_file("args", json, most + 1);
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--args", given), 2);
    assert_says("args: 1048577 bytes of JSON text; allowed: at most 1048576");
    (void)ctl_write_file("args", json, 5 * most);
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--args", given), 2);
    assert_says("longer than 1048576 bytes");
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--args", "@/nowhere/args"), 2);
    assert_says("claimctl: --args: cannot read '/nowhere/args': No such file or directory");
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--args", "@-"), 2); /* standard input is /dev/null */
    assert_says("--args: standard input: is empty");
    ck_assert_int_eq(sql_number(db, JOBS), 1);
}
END_TEST

START_TEST(a_duration_without_a_unit_is_seconds)
{
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--delay", "3600", "--timeout", "90"), 0);
    ck_assert_int_eq(
        sql_number(db,
                   "SELECT count(*)::text FROM claimd.job WHERE timeout = '90 s' AND scheduled_at "
                   "BETWEEN now() + interval '59 min' AND now() + interval '61 min'"),
        1);
}
END_TEST

START_TEST(an_empty_file_is_no_jobs)
{
    ck_assert_int_eq(ctl_exit("enqueue", "--file", ctl_write_file("jobs", "", 0)), 0);
    ck_assert_str_eq(ctl_text(), "enqueued 0\n");
    ck_assert_int_eq(ctl_exit("enqueue", "--file", "-"), 0); /* standard input is /dev/null */
    ck_assert_str_eq(ctl_text(), "enqueued 0\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl");
    TCase *empty = tcase_create("empty database");
    tcase_add_checked_fixture(empty, ctl_setup_empty, ctl_teardown);
    tcase_set_timeout(empty, 30);
    tcase_add_test(empty, the_schema_goes_up_down_and_up);
    tcase_add_test(empty, a_database_without_the_schema_is_refused_with_the_migration);
    suite_add_tcase(suite, empty);
    TCase *tests = tcase_create("enqueue");
    tcase_add_checked_fixture(tests, ctl_setup, ctl_teardown);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, B40_an_upgrade_is_finished_once_no_older_program_is_left);
    tcase_add_test(tests, a_newer_schema_is_refused);
    tcase_add_test(tests, postgresql_away_is_exit_3_with_the_reason);
    tcase_add_test(tests, a_unique_job_is_made_once_and_shows_its_key);
    tcase_add_test(tests, one_job_prints_its_id_and_is_stored_as_said);
    tcase_add_test(tests, B20_a_job_may_have_an_exclusive_key_with_and_without_a_unique_one);
    tcase_add_test(tests, a_kind_or_queue_that_nobody_serves_is_warned_of_and_stored);
    tcase_add_test(tests, strict_refuses_what_nobody_serves_before_anything_is_stored);
    tcase_add_test(tests, bad_input_is_exit_2_with_place_and_allowed_form);
    tcase_add_test(tests, an_answer_that_never_came_is_not_called_a_failure);
    tcase_add_test(tests, ten_thousand_lines_are_one_transaction);
    tcase_add_test(tests, a_line_says_all_that_an_option_can);
    tcase_add_test(tests, a_bad_line_is_named_and_nothing_is_stored);
    tcase_add_test(tests, what_is_too_long_is_named_by_its_key);
    tcase_add_test(tests, the_help_names_each_key_of_a_line);
    tcase_add_test(tests, a_bad_last_line_of_many_undoes_all);
    tcase_add_test(tests, lines_take_all_that_enqueue_takes);
    tcase_add_test(tests, args_of_one_mebibyte_are_taken_and_one_byte_more_is_not);
    tcase_add_test(tests, args_come_from_a_file_too);
    tcase_add_test(tests, a_duration_without_a_unit_is_seconds);
    tcase_add_test(tests, an_empty_file_is_no_jobs);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
