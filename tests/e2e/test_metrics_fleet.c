/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the counters of real daemons with PostgreSQL and with docs/metrics.md, for jobs that end
 * in every way, a killed worker, a late result, and a kind without a worker. All tests check the
 * texts that one scenario left. */
#include "base/buf.h"
#include "cluster/scrape.h"
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>

#define TEXT_MAX ((size_t)8 << 20)
#define NOOPS 500
#define DOCS_MAX 100

static struct fleet f;
static char worker_address[128];
static char leader_address[128];
static struct buf worker_text = BUF_INIT(TEXT_MAX);
static struct buf leader_text = BUF_INIT(TEXT_MAX);
static int fallen; /* counters that decreased between two scrapes */
static double dead_worker_busy;
static bool has_promtool;

/* ---- scrapes ---- */

static const char *family_type(const char *text, const struct scrape_sample *s)
{
    char line[256];
    (void)snprintf(line, sizeof line, "# TYPE %.*s ", (int)s->name_len, s->name);
    const char *found = strstr(text, line);
    /* A name with a suffix has no TYPE line of its own. */
    return found == NULL ? "histogram" : found + strlen(line);
}

static bool find_same(const char *text, const struct scrape_sample *wanted, double *ret)
{
    struct scrape_sample s;
    while (scrape_next(&text, &s)) {
        if (s.name_len == wanted->name_len && s.labels_len == wanted->labels_len &&
            memcmp(s.name, wanted->name, s.name_len) == 0 &&
            memcmp(s.labels, wanted->labels, s.labels_len) == 0) {
            *ret = s.value;
            return true;
        }
    }
    return false;
}

static int count_fallen(const char *before, const char *after)
{
    int count = 0;
    struct scrape_sample s;
    for (const char *at = before; scrape_next(&at, &s);) {
        double now = 0;
        bool may_fall = strncmp(family_type(before, &s), "gauge", 5) == 0;
        if (!may_fall && (!find_same(after, &s, &now) || now < s.value)) {
            (void)fprintf(stderr, "%.*s{%.*s}: %g, then %g\n", (int)s.name_len, s.name,
                          (int)s.labels_len, s.labels, s.value, now);
            count++;
        }
    }
    return count;
}

static void scrape(const char *address, struct buf *text)
{
    struct err err = {0};
    autobuf struct buf now = BUF_INIT(TEXT_MAX);
    enum status st = scrape_get(address, "/metrics", SOON_US, &now, &err);
    ck_assert_msg(st == STATUS_OK, "%s: %s", address, err.msg);
    fallen += text->len > 0 ? count_fallen(buf_at(text), buf_at(&now)) : 0;
    buf_reset(text);
    ck_assert_int_eq(buf_append_text(text, buf_at(&now), NULL), STATUS_OK);
}

static void scrape_both(void)
{
    scrape(worker_address, &worker_text);
    scrape(leader_address, &leader_text);
}

static double worker_sum(const char *name, const char *label)
{
    return scrape_sum(buf_at(&worker_text), name, label);
}

static double leader_sum(const char *name, const char *label)
{
    return scrape_sum(buf_at(&leader_text), name, label);
}

/* ---- the scenario ---- */

static bool is_running(int64_t id)
{
    return sql_number(f.sql,
                      "SELECT count(*) FROM claimd.job WHERE id = %lld AND state = 'running'",
                      (long long)id) == 1;
}

static void kill_a_worker_that_works(void)
{
    char address[128];
    autobuf struct buf text = BUF_INIT(TEXT_MAX);
    fleet_start_worker(&f, 1, NULL);
    fleet_http(&f, "claimd-worker", 1, address, sizeof address);
    int64_t id = fleet_enqueue(&f, "sleep", "{\"ms\": 6000}", 1);
    ck_assert(WAIT_UNTIL(is_running(id), SOON_US));
    ck_assert(
        WAIT_UNTIL((scrape(address, &text),
                    dead_worker_busy = scrape_sum(buf_at(&text), "claimd_worker_slots_busy", NULL),
                    dead_worker_busy > 0),
                   SOON_US));
    fleet_signal(f.workers[1], SIGKILL);
    (void)fleet_wait_end(&f, &f.workers[1]);
}

/* Makes the worker believe that the job was claimed by another one in the meantime. */
static void make_an_end_stale(void)
{
    int64_t id = fleet_enqueue(&f, "sleep", "{\"ms\": 1500}", 1);
    ck_assert(WAIT_UNTIL(is_running(id), SOON_US));
    sql_run(f.sql, "UPDATE claimd.job SET fence = nextval('claimd.fence') WHERE id = %lld",
            (long long)id);
}

static void add_paused_map(void)
{
    sql_run(f.sql,
            "SELECT claimd.map_load(m, NULL, '{a}', ARRAY['{}'], true), claimd.map_pause('m', true)"
            " FROM claimd.map_begin('m', 'SELECT', 'id', 'nobody_serves', NULL, 'default', 1, NULL,"
            " NULL) AS m");
    sql_run(f.sql, "UPDATE claimd.job SET scheduled_at = claimd.job_waits() WHERE unique_key = "
                   "'map:m:a'");
}

static int64_t completed_rows(void)
{
    return sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE state = 'completed'");
}

/* True when the texts, each at most a second old, show the final state. */
static bool is_settled(void)
{
    scrape_both();
    return worker_sum("claimd_jobs_finished_total", "outcome=\"completed\"") >= NOOPS + 2 &&
           worker_sum("claimd_worker_jobs", NULL) == 0 &&
           leader_sum("claimd_jobs", "state=\"retryable\"") == 3 &&
           leader_sum("claimd_jobs", "state=\"available\"") == 2 &&
           leader_sum("claimd_jobs", "state=\"running\"") == 0;
}

static void tell_the_story(void)
{
    static const struct fleet_options options = {.slots = 2};
    fleet_start(&f, &options);
    fleet_start_scheduler(&f, 0);
    fleet_http(&f, "claimd-scheduler", 0, leader_address, sizeof leader_address);
    kill_a_worker_that_works();
    fleet_start_worker(&f, 0, NULL);
    fleet_http(&f, "claimd-worker", 0, worker_address, sizeof worker_address);
    make_an_end_stale();
    (void)fleet_enqueue(&f, "noop", "{}", NOOPS);
    (void)fleet_enqueue(&f, "fail", "{}", 4);
    (void)fleet_enqueue(&f, "crash_segv", "{}", 3);
    (void)fleet_enqueue(&f, "bad_result_nul", "{}", 1);
    (void)fleet_enqueue(&f, "nobody_serves", "{}", 2);
    add_paused_map();
    /* They must wait for longer than this takes, however busy the machine is. */
    ck_assert(
        WAIT_UNTIL((scrape_both(), sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE "
                                                     "attempt > 0 AND state = 'available'") >= 3),
                   SOON_US));
    sql_run(f.sql, "UPDATE claimd.job SET scheduled_at = now() + interval '1 h' WHERE attempt > 0 "
                   "AND kind = 'crash_segv'");
    ck_assert(WAIT_UNTIL((scrape_both(), completed_rows() == NOOPS + 2), SOON_US));
    bool is_told = WAIT_UNTIL(is_settled(), SOON_US);
    ck_assert_msg(is_told, "never settled:\n%s\n%s", buf_at(&worker_text), buf_at(&leader_text));
    int code = -1;
    const char *argv[] = {"sh", "-c", "command -v promtool", NULL};
    autobuf struct buf out = BUF_INIT(TEXT_MAX);
    has_promtool = program_run(argv, NULL, SOON_US, &out, &code, NULL) == STATUS_OK && code == 0;
}

static void end(void)
{
    fleet_stop(&f);
    buf_release(&worker_text);
    buf_release(&leader_text);
}

/* ---- numbers ---- */

#define ASSERT_WORKER(name, label, expected)                                                 \
    ck_assert_msg(worker_sum((name), (label)) == (double)(expected), "%s{%s} is %g, not %g", \
                  (name), (label) == NULL ? "" : (const char *)(label),                      \
                  worker_sum((name), (label)), (double)(expected))
#define ASSERT_LEADER(name, label, expected)                                                 \
    ck_assert_msg(leader_sum((name), (label)) == (double)(expected), "%s{%s} is %g, not %g", \
                  (name), (label) == NULL ? "" : (const char *)(label),                      \
                  leader_sum((name), (label)), (double)(expected))

START_TEST(ends_are_counted_as_postgres_has_recorded_them)
{
    int64_t failed = sql_number(f.sql, "SELECT count(*) FROM claimd.job_attempt WHERE outcome IN "
                                       "('failed', 'crashed')");
    int64_t discarded =
        sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE state = 'discarded'");
    ASSERT_WORKER("claimd_jobs_finished_total", "outcome=\"completed\"", completed_rows());
    ASSERT_WORKER("claimd_jobs_finished_total",
                  "queue=\"default\",kind=\"noop\",outcome=\"completed\"", NOOPS);
    ASSERT_WORKER("claimd_job_attempts_count", "kind=\"noop\"", NOOPS);
    ASSERT_WORKER("claimd_job_attempts_sum", "kind=\"noop\"", NOOPS);
    ASSERT_WORKER("claimd_job_timeouts_total", NULL, 0);
    ASSERT_WORKER("claimd_jobs_finished_total", "outcome=\"discarded\"", discarded);
    ASSERT_WORKER("claimd_jobs_finished_total", "outcome=\"retry\"", failed - discarded);
    ASSERT_WORKER("claimd_stale_writes_refused_total", NULL, 1);
    ASSERT_WORKER("claimd_results_refused_total", NULL, 1);
    ASSERT_WORKER("claimd_runner_deaths_total", NULL, 3);
    ASSERT_WORKER("claimd_leases_lost_total", NULL, 0);
}
END_TEST

START_TEST(claims_and_ends_agree_with_each_other)
{
    double claimed = worker_sum("claimd_jobs_claimed_total", NULL);
    double ended = worker_sum("claimd_jobs_finished_total", NULL) +
                   worker_sum("claimd_stale_writes_refused_total", NULL);
    double in_batches = worker_sum("claimd_claim_batch_jobs_sum", NULL);
    ck_assert_double_eq(claimed, ended);
    ck_assert_double_ge(worker_sum("claimd_hints_popped_total", NULL), claimed);
    ck_assert_double_ge(in_batches, claimed);
    ck_assert_double_le(in_batches, claimed + worker_sum("claimd_claims_refused_total", NULL));
    ASSERT_WORKER("claimd_job_wait_seconds_count", NULL, claimed);
    ASSERT_WORKER("claimd_finish_seconds_count", NULL, ended);
    ASSERT_WORKER("claimd_claim_seconds_count", NULL,
                  worker_sum("claimd_claim_batch_jobs_count", NULL));
    ck_assert_double_ge(worker_sum("claimd_lock_seconds_count", NULL),
                        worker_sum("claimd_claim_seconds_count", NULL));
    ASSERT_WORKER("claimd_job_run_seconds_count", "kind=\"noop\"", NOOPS);
    double slept = worker_sum("claimd_job_run_seconds_sum", "kind=\"sleep\"");
    ck_assert_double_ge(slept, 9); /* 6 s, and twice 1.5 s */
    ck_assert_double_le(slept, 20);
}
END_TEST

START_TEST(states_are_as_they_are)
{
    ck_assert_double_ge(dead_worker_busy, 1);
    ASSERT_WORKER("claimd_worker_slots", NULL, 2);
    ASSERT_WORKER("claimd_worker_slots_busy", NULL, 0);
    ASSERT_WORKER("claimd_worker_draining", NULL, 0);
    ASSERT_WORKER("claimd_postgres_up", NULL, 1);
    ASSERT_WORKER("claimd_postgres_connects_total", NULL, 1);
    ASSERT_WORKER("claimd_lock_quorum", NULL, 1);
    ASSERT_WORKER("claimd_redis_node_up", NULL, 5);
    ASSERT_WORKER("claimd_redis_node_voting", NULL, 5);
    /* A stall of the machine makes all nodes late, though not always in the same scrape. */
    ck_assert(
        WAIT_UNTIL(fmod(worker_sum("claimd_redis_node_errors_total", NULL), 5) == 0, SOON_US));
    ASSERT_WORKER("claimd_log_lines_total", "level=\"error\"", 0);
    ASSERT_WORKER("claimd_config_last_reload_successful", NULL, 1);
    ck_assert_double_gt(worker_sum("claimd_redis_node_memory_bytes", NULL), 5 * 100000);
    ck_assert_double_gt(worker_sum("claimd_runners_cpu_seconds_total", NULL), 0);
    ck_assert_double_gt(worker_sum("claimd_runners_resident_memory_bytes", NULL), 100000);
    double lines = worker_sum("claimd_log_lines_total", "level=\"info\"");
    ck_assert_double_gt(lines, 0);
    ck_assert_double_lt(lines, NOOPS); /* no line per success */
}
END_TEST

START_TEST(the_leader_tells_of_queues_rescues_and_the_feed)
{
    ASSERT_LEADER("claimd_scheduler_leader", NULL, 1);
    /* A stall of the machine may silence a live worker. */
    ck_assert_double_ge(leader_sum("claimd_workers_dead_total", NULL), 1);
    ASSERT_LEADER("claimd_rescues_total", "outcome=\"available\"", 2); /* killed, and not held */
    ASSERT_LEADER("claimd_rescues_total", NULL, 2);
    ck_assert_double_ge(leader_sum("claimd_hints_fed_total", NULL), NOOPS + 10);
    ck_assert_double_ge(leader_sum("claimd_feed_pass_seconds_count", NULL), 1);
    ASSERT_LEADER("claimd_jobs", "queue=\"default\",state=\"available\"", 2);
    ASSERT_LEADER("claimd_jobs", "queue=\"default\",state=\"retryable\"", 3);
    ASSERT_LEADER("claimd_jobs", "queue=\"default\",state=\"waiting\"", 1);
    ASSERT_LEADER("claimd_map_rows", "map=\"m\",state=\"open\"", 1);
    ASSERT_LEADER("claimd_jobs_unserved", "queue=\"default\",kind=\"nobody_serves\"", 2);
    ck_assert_double_gt(leader_sum("claimd_queue_oldest_due_seconds", NULL), 0);
    ck_assert_double_lt(leader_sum("claimd_queue_oldest_due_seconds", NULL), 120);
    ASSERT_LEADER("claimd_queue_paused", "queue=\"default\"", 0);
    ASSERT_LEADER("claimd_workers", "state=\"live\"", 1);
    ASSERT_LEADER("claimd_workers", "state=\"stale\"", 0);
    ASSERT_LEADER("claimd_history_partitions_ahead", NULL, 14);
    ASSERT_LEADER("claimd_surveys_failed_total", NULL, 0);
}
END_TEST

START_TEST(no_counter_ever_goes_down)
{
    ck_assert_int_eq(fallen, 0);
}
END_TEST

/* ---- comparison with docs/metrics.md ---- */

struct documented {
    char name[80];
    char type[16];
    char labels[64]; /* "a, b" */
    char by[16];
};

static void take_cell(char **rest, char *ret, size_t size)
{
    const char *cell = strsep(rest, "|");
    size_t begin = cell == NULL ? 0 : strspn(cell, " `");
    size_t len = cell == NULL ? 0 : strlen(cell);
    while (len > begin && (cell[len - 1] == ' ' || cell[len - 1] == '`')) {
        len--;
    }
    (void)snprintf(ret, size, "%.*s", (int)(len - begin), cell == NULL ? "" : cell + begin);
}

static size_t read_docs(struct documented *ret)
{
    char path[SERVER_PATH_MAX];
    char line[4096];
    size_t count = 0;
    (void)snprintf(path, sizeof path, "%s/docs/metrics.md", getenv("CLAIMD_SOURCE_DIR"));
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s", path);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "| `", 3) != 0) {
            continue;
        }
        ck_assert_uint_lt(count, DOCS_MAX);
        struct documented *d = &ret[count++];
        char *rest = line + 1;
        take_cell(&rest, d->name, sizeof d->name);
        take_cell(&rest, d->type, sizeof d->type);
        take_cell(&rest, d->labels, sizeof d->labels);
        take_cell(&rest, d->by, sizeof d->by);
    }
    (void)fclose(file);
    return count;
}

static bool is_by(const struct documented *d, bool is_worker)
{
    bool is_scheduler = strcmp(d->by, "scheduler") == 0 || strcmp(d->by, "leader") == 0;
    return strcmp(d->by, "all") == 0 || (is_worker ? strcmp(d->by, "worker") == 0 : is_scheduler);
}

/* Returns the labels of the family's first sample in the form of the page, without a histogram's
 * own "le". */
static void labels_of(const char *text, const struct documented *d, char *ret, size_t size)
{
    struct scrape_sample s;
    size_t len = strlen(d->name);
    ret[0] = '\0';
    while (scrape_next(&text, &s)) {
        bool is_it =
            s.name_len >= len && memcmp(s.name, d->name, len) == 0 &&
            (s.name_len == len || (strcmp(d->type, "histogram") == 0 && s.name[len] == '_'));
        if (!is_it) {
            continue;
        }
        size_t used = 0;
        for (size_t at = 0; at < s.labels_len;) {
            size_t name_len = strcspn(s.labels + at, "=");
            bool is_le = name_len == 2 && memcmp(s.labels + at, "le", 2) == 0;
            used += is_le ? 0
                          : (size_t)snprintf(ret + used, size - used, "%s%.*s",
                                             used > 0 ? ", " : "", (int)name_len, s.labels + at);
            at += name_len + 2;
            at += strcspn(s.labels + at, "\"") + 1; /* none of ours contains a quote */
            at += at < s.labels_len && s.labels[at] == ',' ? 1 : 0;
        }
        return;
    }
}

static int compare_to_docs(const struct documented *docs, size_t count, const char *text,
                           bool is_worker)
{
    int wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const struct documented *d = &docs[i];
        char labels[64];
        if (!is_by(d, is_worker)) {
            continue;
        }
        labels_of(text, d, labels, sizeof labels);
        if (!scrape_has(text, d->name, d->type) || strcmp(labels, d->labels) != 0) {
            (void)fprintf(stderr,
                          "%s: documented as a %s with labels '%s', not so in the %s's text\n",
                          d->name, d->type, d->labels, is_worker ? "worker" : "leader");
            wrong++;
        }
    }
    return wrong;
}

static int find_undocumented(const struct documented *docs, size_t count, const char *text,
                             bool is_worker)
{
    int wrong = 0;
    for (const char *at = strstr(text, "# TYPE "); at != NULL; at = strstr(at + 1, "# TYPE ")) {
        const char *name = at + strlen("# TYPE ");
        size_t len = strcspn(name, " ");
        bool is_found = false;
        for (size_t i = 0; i < count && !is_found; i++) {
            is_found = is_by(&docs[i], is_worker) && strlen(docs[i].name) == len &&
                       memcmp(docs[i].name, name, len) == 0;
        }
        if (!is_found) {
            (void)fprintf(stderr, "%.*s: not in docs/metrics.md\n", (int)len, name);
            wrong++;
        }
    }
    return wrong;
}

START_TEST(the_texts_have_what_is_documented_and_nothing_else)
{
    static struct documented docs[DOCS_MAX];
    size_t count = read_docs(docs);
    ck_assert_uint_gt(count, 40);
    int wrong = compare_to_docs(docs, count, buf_at(&worker_text), true) +
                compare_to_docs(docs, count, buf_at(&leader_text), false) +
                find_undocumented(docs, count, buf_at(&worker_text), true) +
                find_undocumented(docs, count, buf_at(&leader_text), false);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* ---- promtool ---- */

static void assert_promtool_likes(const char *name, const struct buf *text)
{
    char path[SERVER_PATH_MAX + 32];
    char command[SERVER_PATH_MAX + 96];
    int code = -1;
    struct err err = {0};
    autobuf struct buf out = BUF_INIT(TEXT_MAX);
    (void)snprintf(path, sizeof path, "%s/%s.prom", f.dir, name);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(buf_at(text), 1, text->len, file), text->len);
    ck_assert_int_eq(fclose(file), 0);
    (void)snprintf(command, sizeof command, "promtool check metrics <%s 2>&1", path);
    const char *argv[] = {"sh", "-c", command, NULL};
    enum status st = program_run(argv, NULL, SOON_US, &out, &code, &err);
    ck_assert_msg(st == STATUS_OK && code == 0 && out.len == 0, "%s: exit %d: %s%s", name, code,
                  err.msg, out.len > 0 ? buf_at(&out) : "");
}

START_TEST(promtool_finds_nothing_to_say)
{
    if (has_promtool) {
        assert_promtool_likes("worker", &worker_text);
        assert_promtool_likes("leader", &leader_text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics_fleet");
    TCase *tests = tcase_create("fleet");
    tcase_set_timeout(tests, 60);
    tcase_add_unchecked_fixture(tests, tell_the_story, end);
    tcase_add_test(tests, ends_are_counted_as_postgres_has_recorded_them);
    tcase_add_test(tests, claims_and_ends_agree_with_each_other);
    tcase_add_test(tests, states_are_as_they_are);
    tcase_add_test(tests, the_leader_tells_of_queues_rescues_and_the_feed);
    tcase_add_test(tests, no_counter_ever_goes_down);
    tcase_add_test(tests, the_texts_have_what_is_documented_and_nothing_else);
    tcase_add_test(tests, promtool_finds_nothing_to_say);
    suite_add_tcase(suite, tests);
    int code = suite_run(suite);
    if (code == EXIT_SUCCESS && !has_promtool) {
        const char *required = getenv("CLAIMD_REQUIRE_SERVICES");
        (void)fprintf(stderr, "SKIPPED: promtool is not installed (package prometheus)\n");
        return required != NULL && strcmp(required, "1") == 0 ? EXIT_FAILURE : 77;
    }
    return code;
}
