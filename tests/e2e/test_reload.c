/* SPDX-License-Identifier: Apache-2.0
 *
 * SIGHUP: which changes of the configuration a running daemon applies, which it reports, and which
 * it refuses. The test plays systemd: it owns the worker's NOTIFY_SOCKET. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#define WORKER "claimd-worker"
#define SCHEDULER "claimd-scheduler"

static struct fleet f;
static int notify_fd = -1;
static char *config_text; /* as the fleet wrote it */

static void config_path(char *ret_path, size_t size)
{
    (void)snprintf(ret_path, size, "%s/config.json", f.dir);
}

/* Prints the text up to `old`, then `new`; returns the text after `old`. */
static const char *replaced(FILE *file, const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);
    ck_assert_msg(at != NULL, "no %s in %s", old, text);
    ck_assert_int_ge(fprintf(file, "%.*s%s", (int)(at - text), text, new), 0);
    return at + strlen(old);
}

/* Writes the fleet's configuration with another level, with `worker` before the worker's members
 * and `more` after those of the top object. */
static void write_config(const char *level, const char *worker, const char *more)
{
    char path[SERVER_PATH_MAX + 16];
    char slots[128];
    config_path(path, sizeof path);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    const char *rest = replaced(file, config_text, "\"info\"", level);
    (void)snprintf(slots, sizeof slots, "%s\"slots\"", worker);
    rest = replaced(file, rest, "\"slots\"", slots);
    ck_assert_int_ge(fprintf(file, "%s%s}\n", rest, more), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void read_config(void)
{
    char path[SERVER_PATH_MAX + 16];
    char text[16384] = "";
    config_path(path, sizeof path);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    ck_assert_int_eq(fclose(file), 0);
    char *end = strstr(text, ",\n \"scheduler\"");
    ck_assert(n > 0 && end != NULL);
    *end = '\0';
    config_text = strdup(text);
    ck_assert_ptr_nonnull(config_text);
}

static void open_socket(char *ret_env, size_t size)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n = snprintf(at.sun_path, sizeof at.sun_path, "%s/notify", f.dir);
    ck_assert_int_lt(n, (int)sizeof at.sun_path);
    notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(notify_fd, 0);
    ck_assert_int_eq(bind(notify_fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(chmod(at.sun_path, 0777), 0);
    (void)snprintf(ret_env, size, "NOTIFY_SOCKET=%s", at.sun_path);
}

/* Returns the next message, "" if none arrives. Skips those of a watchdog. */
static void notified(char *ret_text, size_t size)
{
    struct pollfd p = {.fd = notify_fd, .events = POLLIN};
    do {
        ret_text[0] = '\0';
        if (poll(&p, 1, (int)(SOON_US / 1000)) != 1) {
            return;
        }
        ssize_t n = recv(notify_fd, ret_text, size - 1, 0);
        ck_assert_int_ge(n, 0);
        ret_text[n] = '\0';
    } while (strncmp(ret_text, "WATCHDOG", 8) == 0);
}

static void setup(void)
{
    char env[SERVER_PATH_MAX + 64];
    char text[256];
    fleet_start(&f,
                &(struct fleet_options){.more = "\"scheduler\": {\"look_ahead\": 7}", .slots = 1});
    read_config();
    open_socket(env, sizeof env);
    fleet_start_scheduler(&f, 0);
    fleet_launch_worker(&f, 0, (const char *const[]){env, NULL});
    notified(text, sizeof text);
    ck_assert_str_eq(text, "READY=1");
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, SCHEDULER, 0, "event=leader_won") > 0, SOON_US));
}

static void teardown(void)
{
    fleet_stop(&f);
    free(config_text);
    (void)close(notify_fd);
}

static void wait_line(const char *program, const char *text)
{
    ck_assert_msg(WAIT_UNTIL(fleet_log_count(&f, program, 0, text) > 0, SOON_US), "%s: no %s",
                  program, text);
}

static void expect_reload_told_to_systemd(void)
{
    char text[256];
    long long us = 0;
    struct timespec now = {0};
    do { /* a worker that was marked dead also becomes ready again */
        notified(text, sizeof text);
    } while (strcmp(text, "READY=1") == 0);
    ck_assert_msg(sscanf(text, "RELOADING=1\nMONOTONIC_USEC=%lld", &us) == 1, "%s", text);
    ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    ck_assert_int_le(us, now.tv_sec * US_PER_S + now.tv_nsec / 1000);
    ck_assert_int_gt(us, (now.tv_sec - 60) * US_PER_S);
    notified(text, sizeof text);
    ck_assert_str_eq(text, "READY=1");
}

START_TEST(a_worker_takes_on_new_values_and_goes_on_working)
{
    write_config("\"debug\"", "", ", \"scheduler\": {\"look_ahead\": 7}");
    fleet_signal(f.workers[0], SIGHUP);
    expect_reload_told_to_systemd();
    wait_line(WORKER, "event=reloaded keys=log_level");
    int64_t last = fleet_enqueue(&f, "noop", "{}", 3);
    fleet_wait_finished(&f, 3, "completed", SOON_US);
    for (int64_t id = last - 2; id <= last; id++) {
        char line[64]; /* a debug line */
        (void)snprintf(line, sizeof line, "event=job_claimed job=%lld ", (long long)id);
        ck_assert_int_ge(fleet_log_count(&f, WORKER, 0, line), 1);
    }
}
END_TEST

START_TEST(a_bad_configuration_is_one_line_and_the_old_one_stays)
{
    write_config("\"loud\"", "", "");
    fleet_signal(f.workers[0], SIGHUP);
    fleet_signal(f.schedulers[0], SIGHUP);
    expect_reload_told_to_systemd();
    static const char *const programs[] = {WORKER, SCHEDULER};
    for (size_t i = 0; i < ARRAY_COUNT(programs); i++) {
        wait_line(programs[i], "event=reload_failed err=\"configuration '");
        wait_line(programs[i],
                  "log_level: loud is not allowed; allowed: error, warn, info or debug");
        ck_assert_int_eq(fleet_log_count(&f, programs[i], 0, "event=reload_failed"), 1);
    }
    int64_t done = sql_number(f.sql, "SELECT count(*) FROM claimd.job_history");
    (void)fleet_enqueue(&f, "noop", "{}", 1);
    fleet_wait_finished(&f, done + 1, "completed", SOON_US);
}
END_TEST

START_TEST(what_needs_a_restart_is_named_and_not_taken_on)
{
    write_config("\"debug\"", "", ", \"redis\": {\"prefix\": \"other\"}, \"log_format\": \"json\"");
    fleet_signal(f.workers[0], SIGHUP);
    expect_reload_told_to_systemd();
    wait_line(WORKER, "\"event\":\"restart_needed\",\"keys\":\"redis.prefix\"");
    wait_line(WORKER, "\"event\":\"reloaded\",\"keys\":\"log_format, ");
    int64_t done = sql_number(f.sql, "SELECT count(*) FROM claimd.job_history");
    (void)fleet_enqueue(&f, "noop", "{}", 1);
    fleet_wait_finished(&f, done + 1, "completed", SOON_US); /* fed under the scheduler's prefix */
    wait_line(WORKER, "\"event\":\"job_finished\"");
}
END_TEST

START_TEST(a_scheduler_feeds_further_ahead_at_once)
{
    static const char count[] = "ZCARD claimd:hints:default";
    fleet_signal(f.workers[0], SIGSTOP); /* its kinds count as served for a while */
    (void)fleet_enqueue(&f, "noop", "{}", 100);
    int64_t most = 0;
#define HINTS                                                        \
    (fleet_redis_i64(&f, 0, count) + fleet_redis_i64(&f, 1, count) + \
     fleet_redis_i64(&f, 2, count) + fleet_redis_i64(&f, 3, count) + \
     fleet_redis_i64(&f, 4, count))
    ck_assert(WAIT_UNTIL((most = HINTS) > 0, SOON_US));
    ck_assert_int_le(most, 7);
    write_config("\"info\"", "", ", \"scheduler\": {\"look_ahead\": 60, \"history_days\": 3}");
    fleet_signal(f.schedulers[0], SIGHUP);
    wait_line(SCHEDULER, "event=reloaded keys=\"scheduler.look_ahead, scheduler.history_days\"");
    ck_assert(WAIT_UNTIL((most = HINTS) > 40, SOON_US));
    fleet_signal(f.workers[0], SIGCONT);
    ck_assert(WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM claimd.job") == 0, SOON_US));
}
END_TEST

static bool has_ended(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

/* Sends SIGHUP repeatedly until it has ended, faster than a configuration can be read. */
static int end_amid_reloads(pid_t *pid)
{
    const struct timespec pause = {.tv_nsec = 100000};
    int64_t end_us = clock_boot_us() + SOON_US;
    fleet_signal(*pid, SIGTERM);
    while (!has_ended(*pid) && clock_boot_us() < end_us) {
        fleet_signal(*pid, SIGHUP);
        (void)ppoll(NULL, 0, &pause, NULL);
    }
    ck_assert_msg(has_ended(*pid), "reloads keep it from its end");
    return fleet_wait_end(&f, pid);
}

START_TEST(a_worker_drains_as_long_as_its_new_configuration_says)
{
    (void)fleet_enqueue(&f, "sleep", "{\"ms\": 60000}", 1);
    ck_assert(WAIT_UNTIL(
        sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running'") == 1,
        SOON_US));
    write_config("\"info\"", "\"drain_ms\": 400, ", "");
    fleet_signal(f.workers[0], SIGHUP);
    expect_reload_told_to_systemd();
    ck_assert_int_eq(end_amid_reloads(&f.workers[0]), 0);
    wait_line(WORKER, "within_ms=100"); /* × time_scale 0.25 */
}
END_TEST

START_TEST(a_daemon_without_a_file_outlives_its_terminal)
{
    char nodes[SERVER_PATH_MAX];
    char conninfo[SERVER_PATH_MAX + 64];
    char program[SERVER_PATH_MAX + 64];
    char log[SERVER_PATH_MAX + 64];
    pid_t pid = 0;
    struct err err = {0};
    int code = -1;
    (void)snprintf(program, sizeof program, "%s/%s", getenv("CLAIMD_BIN_DIR"), SCHEDULER);
    (void)snprintf(log, sizeof log, "%s/%s-1.log", f.dir, SCHEDULER);
    (void)snprintf(nodes, sizeof nodes, "CLAIMD_LOCK_NODES=unix:%s,unix:%s,unix:%s,unix:%s,unix:%s",
                   f.masters[0].path, f.masters[1].path, f.masters[2].path, f.masters[3].path,
                   f.masters[4].path);
    (void)snprintf(conninfo, sizeof conninfo, "CLAIMD_POSTGRES_CONNINFO=%s", f.conninfo);
    const char *argv[] = {program, NULL};
    const char *env[] = {nodes,
                         conninfo,
                         "CLAIMD_LOCK_TTL_MS=2500",
                         "CLAIMD_SCHEDULER_HTTP_LISTEN=",
                         "CLAIMD_LOCK_GUARD_MS=500",
                         "CLAIMD_LOCK_KILL_MARGIN_MS=125",

                         NULL};
    ck_assert_msg(program_start(argv, env, log, &pid, &err) == STATUS_OK, "%s", err.msg);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, SCHEDULER, 1, "event=ready") > 0, SOON_US));
    fleet_signal(pid, SIGHUP);
    ck_assert(
        WAIT_UNTIL(fleet_log_count(&f, SCHEDULER, 1, "event=reloaded keys=\"\"") > 0, SOON_US));
    fleet_signal(pid, SIGTERM);
    ck_assert_int_eq(program_wait(pid, SOON_US, &code, &err), STATUS_OK);
    ck_assert_int_eq(code, 0);
}
END_TEST

/* Checks every line of a worker's life, including crashes and refused plugins. */
START_TEST(with_json_every_line_of_a_worker_is_an_object)
{
    char path[SERVER_PATH_MAX + 64];
    char line[8192];
    int lines = 0;
    sql_run(f.sql, "DELETE FROM claimd.job"); /* jobs that the drained worker handed back */
    write_config("\"debug\"", "", ", \"log_format\": \"json\"");
    fleet_start_worker(&f, 1, NULL);
    int64_t done = sql_number(f.sql, "SELECT count(*) FROM claimd.job_history");
    (void)fleet_enqueue(&f, "noop", "{}", 5);
    fleet_wait_finished(&f, done + 5, "completed", SOON_US);
    (void)sql_number(f.sql, "WITH new AS (INSERT INTO claimd.job (kind, args, max_attempts) VALUES "
                            "('crash_segv', '{}', 1) RETURNING id) SELECT id FROM new");
    (void)snprintf(path, sizeof path, "%s/%s-1.log", f.dir, WORKER);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, 1, "\"event\":\"runner_died\"") > 0, SOON_US));
    fleet_signal(f.workers[1], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[1]), 0);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        json_error_t where;
        json_auto_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &where);
        ck_assert_msg(json_is_object(object), "%s: %s", where.text, line);
        ck_assert_ptr_nonnull(json_string_value(json_object_get(object, "event")));
        lines++;
    }
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_gt(lines, 10);
}
END_TEST

START_TEST(a_scheduler_that_stops_is_not_killed_by_SIGHUP)
{
    ck_assert_int_eq(end_amid_reloads(&f.schedulers[0]), 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("reload");
    TCase *c = tcase_create("reload");
    tcase_set_timeout(c, 120);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_test(c, a_worker_takes_on_new_values_and_goes_on_working);
    tcase_add_test(c, a_bad_configuration_is_one_line_and_the_old_one_stays);
    tcase_add_test(c, what_needs_a_restart_is_named_and_not_taken_on);
    tcase_add_test(c, a_scheduler_feeds_further_ahead_at_once);
    tcase_add_test(c, a_worker_drains_as_long_as_its_new_configuration_says);
    tcase_add_test(c, a_daemon_without_a_file_outlives_its_terminal);
    tcase_add_test(c, with_json_every_line_of_a_worker_is_an_object);
    tcase_add_test(c, a_scheduler_that_stops_is_not_killed_by_SIGHUP);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite()); /* one fleet, whose configuration keeps changing */
}
