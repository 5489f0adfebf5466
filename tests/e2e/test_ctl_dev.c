/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl dev with the real daemons: one command starts a cluster, and nothing is left after
 * Ctrl-C. */
#include "base/buf.h"
#include "base/clock.h"
#include "cluster/servers.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LIMIT_US (120 * US_PER_S)
#define JOBS 50

struct cluster {
    char home[SERVER_PATH_MAX];
    char dir[SERVER_PATH_MAX + 8];
    char program[SERVER_PATH_MAX];
    char config[SERVER_PATH_MAX + 40];
    char log[SERVER_PATH_MAX + 32];
    pid_t pid;
    struct buf out; /* output of the last command */
};
static struct cluster cluster;

static void setup(void)
{
    struct err err = {0};
    const char *folder = getenv("CLAIMD_BIN_DIR");
    (void)snprintf(cluster.program, sizeof cluster.program, "%s/claimctl",
                   folder == NULL ? "bin" : folder);
    ck_assert_int_eq(dir_make(cluster.home, sizeof cluster.home, &err), STATUS_OK);
    (void)snprintf(cluster.dir, sizeof cluster.dir, "%s/dev", cluster.home);
    (void)snprintf(cluster.config, sizeof cluster.config, "%s/claimd.json", cluster.dir);
    (void)snprintf(cluster.log, sizeof cluster.log, "%s/dev.log", cluster.home);
    buf_init(&cluster.out, (size_t)1 << 20);
}

static void teardown(void)
{
    if (cluster.pid > 0) {
        program_kill(cluster.pid);
    }
    buf_release(&cluster.out);
    dir_remove(cluster.home);
}

static int run(const char *const *words)
{
    struct err err = {0};
    int code = -1;
    const char *argv[16] = {cluster.program, "--config", cluster.config};
    for (size_t i = 0; words[i] != NULL && i + 4 < ARRAY_COUNT(argv); i++) {
        argv[i + 3] = words[i];
    }
    buf_reset(&cluster.out);
    enum status st = program_run(argv, NULL, LIMIT_US, &cluster.out, &code, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    return code;
}
#define claimctl(...) run((const char *const[]){__VA_ARGS__, NULL})

/* Counts how often the last command printed `part`. */
static size_t count(const char *part)
{
    size_t n = 0;
    const char *p = cluster.out.len > 0 ? buf_at(&cluster.out) : "";
    while ((p = strstr(p, part)) != NULL) {
        n++;
        p += strlen(part);
    }
    return n;
}

static bool log_says(const char *text)
{
    struct err err = {0};
    int code = -1;
    const char *const argv[] = {"/bin/grep", "-q", text, cluster.log, NULL};
    enum status st = program_run(argv, NULL, LIMIT_US, &cluster.out, &code, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    return code == 0;
}

static void start_cluster(void)
{
    struct err err = {0};
    const char *const argv[] = {"sh",
                                "-c",
                                "exec \"$0\" \"$@\" >&2", /* stderr goes to the log */
                                cluster.program,
                                "dev",
                                "--json",
                                "--dir",
                                cluster.dir,
                                "--workers",
                                "2",
                                "--masters",
                                "3",
                                NULL};
    enum status st = program_start(argv, NULL, cluster.log, &cluster.pid, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    ck_assert(WAIT_UNTIL(access(cluster.config, R_OK) == 0 && claimctl("workers", "--json") == 0 &&
                             count("\"live\"") == 2,
                         LIMIT_US));
}

static void stop_cluster(int signal)
{
    struct err err = {0};
    int code = -1;
    ck_assert_int_eq(kill(cluster.pid, signal), 0);
    enum status st = program_wait(cluster.pid, LIMIT_US, &code, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    cluster.pid = 0;
    ck_assert_int_eq(code, 0);
    ck_assert_int_eq(claimctl("workers"), 3); /* PostgreSQL has ended as well */
}

static void enqueue_jobs(void)
{
    char path[SERVER_PATH_MAX + 32];
    (void)snprintf(path, sizeof path, "%s/jobs", cluster.dir);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    for (int i = 0; i < JOBS; i++) {
        ck_assert_int_gt(fprintf(f, "{\"kind\": \"noop\", \"args\": {\"i\": %d}}\n", i), 0);
    }
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(claimctl("enqueue", "--file", path), 0);
}

static bool all_completed(void)
{
    return claimctl("jobs", "list", "--state", "completed", "--limit", "100", "--json") == 0 &&
           count("\"completed\"") == JOBS;
}

START_TEST(a_cluster_by_one_command_runs_jobs_and_ends_on_ctrl_c)
{
    start_cluster();
    enqueue_jobs();
    ck_assert(WAIT_UNTIL(all_completed(), LIMIT_US));
    int code = claimctl("doctor");
    ck_assert_msg(code == 0, "%s", buf_at(&cluster.out));
    ck_assert_uint_eq(count("one leads"), 1);
    const char *const again[] = {cluster.program, "dev", "--dir", cluster.dir, NULL};
    struct err err = {0};
    buf_reset(&cluster.out);
    enum status st = program_run(again, NULL, LIMIT_US, &cluster.out, &code, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    ck_assert_int_eq(code, 5);
    ck_assert_uint_eq(count("another claimctl dev runs in"), 1);
    stop_cluster(SIGINT);
}
END_TEST

START_TEST(with_json_it_says_where_it_is_as_json)
{
    char wanted[sizeof cluster.dir + 32];
    (void)snprintf(wanted, sizeof wanted, "^{\"dev\": {\"dir\": \"%s\", ", cluster.dir);
    start_cluster();
    ck_assert(WAIT_UNTIL(log_says(wanted), LIMIT_US));
    stop_cluster(SIGTERM);
}
END_TEST

START_TEST(a_second_run_in_the_same_folder_keeps_the_jobs)
{
    start_cluster();
    enqueue_jobs();
    ck_assert(WAIT_UNTIL(all_completed(), LIMIT_US));
    stop_cluster(SIGTERM);
    start_cluster();
    ck_assert(all_completed());
    stop_cluster(SIGINT);
}
END_TEST

START_TEST(a_server_that_ends_is_told_and_the_others_go_on)
{
    char path[SERVER_PATH_MAX + 32];
    long pid = 0;
    int code = -1;
    struct err err = {0};
    start_cluster();
    (void)snprintf(path, sizeof path, "%s/data/postmaster.pid", cluster.dir);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%ld", &pid), 1);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(kill((pid_t)pid, SIGKILL), 0);
    ck_assert(WAIT_UNTIL(log_says("PostgreSQL ended with 137; the others keep running"), LIMIT_US));
    ck_assert_int_eq(kill(cluster.pid, SIGINT), 0);
    ck_assert_int_eq(program_wait(cluster.pid, LIMIT_US, &code, &err), STATUS_OK);
    cluster.pid = 0;
    ck_assert_int_eq(code, 1);
    start_cluster(); /* files left by a crash are no obstacle */
    stop_cluster(SIGINT);
}
END_TEST

static int dev_in(const char *dir)
{
    struct err err = {0};
    int code = 0;
    const char *const argv[] = {cluster.program, "dev", "--dir", dir, NULL};
    buf_reset(&cluster.out);
    enum status st = program_run(argv, NULL, LIMIT_US, &cluster.out, &code, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    return code;
}

START_TEST(a_folder_with_other_files_or_of_somebody_else_is_refused)
{
    char notes[SERVER_PATH_MAX + 16];
    char link[SERVER_PATH_MAX + 16];
    (void)snprintf(notes, sizeof notes, "%s/notes", cluster.home);
    (void)snprintf(link, sizeof link, "%s/link", cluster.home);
    int fd = open(notes, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(dev_in(cluster.home), 2);
    ck_assert_uint_eq(count("holds other files"), 1);
    ck_assert_int_eq(symlink(cluster.home, link), 0);
    ck_assert_int_eq(dev_in(link), 2);
    ck_assert_uint_eq(count("is not your folder"), 1);
    ck_assert_int_eq(dev_in("/etc"), 2);
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(cluster.home, 54321, 54321), 0);
        ck_assert_int_eq(dev_in(cluster.home), 2);
        ck_assert_uint_eq(count("is not your folder"), 1);
    }
}
END_TEST

START_TEST(a_path_too_long_for_sockets_is_refused)
{
    char dir[256];
    struct err err = {0};
    int code = 0;
    memset(dir, 'x', sizeof dir - 1);
    dir[0] = '/';
    dir[sizeof dir - 1] = '\0';
    const char *const argv[] = {cluster.program, "dev", "--dir", dir, NULL};
    ck_assert_int_eq(program_run(argv, NULL, LIMIT_US, &cluster.out, &code, &err), STATUS_OK);
    ck_assert_int_eq(code, 2);
    ck_assert_uint_eq(count("it holds sockets"), 1);
}
END_TEST

static bool is_of_root(json_t *worker)
{
    char path[64];
    struct stat info;
    (void)snprintf(path, sizeof path, "/proc/%lld",
                   (long long)json_integer_value(json_object_get(worker, "pid")));
    ck_assert_int_eq(stat(path, &info), 0);
    return info.st_uid == 0;
}

/* Runs a command in a shell that has evaluated the output of --env. */
static int shell(const char *command)
{
    struct err err = {0};
    int code = -1;
    const char *const argv[] = {"sh",
                                "-euc",
                                "eval \"$(\"$0\" dev --env --dir \"$1\")\"; eval \"$2\"",
                                cluster.program,
                                cluster.dir,
                                command,
                                NULL};
    buf_reset(&cluster.out);
    ck_assert_int_eq(program_run(argv, NULL, LIMIT_US, &cluster.out, &code, &err), STATUS_OK);
    return code;
}

static int dev_with(const char *option, const char *value)
{
    struct err err = {0};
    int code = -1;
    const char *const argv[] = {cluster.program, "dev", "--dir", cluster.dir, option, value, NULL};
    buf_reset(&cluster.out);
    ck_assert_int_eq(program_run(argv, NULL, LIMIT_US, &cluster.out, &code, &err), STATUS_OK);
    return code;
}

START_TEST(another_shell_gets_what_it_needs_by_one_line)
{
    struct err err = {0};
    const char *const argv[] = {"sh",
                                "-c",
                                "exec \"$0\" \"$@\" >&2",
                                cluster.program,
                                "dev",
                                "--dir",
                                cluster.dir,
                                "--workers",
                                "1",
                                "--masters",
                                "1",
                                "--database",
                                "app",
                                NULL};
    ck_assert_int_eq(dev_with("--env", NULL), 5);
    ck_assert_uint_eq(count("no claimctl dev runs in"), 1);
    ck_assert_int_eq(dev_with("--database", "a b"), 2);
    enum status st = program_start(argv, NULL, cluster.log, &cluster.pid, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    ck_assert(WAIT_UNTIL(log_says("^  eval "), LIMIT_US));
    ck_assert_msg(shell("claimctl enqueue noop --strict") == 0, "%s", buf_at(&cluster.out));
    ck_assert_int_eq(shell("psql -XAtc 'SELECT id FROM claimd.jobs' app && echo \"$DATABASE\""), 0);
    ck_assert_uint_eq(count("1\n"), 1);
    ck_assert_uint_eq(count("dbname=app"), 1);
    ck_assert_int_eq(shell("claimctl dev --env --dir \"$PGHOST\""), 0);
    ck_assert_uint_eq(count("export PATH="), 0); /* it is in PATH already */
    stop_cluster(SIGINT);
    ck_assert_int_eq(dev_with("--env", NULL), 5);
}
END_TEST

/* A checkout below /root is closed to every other user. */
START_TEST(as_root_no_daemon_and_no_handler_is_root)
{
    char closed[SERVER_PATH_MAX + 16];
    char program[sizeof closed + 16];
    struct err err = {0};
    int code = -1;
    if (geteuid() != 0) {
        return;
    }
    (void)snprintf(closed, sizeof closed, "%s/closed", cluster.home);
    (void)snprintf(program, sizeof program, "%s/bin/claimctl", closed);
    ck_assert_int_eq(mkdir(closed, 0700), 0);
    const char *const copy[] = {"sh",
                                "-c",
                                "mkdir \"$0/bin\" && cd \"$1/..\" && cp bin/claimctl "
                                "bin/claimd-* \"$0/bin\" && cp -r plugins \"$0\"",
                                closed,
                                getenv("CLAIMD_BIN_DIR"),
                                NULL};
    enum status st = program_run(copy, NULL, LIMIT_US, &cluster.out, &code, &err);
    ck_assert_msg(st == STATUS_OK && code == 0, "%s %s", err.msg, buf_at(&cluster.out));
    const char *const argv[] = {"sh",        "-c",        "exec \"$0\" \"$@\" >&2",
                                program,     "dev",       "--dir",
                                cluster.dir, "--workers", "2",
                                "--masters", "1",         NULL};
    st = program_start(argv, NULL, cluster.log, &cluster.pid, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    ck_assert(WAIT_UNTIL(access(cluster.config, R_OK) == 0 && claimctl("workers", "--json") == 0 &&
                             count("\"live\"") == 2,
                         LIMIT_US));
    json_t *root = json_loads(buf_at(&cluster.out), 0, NULL);
    json_t *workers = json_object_get(root, "workers");
    ck_assert(!is_of_root(json_array_get(workers, 0)) && !is_of_root(json_array_get(workers, 1)));
    json_decref(root);
    code = shell("psql -XAtc 'SELECT count(*) FROM claimd.jobs' \"$DATABASE\"");
    ck_assert_msg(code == 0, "%s", buf_at(&cluster.out));
    /* Its plugins are served as well. */
    ck_assert_int_eq(claimctl("enqueue", "noop", "--strict"), 0);
    stop_cluster(SIGINT);
    const char *const inside[] = {program, "dev", "--dir", closed, NULL};
    buf_reset(&cluster.out);
    ck_assert_int_eq(program_run(inside, NULL, LIMIT_US, &cluster.out, &code, &err), STATUS_OK);
    ck_assert_int_eq(code, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl dev");
    TCase *tests = tcase_create("dev");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 90);
    tcase_add_test(tests, a_cluster_by_one_command_runs_jobs_and_ends_on_ctrl_c);
    tcase_add_test(tests, with_json_it_says_where_it_is_as_json);
    tcase_add_test(tests, a_second_run_in_the_same_folder_keeps_the_jobs);
    tcase_add_test(tests, a_server_that_ends_is_told_and_the_others_go_on);
    tcase_add_test(tests, a_folder_with_other_files_or_of_somebody_else_is_refused);
    tcase_add_test(tests, a_path_too_long_for_sockets_is_refused);
    tcase_add_test(tests, another_shell_gets_what_it_needs_by_one_line);
    tcase_add_test(tests, as_root_no_daemon_and_no_handler_is_root);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
