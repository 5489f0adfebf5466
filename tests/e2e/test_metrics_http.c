/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP answers of real daemons while there is trouble around and inside them. */
#include "base/buf.h"
#include "cluster/scrape.h"
#include "support/fleet.h"
#include "support/suite.h"

#include <arpa/inet.h>
#include <check.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define ANSWER_MAX ((size_t)4 << 20)
#define ANSWER_S 10
#define SLOW_CLIENTS 80 /* more than the daemon accepts */
#define WORKER "claimd-worker"
#define SCHEDULER "claimd-scheduler"

static struct fleet f;
static char worker[128];
static char scheduler[128];

/* ---- requests ---- */

static int connected(const char *address)
{
    char host[64];
    struct timeval limit = {.tv_sec = ANSWER_S};
    const char *colon = strrchr(address, ':');
    ck_assert_ptr_nonnull(colon);
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10))};
    ck_assert_int_eq(inet_pton(AF_INET, host, &to.sin_addr), 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ck_assert_msg(connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "connect to %s: %s", address,
                  strerror(errno));
    return fd;
}

static void put(int fd, const char *text, size_t len)
{
    ck_assert_int_eq(send(fd, text, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* Returns the code, or 0 without an answer; `answer` has the whole answer, head and body. */
static int answered(int fd, struct buf *answer)
{
    char bytes[16384];
    ssize_t n = 0;
    buf_reset(answer);
    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0) {
        ck_assert_int_eq(buf_append(answer, bytes, (size_t)n, NULL), STATUS_OK);
    }
    int code = 0;
    return answer->len > 0 && sscanf(buf_at(answer), "HTTP/1.1 %d ", &code) == 1 ? code : 0;
}

static int ask(const char *address, const char *method, const char *path, struct buf *answer)
{
    char request[256];
    autoclose int fd = connected(address);
    int n = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", method, path);
    put(fd, request, (size_t)n);
    return answered(fd, answer);
}

/* True if `path` answers with this code and the answer contains `text`. */
static bool says(const char *address, const char *path, int code, const char *text)
{
    autobuf struct buf answer = BUF_INIT(ANSWER_MAX);
    return ask(address, "GET", path, &answer) == code && strstr(buf_at(&answer), text) != NULL;
}

static void expect(const char *address, const char *path, int code, const char *text)
{
    autobuf struct buf answer = BUF_INIT(ANSWER_MAX);
    int got = ask(address, "GET", path, &answer);
    ck_assert_msg(got == code && strstr(buf_at(&answer), text) != NULL, "%s: wanted %d and %s: %s",
                  path, code, text, got == 0 ? "(nothing)" : buf_at(&answer));
}

static void await(const char *address, const char *path, int code, const char *text)
{
    if (!WAIT_UNTIL(says(address, path, code, text), SOON_US)) {
        expect(address, path, code, text);
    }
}

/* ---- the fleet ---- */

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.slots = 1});
}

static void teardown(void)
{
    fleet_stop(&f);
}

static void start_worker(const char *const *env)
{
    fleet_launch_worker(&f, 0, env);
    fleet_http(&f, WORKER, 0, worker, sizeof worker);
}

static void start_both(const char *const *env)
{
    fleet_launch_scheduler(&f, 0, env);
    fleet_http(&f, SCHEDULER, 0, scheduler, sizeof scheduler);
    start_worker(env);
    await(worker, "/readyz", 200, "\"status\":\"ok\"");
    await(scheduler, "/readyz", 200, "\"status\":\"ok\"");
}

/* ---- the server ---- */

START_TEST(three_paths_are_answered_and_no_others)
{
    autobuf struct buf a = BUF_INIT(ANSWER_MAX);
    start_both(NULL);
    expect(worker, "/healthz", 200, "{\"status\":\"ok\",\"checks\":{\"loop\":{\"ok\":true}}}\n");
    expect(worker, "/metrics", 200, "text/plain; version=0.0.4; charset=utf-8");
    expect(worker, "/metrics?name=x", 200, "\nclaimd_build_info{version=\"");
    expect(scheduler, "/metrics", 200, "\nprocess_start_time_seconds ");
    expect(worker, "/", 404, "/metrics, /healthz and /readyz");
    expect(worker, "/metrics/../../etc/passwd", 404, "Not found");
    ck_assert_int_eq(ask(worker, "HEAD", "/healthz", &a), 200);
    ck_assert_ptr_null(strstr(buf_at(&a), "status"));
    ck_assert_int_eq(ask(worker, "POST", "/metrics", &a), 405);
    ck_assert_ptr_nonnull(strstr(buf_at(&a), "Allow: GET, HEAD"));
    ck_assert_int_eq(ask(worker, "DELETE", "/", &a), 405);
}
END_TEST

START_TEST(a_request_that_is_too_long_or_none_is_dropped_and_others_are_answered)
{
    static char junk[100000];
    autobuf struct buf a = BUF_INIT(ANSWER_MAX);
    start_both(NULL);
    memset(junk, 'a', sizeof junk);
    for (size_t len = 100; len <= sizeof junk; len *= 10) {
        autoclose int fd = connected(worker);
        put(fd, "GET /", 5);
        (void)send(fd, junk, len, MSG_NOSIGNAL); /* may be cut off halfway */
        (void)send(fd, "\r\n\r\n", 4, MSG_NOSIGNAL);
        ck_assert_int_ne(answered(fd, &a), 200);
    }
    expect(worker, "/healthz", 200, "ok");
}
END_TEST

START_TEST(slow_clients_do_not_keep_others_out)
{
    int slow[SLOW_CLIENTS];
    start_both(NULL);
    for (size_t i = 0; i < SLOW_CLIENTS; i++) {
        slow[i] = connected(worker);
        put(slow[i], "GET /metr", 9);
        if (i % 10 == 9) {
            int64_t asked_us = clock_boot_us();
            expect(worker, "/metrics", 200, "claimd_build_info");
            ck_assert_int_lt(clock_boot_us() - asked_us, 5 * US_PER_S);
        }
    }
    for (size_t i = 0; i < SLOW_CLIENTS; i++) {
        ck_assert_int_eq(close(slow[i]), 0);
    }
    fleet_signal(f.workers[0], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[0]), 0);
}
END_TEST

START_TEST(an_address_that_is_taken_ends_the_start_and_the_line_names_key_and_fix)
{
    char env[160];
    start_both(NULL);
    (void)snprintf(env, sizeof env, "CLAIMD_SCHEDULER_HTTP_LISTEN=%s", worker);
    fleet_launch_scheduler(&f, 1, (const char *const[]){env, NULL});
    ck_assert_int_eq(fleet_wait_end(&f, &f.schedulers[1]), 3);
    ck_assert_int_eq(fleet_log_count(&f, SCHEDULER, 1, "scheduler.http_listen: port "), 1);
    ck_assert_int_eq(fleet_log_count(&f, SCHEDULER, 1, "is in use; give another one"), 1);
    (void)snprintf(env, sizeof env, "CLAIMD_WORKER_HTTP_LISTEN=%s", scheduler);
    fleet_launch_worker(&f, 1, (const char *const[]){env, NULL});
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[1]), 3);
    ck_assert_int_eq(fleet_log_count(&f, WORKER, 1, "worker.http_listen: port "), 1);
}
END_TEST

START_TEST(an_empty_address_is_for_no_http_at_all)
{
    fleet_launch_worker(&f, 0, (const char *const[]){"CLAIMD_WORKER_HTTP_LISTEN=", NULL});
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, 0, "event=ready") == 1, SOON_US));
    ck_assert_int_eq(fleet_log_count(&f, WORKER, 0, "http=off"), 1);
}
END_TEST

/* Handlers and the programs that they start must not hold a client's connection or the port: a
 * runner that starts while a connection is open has no socket except the one to its worker. */
START_TEST(no_socket_is_inherited_by_children)
{
    start_both(NULL);
    autoclose int open_one = connected(worker);
    put(open_one, "GET /", 5);
    expect(worker, "/healthz", 200, "ok"); /* this connection was accepted after the first */
    (void)fleet_enqueue(&f, "crash_exit0", "{}", 1);
    ck_assert(
        WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM claimd.job_attempt") == 1, SOON_US));
    int64_t id = fleet_enqueue(&f, "descriptors", "{}", 1);
    ck_assert(WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM claimd.job_history"
                                           " WHERE state = 'completed'") == 1,
                         SOON_US));
    const char *seen =
        sql_text(f.sql, "SELECT result FROM claimd.job_history WHERE id = %" PRId64, id);
    const char *frames = strstr(seen, "socket:");
    ck_assert_ptr_nonnull(frames);
    ck_assert_msg(strstr(frames + 1, "socket:") == NULL, "%s", seen);
}
END_TEST

/* ---- health ---- */

START_TEST(without_postgresql_a_daemon_is_healthy_and_not_ready_until_it_is_back)
{
    struct err err = {0};
    start_both(NULL);
    pg_server_kill(&f.pg);
    await(worker, "/readyz", 503, "\"postgres\":{\"ok\":false,\"why\":\"not connected\"}");
    await(scheduler, "/readyz", 503, "\"postgres\":{\"ok\":false,\"why\":\"not connected\"}");
    expect(worker, "/healthz", 200, "ok");
    expect(scheduler, "/healthz", 200, "ok");
    expect(worker, "/readyz", 503, "\"quorum\":{\"ok\":true}");
    ck_assert_msg(pg_server_restart(&f.pg, &err) == STATUS_OK, "%s", err.msg);
    await(worker, "/readyz", 200, "ok");
    await(scheduler, "/readyz", 200, "ok");
}
END_TEST

START_TEST(without_a_quorum_a_daemon_is_healthy_and_not_ready_until_there_is_one)
{
    static const char why[] =
        "\"quorum\":{\"ok\":false,\"why\":\"2 of 5 lock nodes have a vote, 3 are needed\"}";
    struct err err = {0};
    start_both(NULL);
    redis_server_kill(&f.masters[0]);
    redis_server_kill(&f.masters[1]);
    redis_server_kill(&f.masters[2]);
    await(worker, "/readyz", 503, why);
    await(scheduler, "/readyz", 503, why);
    expect(worker, "/healthz", 200, "ok");
    expect(worker, "/readyz", 503, "\"postgres\":{\"ok\":true}");
    ck_assert_msg(redis_server_restart(&f.masters[1], &err) == STATUS_OK, "%s", err.msg);
    await(worker, "/readyz", 200, "ok");
    await(scheduler, "/readyz", 200, "ok");
}
END_TEST

static double pass_age_s(void)
{
    struct err err = {0};
    autobuf struct buf text = BUF_INIT(ANSWER_MAX);
    enum status st = scrape_get(scheduler, "/metrics", ANSWER_S * US_PER_S, &text, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    return scrape_sum(buf_at(&text), "claimd_feed_pass_age_seconds", NULL);
}

START_TEST(a_leader_whose_feed_does_not_move_is_not_ready_and_tells_since_when)
{
    char hints[256];
    (void)snprintf(hints, sizeof hints, "CLAIMD_HINTS_NODES=unix:%s", f.masters[4].path);
    start_both((const char *const[]){hints, "CLAIMD_POSTGRES_TIMEOUT_MS=1000", NULL});
    redis_server_kill(&f.masters[4]);
    await(scheduler, "/readyz", 503, "\"feed\":{\"ok\":false,\"why\":\"no pass of the feed has");
    expect(scheduler, "/readyz", 503, "\"quorum\":{\"ok\":true}");
    ck_assert(WAIT_UNTIL(pass_age_s() > 2, SOON_US)); /* ClaimdFeedStands evaluates this */
}
END_TEST

START_TEST(a_worker_that_drains_is_healthy_and_not_ready)
{
    start_both(NULL);
    (void)fleet_enqueue(&f, "sleep", "{\"ms\": 3000}", 1);
    await(worker, "/metrics", 200, "\nclaimd_worker_slots_busy 1\n");
    fleet_signal(f.workers[0], SIGHUP);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, 0, "event=reloaded") == 1, SOON_US));
    expect(worker, "/readyz", 200, "ok");
    fleet_signal(f.workers[0], SIGTERM);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, 0, "event=draining") == 1, SOON_US));
    await(worker, "/readyz", 503, "\"draining\":{\"ok\":false");
    expect(worker, "/healthz", 200, "ok");
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[0]), 0);
}
END_TEST

static void reload_worker(void)
{
    static int count;
    fleet_signal(f.workers[0], SIGHUP);
    count++;
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, 0, "event=reloaded") == count, SOON_US));
}

START_TEST(a_worker_is_not_ready_before_it_has_had_a_kind_to_serve)
{
    char dir[SERVER_PATH_MAX + 16];
    char env[SERVER_PATH_MAX + 64];
    char from[SERVER_PATH_MAX + 32];
    char bad[SERVER_PATH_MAX + 32];
    char good[SERVER_PATH_MAX + 32];
    (void)snprintf(dir, sizeof dir, "%s/no-plugins", f.dir);
    (void)snprintf(env, sizeof env, "CLAIMD_WORKER_PLUGIN_DIR=%s", dir);
    (void)snprintf(from, sizeof from, "%s/plugins/noop.so", f.dir);
    (void)snprintf(bad, sizeof bad, "%s/bad.so", dir);
    (void)snprintf(good, sizeof good, "%s/noop.so", dir);
    ck_assert_int_eq(mkdir(dir, 0755), 0);
    start_worker((const char *const[]){env, NULL});
    await(worker, "/readyz", 503, "\"kinds\":{\"ok\":false,\"why\":\"no plugin in ");
    expect(worker, "/healthz", 200, "ok");
    FILE *file = fopen(bad, "w");
    ck_assert(file != NULL && fputs("no plugin", file) >= 0 && fclose(file) == 0);
    reload_worker();
    await(worker, "/readyz", 503, "(refused: 1)");
    await(worker, "/metrics", 200, "\nclaimd_worker_plugins_refused 1\n");
    ck_assert_int_eq(link(from, good), 0);
    reload_worker();
    await(worker, "/readyz", 200, "\"kinds\":{\"ok\":true}");
    await(worker, "/metrics", 200, "\nclaimd_worker_kinds_served 1\n");
    ck_assert_int_eq(unlink(good), 0);
    reload_worker();
    await(worker, "/metrics", 200, "\nclaimd_worker_kinds_served 0\n");
    expect(worker, "/readyz", 200, "ok");
}
END_TEST

/* Another session has locked the whole table: claims are refused and retried. */
START_TEST(a_worker_whose_claims_get_nowhere_is_not_ready_until_they_do)
{
    start_both((const char *const[]){"CLAIMD_POSTGRES_TIMEOUT_MS=1000", NULL});
    sql_run(f.sql, "INSERT INTO claimd.job (kind, args, scheduled_at)"
                   " VALUES ('noop', '{}', clock_timestamp() + interval '1 s')");
    struct sql *locker = sql_open(f.conninfo);
    sql_run(locker, "BEGIN");
    sql_run(locker, "LOCK TABLE claimd.job IN SHARE MODE");
    await(worker, "/readyz", 503,
          "\"claiming\":{\"ok\":false,\"why\":\"nothing could be claimed for");
    expect(worker, "/readyz", 503, "\"postgres\":{\"ok\":true}");
    expect(worker, "/healthz", 200, "ok");
    sql_run(locker, "COMMIT");
    sql_close(locker);
    await(worker, "/readyz", 200, "ok");
    fleet_wait_finished(&f, 1, "completed", SOON_US);
}
END_TEST

/* ---- a loop that hangs ---- */

static int notify_socket(char *ret_env, size_t size)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n = snprintf(at.sun_path, sizeof at.sun_path, "%s/notify", f.dir);
    ck_assert_int_lt(n, (int)sizeof at.sun_path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(chmod(at.sun_path, 0777), 0);
    (void)snprintf(ret_env, size, "NOTIFY_SOCKET=%s", at.sun_path);
    return fd;
}

/* Counts pings of the watchdog until there are `want`, or none arrives for `within_ms`. */
static int pings(int fd, int want, int within_ms)
{
    char text[256];
    int count = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (count < want && poll(&p, 1, within_ms) == 1) {
        ssize_t n = recv(fd, text, sizeof text - 1, 0);
        ck_assert_int_gt(n, 0);
        text[n] = '\0';
        count += strcmp(text, "WATCHDOG=1") == 0 ? 1 : 0;
    }
    return count;
}

START_TEST(a_worker_whose_loop_hangs_is_not_healthy_and_its_watchdog_is_told_no_more)
{
    char socket_env[SERVER_PATH_MAX + 64];
    autoclose int fd = notify_socket(socket_env, sizeof socket_env);
    fleet_start_scheduler(&f, 0);
    start_worker(
        (const char *const[]){socket_env, "WATCHDOG_USEC=600000", "CLAIMD_PROBE=W1=hang", NULL});
    await(worker, "/readyz", 200, "ok");
    ck_assert_int_eq(pings(fd, 3, 20000), 3);
    (void)fleet_enqueue(&f, "noop", "{}", 1);
    await(worker, "/healthz", 503,
          "\"loop\":{\"ok\":false,\"why\":\"the event loop has not turned");
    expect(worker, "/readyz", 503, "\"loop\":{\"ok\":false");
    expect(worker, "/metrics", 503, "No figures");
    (void)pings(fd, 1000, 0);
    ck_assert_int_eq(pings(fd, 1, 1500), 0);
}
END_TEST

/* A hanging leader's figures are those of its last second, except this one: it ends with the lease,
 * when another scheduler may lead. */
START_TEST(a_leader_that_hangs_says_no_longer_that_it_leads_when_another_one_does)
{
    char standby[128];
    start_worker(NULL); /* the feed reads only what is served */
    fleet_launch_scheduler(&f, 0, (const char *const[]){"CLAIMD_PROBE=S3=hang:40", NULL});
    fleet_http(&f, SCHEDULER, 0, scheduler, sizeof scheduler);
    await(scheduler, "/metrics", 200, "\nclaimd_scheduler_leader 1\n");
    fleet_launch_scheduler(&f, 1, NULL);
    fleet_http(&f, SCHEDULER, 1, standby, sizeof standby);
    await(standby, "/metrics", 200, "\nclaimd_scheduler_leader 1\n");
    ck_assert(!says(scheduler, "/metrics", 200, "\nclaimd_scheduler_leader 1\n"));
    await(scheduler, "/healthz", 503, "\"loop\":{\"ok\":false");
}
END_TEST

START_TEST(the_watchdog_goes_on_without_any_server)
{
    char socket_env[SERVER_PATH_MAX + 64];
    autoclose int fd = notify_socket(socket_env, sizeof socket_env);
    fleet_start_scheduler(&f, 0);
    start_worker((const char *const[]){socket_env, "WATCHDOG_USEC=600000", NULL});
    await(worker, "/readyz", 200, "ok");
    pg_server_kill(&f.pg);
    for (size_t i = 0; i < 5; i++) {
        redis_server_kill(&f.masters[i]);
    }
    await(worker, "/readyz", 503, "\"quorum\":{\"ok\":false");
    (void)pings(fd, 1000, 0);
    ck_assert_int_eq(pings(fd, 10, 20000), 10);
    expect(worker, "/healthz", 200, "ok");
}
END_TEST

START_TEST(a_watchdog_of_another_process_is_not_told)
{
    char socket_env[SERVER_PATH_MAX + 64];
    autoclose int fd = notify_socket(socket_env, sizeof socket_env);
    start_worker((const char *const[]){socket_env, "WATCHDOG_USEC=200000", "WATCHDOG_PID=1", NULL});
    ck_assert_int_eq(pings(fd, 1, 1000), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("HTTP");
    TCase *t = tcase_create("server");
    tcase_add_unchecked_fixture(t, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, three_paths_are_answered_and_no_others);
    tcase_add_test(t, a_request_that_is_too_long_or_none_is_dropped_and_others_are_answered);
    tcase_add_test(t, slow_clients_do_not_keep_others_out);
    tcase_add_test(t, an_address_that_is_taken_ends_the_start_and_the_line_names_key_and_fix);
    tcase_add_test(t, an_empty_address_is_for_no_http_at_all);
    tcase_add_test(t, no_socket_is_inherited_by_children);
    suite_add_tcase(s, t);
    TCase *h = tcase_create("health");
    tcase_set_timeout(h, 90);
    tcase_add_unchecked_fixture(h, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(h, setup, teardown);
    tcase_add_test(h, without_postgresql_a_daemon_is_healthy_and_not_ready_until_it_is_back);
    tcase_add_test(h, without_a_quorum_a_daemon_is_healthy_and_not_ready_until_there_is_one);
    tcase_add_test(h, a_leader_whose_feed_does_not_move_is_not_ready_and_tells_since_when);
    tcase_add_test(h, a_worker_that_drains_is_healthy_and_not_ready);
    tcase_add_test(h, a_worker_is_not_ready_before_it_has_had_a_kind_to_serve);
    tcase_add_test(h, a_worker_whose_claims_get_nowhere_is_not_ready_until_they_do);
    tcase_add_test(h, a_worker_whose_loop_hangs_is_not_healthy_and_its_watchdog_is_told_no_more);
    tcase_add_test(h, a_leader_that_hangs_says_no_longer_that_it_leads_when_another_one_does);
    tcase_add_test(h, the_watchdog_goes_on_without_any_server);
    tcase_add_test(h, a_watchdog_of_another_process_is_not_told);
    suite_add_tcase(s, h);
    return suite_run(s);
}
