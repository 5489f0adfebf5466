/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl jobs list: filters, paging, columns, and that large tables are read in bounded steps. */
#include "ctl_fixture.h"
#include "sql/queries.h"

#include <stdio.h>

#define WORKER "00000000-0000-0000-0000-0000000000aa"

/* Jobs 1 to 8, each with a property of its own. */
static const char *const jobs[] = {
    "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, token_prefix, "
    "version, queues) VALUES ('" WORKER "', now(), 1, 1, 'host-1', '/s', 'p', '1', '{default}')",
    "INSERT INTO claimd.job (kind, queue, tags, scheduled_at, args) VALUES "
    "('a', 'q1', '{x,\"y,z\"}', now(), '{\"n\": 1.10}'),"             /* 1 available */
    "('b', 'q2', '{x}', now() + interval '1 h', '{}'),"               /* 2 scheduled */
    "('c', 'q3', NULL, now() + interval '1 h', '{}'),"                /* 3 retryable */
    "('d', 'q1', NULL, now(), '{}'),"                                 /* 4 running on host-1 */
    "('e', 'q1', NULL, now(), '{}'), ('f', 'q1', NULL, now(), '{}')," /* 5, 6 completed */
    "('g', 'q1', NULL, now(), '{}'), ('h', 'q1', NULL, now(), '{}')", /* 7 discarded, 8 cancelled */
    "UPDATE claimd.job SET attempt = 1 WHERE id = 3",
    "INSERT INTO claimd.job_attempt (job_id, fence, attempt, worker_id, started_at, outcome, "
    "error) "
    "VALUES (3, 1, 1, '" WORKER "', now(), 'failed', 'old'), "
    "(3, 2, 1, '" WORKER "', now(), 'failed', 'Disk FULL')",
    "UPDATE claimd.job SET state = 'running', worker_id = '" WORKER "' WHERE id = 4",
    "INSERT INTO claimd.job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, "
    "finalized_at, worker_id, attempt, crashes, generation, priority, share, state, queue, kind, "
    "args, error) SELECT id, id, created_at, scheduled_at, ready_at, created_at, "
    "clock_timestamp() + (id - 8) * interval '1 microsecond', worker_id, 1, 0, 0, 4, 0, "
    "CASE WHEN id < 7 THEN 'completed' WHEN id = 7 THEN 'discarded' ELSE 'cancelled' END, queue, "
    "kind, args, CASE WHEN id = 7 THEN 'no disk' END FROM claimd.job WHERE id >= 5",
    "DELETE FROM claimd.job WHERE id >= 5",
    ("UPDATE claimd.job SET metadata = '{\"customer\": 7, \"by\": {\"name\": \"ada\"}}' WHERE id = "
     "2"),
    "UPDATE claimd.job_history SET metadata = '{\"customer\": 7}' WHERE id = 6",
    "UPDATE claimd.job SET share_key = 'map:nightly', share = claimd.share_of('map:nightly') WHERE "
    "id = 1",
    "UPDATE claimd.job_history SET share_key = 'map:nightly' WHERE id = 8",
    "INSERT INTO claimd.batch (name) VALUES ('')",
    "INSERT INTO claimd.batch_job (batch_id, job_id, state) VALUES (1, 2, NULL), (1, 4, NULL), "
    "(1, 7, 'discarded')",
};

static void add_jobs(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(jobs); i++) {
        sql_run(db, "%s", jobs[i]);
    }
}

/* Returns the ids in the JSON output, "8,7,6". */
static const char *ids(void)
{
    static char text[256];
    size_t at = 0;
    size_t i = 0;
    json_t *row = NULL;
    json_t *root = ctl_json();
    text[0] = '\0';
    json_array_foreach(json_object_get(root, "jobs"), i, row)
    {
        long long id = json_integer_value(json_object_get(row, "id"));
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", i > 0 ? "," : "", id);
    }
    json_decref(root);
    return text;
}

static const struct {
    const char *options[6];
    const char *ids;
} filters[] = {
    {{NULL}, "8,7,6,5,4,3,2,1"},
    {{"--state", "available"}, "1"},
    {{"--state", "scheduled,retryable"}, "3,2"},
    {{"--state", "running", "--state", "discarded"}, "7,4"},
    {{"--state", "completed,cancelled,discarded"}, "8,7,6,5"},
    {{"--kind", "a,h"}, "8,1"},
    {{"--queue", "q2", "--queue", "q3"}, "3,2"},
    {{"--tag", "x"}, "2,1"},
    {{"--tag", "x", "--tag", "y,z"}, "1"},
    {{"--metadata", "{\"customer\": 7}"}, "6,2"},
    {{"--metadata", "{\"by\": {\"name\": \"ada\"}}"}, "2"},
    {{"--metadata", "{\"customer\": 8}"}, ""},
    {{"--worker", "host-1"}, "4"},
    {{"--worker", WORKER}, "4"},
    {{"--worker", "host-2"}, ""},
    {{"--batch", "1"}, "7,4,2"},
    {{"--batch", "1", "--state", "discarded"}, "7"},
    {{"--map", "nightly"}, "8,1"},
    {{"--map", "night"}, ""},
    {{"--error", "disk"}, "7,3"},
    {{"--error", "old"}, ""}, /* an error before the last one */
    {{"--error", "disk", "--state", "retryable"}, "3"},
    {{"--since", "1h"}, "8,7,6,5,4,3,2,1"},
    {{"--since", "2126-01-31T08:00:00Z"}, ""},
    {{"--since", "2h", "--until", "2126-01-31T08:00:00Z"}, "8,7,6,5,4,3,2,1"},
    {{"--since", "1h", "--older-than", "1h"}, ""},
    {{"--until", "2001-01-31T08:00:00Z"}, ""},
    {{"--older-than", "1h"}, ""},
    {{"--older-than", "0"}, "8,7,6,5,4,3,2,1"},
    {{"--after", "3"}, "2,1"},
    {{"--limit", "2", "--state", "completed,running"}, "6,5"},
};

START_TEST(each_filter_finds_what_it_says)
{
    add_jobs();
    for (size_t i = 0; i < ARRAY_COUNT(filters); i++) {
        const char *words[10] = {"jobs", "list", "--json"};
        for (size_t k = 0; k < 6 && filters[i].options[k] != NULL; k++) {
            words[3 + k] = filters[i].options[k];
        }
        ck_assert_msg(ctl_run_words(words) == 0, "%zu: %s", i, ctl_text());
        ck_assert_msg(strcmp(ids(), filters[i].ids) == 0, "%s %s: %s, not %s", words[3], words[4],
                      ids(), filters[i].ids);
    }
}
END_TEST

START_TEST(pages_join_without_a_gap_or_a_double)
{
    char after[24] = "9000000000000000000";
    char all[256] = "";
    add_jobs();
    for (int page = 0; page < 3; page++) {
        ck_assert_int_eq(ctl_exit("jobs", "list", "--limit", "3", "--json", "--after", after), 0);
        (void)snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", page > 0 ? "," : "",
                       ids());
        json_t *root = ctl_json();
        json_t *next = json_object_get(json_object_get(root, "page"), "next_after");
        ck_assert_int_eq(json_is_null(next), page == 2);
        (void)snprintf(after, sizeof after, "%lld", (long long)json_integer_value(next));
        json_decref(root);
    }
    ck_assert_str_eq(all, "8,7,6,5,4,3,2,1");
}
END_TEST

START_TEST(running_jobs_are_listed_from_the_oldest_up)
{
    add_jobs();
    sql_run(db, "UPDATE claimd.job SET state = 'running', worker_id = '" WORKER "' WHERE id < 3");
    ck_assert_int_eq(ctl_exit("jobs", "list", "--state", "running", "--limit", "2", "--json"), 0);
    ck_assert_str_eq(ids(), "1,2");
    assert_says("\"next_after\": 2}");
    ck_assert_int_eq(ctl_exit("jobs", "list", "--state", "running", "--after", "2", "--json"), 0);
    ck_assert_str_eq(ids(), "4");
    assert_says("\"next_after\": null}");
}
END_TEST

START_TEST(columns_are_those_asked_for_in_their_order)
{
    add_jobs();
    ck_assert_int_eq(ctl_exit("jobs", "list", "--columns", "state,id,args", "--after", "2"), 0);
    ck_assert_str_eq(ctl_text(), "STATE     ID ARGS\navailable  1 {\"n\": 1.10}\n");
    ck_assert_int_eq(ctl_exit("jobs", "list", "--columns", "worker,error,tags", "--json"), 0);
    assert_says("{\"worker\": \"host-1\", \"error\": null, \"tags\": null}");
    assert_says("{\"worker\": null, \"error\": \"Disk FULL\", \"tags\": null}");
}
END_TEST

START_TEST(what_was_cancelled_before_it_was_due_is_not_ready_in_an_hour)
{
    add_jobs();
    sql_run(db, "UPDATE claimd.job_history SET ready_at = now() + interval '1 h' WHERE id = 8");
    ck_assert_int_eq(ctl_exit("jobs", "list", "--columns", "id,ready_at", "--after", "9", "--limit",
                              "2", "--json"),
                     0);
    json_t *root = ctl_json();
    const json_t *listed = json_object_get(root, "jobs");
    ck_assert(json_is_null(json_object_get(json_array_get(listed, 0), "ready_at")));
    ck_assert(json_is_string(json_object_get(json_array_get(listed, 1), "ready_at")));
    json_decref(root);
}
END_TEST

START_TEST(help_names_every_column)
{
    static const char all[] = "id,kind,queue,state,priority,attempt,created_at,ready_at,"
                              "attempted_at,finalized_at,worker,worker_id,tags,args,metadata,"
                              "result,error";
    ck_assert_int_eq(ctl_exit("jobs", "list", "--columns", all, "--json"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "list", "--help"), 0);
    for (const char *at = all; *at != '\0';) {
        char name[32];
        size_t len = strcspn(at, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)len, at);
        assert_says(name);
        at += len + (at[len] == ',');
    }
}
END_TEST

static const struct {
    const char *options[4];
    const char *reason;
} wrong[] = {
    {{"--columns", "id,colour"}, "--columns: unknown column 'colour'"},
    {{"--columns", ""}, "--columns: unknown column ''"},
    {{"--columns", "id,id"}, "--columns: 'id' is given twice"},
    {{"--state", "running,done"}, "--state: 'done' is not allowed"},
    {{"--state", ""}, "--state: '' is not allowed"},
    {{"--state", "running,"}, "--state: '' is not allowed; allowed: waiting, scheduled"},
    {{"--kind", "a,"}, "--kind: kind '': must match ^[a-z]"},
    {{"--queue", "a,,b"}, "--queue: queue '': must match ^[a-z]"},
    {{"--columns", "id,"}, "--columns: unknown column ''"},
    {{"--tag", "", "--tag", "x"}, "--tag: '' is not allowed; allowed: a text"},
    {{"--since", "1h", "--until", "2h"}, "--since: '1h' is later than --until '2h'"},
    {{"--since", "2m", "--older-than", "1d"}, "--since: '2m' is later than --older-than '1d'"},
    {{"--since", "2026-01-31T08:00:00Z", "--until", "2026-01-31T08:59:59+01:00"},
     "--since: '2026-01-31T08:00:00Z' is later than"},
    {{"--since", "yesterday"}, "--since: 'yesterday' is not allowed; allowed: an age such as 2h"},
    {{"--older-than", "2026-01-31T08:00:00Z"}, "--older-than"},
    {{"--until", "1h", "--older-than", "1h"}, "either --until or --older-than"},
    {{"--after", "0"}, "--after: 0 is not allowed; allowed: 1 to "},
};

START_TEST(a_wrong_filter_is_exit_2_even_without_a_server)
{
    (void)snprintf(ctl.conninfo, sizeof ctl.conninfo, "host=/nowhere");
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        const char *words[8] = {"jobs", "list"};
        for (size_t k = 0; k < 4 && wrong[i].options[k] != NULL; k++) {
            words[2 + k] = wrong[i].options[k];
        }
        ck_assert_int_eq(ctl_run_words(words), 2);
        assert_says(wrong[i].reason);
    }
}
END_TEST

#define TAGS_OF_KIND_A "\"kind\": \"a\", \"tags\": [\"x\", \"\"]"
#define NO_EMPTY_TAG "tags: allowed: an array of texts that are not empty"

static const char *file_of(const char *text)
{
    return ctl_write_file("tags", text, strlen(text));
}

START_TEST(a_tag_that_no_filter_can_find_is_given_to_no_job)
{
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--tag", "x", "--tag", ""), 2);
    assert_says("--tag: '' is not allowed; allowed: a text that is not empty");
    ck_assert_int_eq(ctl_exit("enqueue", "--file", file_of("{" TAGS_OF_KIND_A "}\n")), 2);
    assert_says("line 1: " NO_EMPTY_TAG);
    ck_assert_int_eq(
        ctl_exit("enqueue", "--file", file_of("{" TAGS_OF_KIND_A ", \"unique_key\": \"u\"}\n")), 2);
    assert_says("line 1: " NO_EMPTY_TAG);
    ck_assert_int_eq(ctl_exit("schedules", "set", "s", "a", "@daily", "--tag", ""), 2);
    assert_says("--tag: '' is not allowed; allowed: a text that is not empty");
    ck_assert_int_eq(
        ctl_exit("schedules", "apply",
                 file_of("{\"schedules\": [{\"name\": \"s\", \"cron\": \"@daily\", " TAGS_OF_KIND_A
                         "}]}")),
        2);
    assert_says("schedules[0] 's': tags: must be an array of texts that are not empty");
    ck_assert_int_eq(ctl_exit("batches", "open", "--follow-up", "{" TAGS_OF_KIND_A "}"), 2);
    assert_says("follow_up.tags: must be a list of texts, none of them empty");
    ck_assert_int_eq(sql_number(db,
                                "SELECT ((SELECT count(*) FROM claimd.job) + (SELECT count(*) FROM "
                                "claimd.schedule) + (SELECT count(*) FROM claimd.batch))::text"),
                     0);
}
END_TEST

START_TEST(an_age_and_a_time_are_compared_by_the_servers_clock)
{
    ck_assert_int_eq(ctl_exit("jobs", "list", "--since", "2126-01-31T08:00:00Z", "--until", "1h"),
                     2);
    assert_says("--since: '2126-01-31T08:00:00Z' is later than --until '1h'; allowed: an earlier");
}
END_TEST

START_TEST(a_batch_that_is_not_there_is_exit_4_for_every_command_that_chooses_by_it)
{
    static const char *const verbs[] = {"list", "watch", "cancel", "retry", "delete"};
    add_jobs();
    for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
        ck_assert_int_eq(ctl_exit("jobs", verbs[i], "--batch", "2"), 4);
        assert_says("batch 2 not found");
    }
}
END_TEST

/* ---- large tables ---- */

/* Checks the plan of one of our statements, whose parameters the caller has filled in. */
static void assert_no_seq_scan(struct sql *pg, const char *execute, const char *relation)
{
    sql_run(pg,
            "CREATE FUNCTION pg_temp.plan() RETURNS SETOF text LANGUAGE plpgsql AS $f$ BEGIN "
            "RETURN QUERY EXECUTE 'EXPLAIN %s'; END $f$",
            execute);
    int64_t scans = sql_number(
        pg, "SELECT count(*)::text FROM pg_temp.plan() AS p WHERE p ~ 'Seq Scan on %s'", relation);
    if (scans > 0) {
        ck_abort_msg("%s", sql_text(pg, "SELECT string_agg(p, E'\\n') FROM pg_temp.plan() p"));
    }
}

START_TEST(a_range_of_ids_is_read_by_index_whatever_the_filter)
{
    struct sql *pg = sql_open(world.conninfo);
    sql_run(
        pg,
        "INSERT INTO claimd.job (kind, queue) SELECT 'a', 'bulk' FROM generate_series(1, 200000)");
    sql_run(pg, "ANALYZE claimd.job");
    sql_run(pg,
            "PREPARE list(bool, bool, int8, int8, timestamptz, timestamptz, text[], text[], "
            "text[], text[], text, text, int4, text[], text, int8, text, text) AS %s",
            SQL_ADMIN_JOBS_LIST.sql);
    assert_no_seq_scan(
        pg,
        "EXECUTE list(true, true, 1000, 20999, NULL, NULL, NULL, ''{nosuch}'', NULL, "
        "NULL, NULL, NULL, 50, ''{id}'', NULL, NULL, NULL, NULL)",
        "job");
    sql_close(pg);
    ck_assert_int_eq(ctl_exit("enqueue", "rare"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "list", "--kind", "rare", "--json"), 0);
    ck_assert_str_eq(ids(), "200001");
    ck_assert_int_eq(ctl_exit("jobs", "list", "--kind", "rare", "--json", "--after", "200001"), 0);
    ck_assert_str_eq(ids(), "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl list");
    TCase *tests = tcase_create("list");
    tcase_add_checked_fixture(tests, ctl_setup, ctl_teardown);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, each_filter_finds_what_it_says);
    tcase_add_test(tests, pages_join_without_a_gap_or_a_double);
    tcase_add_test(tests, running_jobs_are_listed_from_the_oldest_up);
    tcase_add_test(tests, columns_are_those_asked_for_in_their_order);
    tcase_add_test(tests, what_was_cancelled_before_it_was_due_is_not_ready_in_an_hour);
    tcase_add_test(tests, help_names_every_column);
    tcase_add_test(tests, a_wrong_filter_is_exit_2_even_without_a_server);
    tcase_add_test(tests, a_tag_that_no_filter_can_find_is_given_to_no_job);
    tcase_add_test(tests, an_age_and_a_time_are_compared_by_the_servers_clock);
    tcase_add_test(tests, a_batch_that_is_not_there_is_exit_4_for_every_command_that_chooses_by_it);
    tcase_add_test(tests, a_range_of_ids_is_read_by_index_whatever_the_filter);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
