/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl jobs watch, and the progress of enqueue --file. */
#include "ctl_fixture.h"
#include "ctl_terminal.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* ---- jobs watch ---- */

/* Moves a job to the history. */
#define FINISH(id, state)                                                                          \
    "WITH gone AS (DELETE FROM claimd.job WHERE id = " id " RETURNING *) INSERT INTO "             \
    "claimd.job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, " \
    "attempt, crashes, generation, priority, share, state, queue, kind, args, error) SELECT id, "  \
    "fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, crashes, "       \
    "generation, priority, share, '" state "', queue, kind, args, CASE WHEN '" state               \
    "' = 'discarded' THEN E'no\\x1b[2Jluck\\nat all' END FROM gone"

struct watcher {
    pid_t pid;
    char log[SERVER_PATH_MAX + 64];
};

static void watch_start(struct watcher *w, const char *const *words)
{
    char program[SERVER_PATH_MAX];
    char conninfo[SERVER_PATH_MAX + 64];
    const char *argv[16] = {"sh",      "-c",   "exec \"$0\" \"$@\" >&2", /* to the log */
                            program,   "jobs", "watch",
                            "--every", "100ms"};
    const char *const env[] = {conninfo, NULL};
    struct err err = {0};
    (void)snprintf(program, sizeof program, "%s/claimctl", getenv("CLAIMD_BIN_DIR"));
    (void)snprintf(conninfo, sizeof conninfo, "CLAIMD_POSTGRES_CONNINFO=%s", ctl.conninfo);
    (void)snprintf(w->log, sizeof w->log, "%s/watch-%d.log", world.dir, (int)getpid());
    for (size_t i = 0; words[i] != NULL; i++) {
        argv[8 + i] = words[i];
    }
    ck_assert_msg(program_start(argv, env, w->log, &w->pid, &err) == STATUS_OK, "%s", err.msg);
}

static const char *watch_text(const struct watcher *w)
{
    static char text[65536];
    FILE *f = fopen(w->log, "r");
    size_t n = f == NULL ? 0 : fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    if (f != NULL) {
        (void)fclose(f);
    }
    return text;
}

static void watch_await(const struct watcher *w, const char *part)
{
    ck_assert_msg(WAIT_UNTIL(strstr(watch_text(w), part) != NULL, LIMIT_US), "no '%s' in: %s", part,
                  watch_text(w));
}

static int watch_end(const struct watcher *w)
{
    int code = -1;
    ck_assert_int_eq(program_wait(w->pid, LIMIT_US, &code, NULL), STATUS_OK);
    return code;
}

START_TEST(each_change_is_one_line_until_all_have_ended)
{
    struct watcher w;
    ck_assert_int_eq(ctl_exit("enqueue", "a"), 0);
    ck_assert_int_eq(ctl_exit("enqueue", "b", "--delay", "1h"), 0);
    watch_start(&w, (const char *const[]){"1", "2", "1", NULL});
    watch_await(&w, "job 1 a: available\n");
    watch_await(&w, "job 2 b: scheduled\n");
    sql_run(db, "UPDATE claimd.job SET state = 'running', attempt = 1 WHERE id = 1");
    watch_await(&w, "job 1 a: available → running, attempt 1\n");
    sql_run(db, FINISH("1", "completed"));
    watch_await(&w, "job 1 a: running → completed, attempt 1\n");
    sql_run(db, FINISH("2", "cancelled"));
    ck_assert_int_eq(watch_end(&w), 0);
    watch_await(&w, "job 2 b: scheduled → cancelled\n");
}
END_TEST

START_TEST(a_discarded_job_is_exit_1_with_its_error)
{
    struct watcher w;
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--tag", "x"), 0);
    watch_start(&w, (const char *const[]){"--tag", "x", NULL});
    watch_await(&w, "job 1 a: available\n");
    sql_run(db, "UPDATE claimd.job SET attempt = 1");
    sql_run(db, FINISH("1", "discarded"));
    ck_assert_int_eq(watch_end(&w), 1);
    watch_await(&w, "discarded, attempt 1: no?[2Jluck\n"); /* control characters are replaced */
    watch_await(&w, "1 of 1 jobs discarded");
}
END_TEST

START_TEST(in_json_each_change_is_one_object)
{
    ck_assert_int_eq(ctl_exit("enqueue", "a"), 0);
    sql_run(db, FINISH("1", "completed"));
    ck_assert_int_eq(ctl_exit("jobs", "watch", "1", "--json"), 0);
    json_t *line = ctl_json();
    ck_assert_int_eq(json_integer_value(json_object_get(line, "id")), 1);
    ck_assert_str_eq(json_string_value(json_object_get(line, "state")), "completed");
    ck_assert(json_is_null(json_object_get(line, "before")));
    json_decref(line);
}
END_TEST

START_TEST(what_can_not_be_followed_is_said)
{
    ck_assert_int_eq(ctl_exit("jobs", "watch", "7"), 4);
    assert_says("job 7 not found");
    ck_assert_int_eq(ctl_exit("jobs", "watch", "x"), 2);
    ck_assert_int_eq(ctl_exit("jobs", "watch", "7", "--kind", "a"), 2);
    assert_says("either ids or options");
    ck_assert_int_eq(ctl_exit("jobs", "watch", "--kind", "a"), 0);
    assert_says("no open job matches these options");
}
END_TEST

/* ---- progress ---- */

#define LINE "{\"kind\": \"noop\", \"args\": \"0123456789012345678901234567890123456789\"}\n"
#define LONG_ENOUGH_US (400 * US_PER_MS) /* twice the time after which a bar appears */
#define CHUNK_LINES 4096

static void feed_chunk(int fd)
{
    static char chunk[CHUNK_LINES * (sizeof LINE - 1)];
    for (size_t at = 0; at < sizeof chunk; at += sizeof LINE - 1) {
        memcpy(chunk + at, LINE, sizeof LINE - 1);
    }
    for (size_t at = 0; at < sizeof chunk;) {
        ssize_t n = write(fd, chunk + at, sizeof chunk - at);
        ck_assert_int_gt(n, 0);
        at += (size_t)n;
    }
}

/* Feeds enqueue --file through a FIFO for as long as a bar needs to appear. The time begins when
 * the first lines have been read, since the command may start slowly. */
static void feed_slowly(const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    feed_chunk(fd);
    int64_t end_us = clock_boot_us() + LONG_ENOUGH_US;
    do {
        feed_chunk(fd);
    } while (clock_boot_us() < end_us);
    (void)close(fd);
}

static const char *make_fifo(void)
{
    static char path[SERVER_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/fifo-%d", world.dir, (int)getpid());
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    return path;
}

START_TEST(a_long_enqueue_draws_its_progress_on_a_terminal)
{
    struct terminal t;
    const char *path = make_fifo();
    terminal_run(&t, (const char *const[]){"enqueue", "--file", path, NULL}, "X=");
    feed_slowly(path);
    terminal_await(&t, "\rsent ");
    terminal_await(&t, " jobs, ");
    ck_assert_int_eq(terminal_end(&t, "\r\x1b[Kenqueued "), 0);
}
END_TEST

START_TEST(quiet_and_pipes_see_none)
{
    struct terminal t;
    const char *path = make_fifo();
    terminal_run(&t, (const char *const[]){"enqueue", "--quiet", "--file", path, NULL}, "X=");
    feed_slowly(path);
    terminal_await(&t, "enqueued ");
    ck_assert_ptr_null(strstr(buf_at(&t.seen), "sent "));
    ck_assert_int_eq(terminal_end(&t, "enqueued "), 0);
    static const char one[] = "{\"kind\": \"a\"}\n";
    sql_run(db, "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, "
                "token_prefix, version, queues, kinds) VALUES (gen_random_uuid(), now() + interval "
                "'1 h', 1, 1, 'h', '/s', 'p', '1', '{default}', '{a}')");
    ck_assert_int_eq(ctl_exit("enqueue", "--file", ctl_write_file("jobs", one, strlen(one))), 0);
    ck_assert_str_eq(ctl_text(), "enqueued 1\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl watch");
    TCase *tests = tcase_create("watch");
    tcase_add_checked_fixture(tests, ctl_setup, ctl_teardown);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, each_change_is_one_line_until_all_have_ended);
    tcase_add_test(tests, a_discarded_job_is_exit_1_with_its_error);
    tcase_add_test(tests, in_json_each_change_is_one_object);
    tcase_add_test(tests, what_can_not_be_followed_is_said);
    tcase_add_test(tests, a_long_enqueue_draws_its_progress_on_a_terminal);
    tcase_add_test(tests, quiet_and_pipes_see_none);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
