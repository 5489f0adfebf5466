/* SPDX-License-Identifier: Apache-2.0
 *
 * The loss of the connection: by the server, by a deadline, or because no server is there. */
#include "store/admin.h"
#include "support/pg_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct pg *pg;

struct seen {
    int ups;
    int downs;
    int notes;
    char why[ERR_TEXT_MAX];
};
static struct seen seen;

static void on_up(void *ctx)
{
    ((struct seen *)ctx)->ups++;
}

static void on_down(void *ctx, const struct err *why)
{
    struct seen *s = ctx;
    s->downs++;
    (void)snprintf(s->why, sizeof s->why, "%s", why->msg);
}

static void on_notify(void *ctx, const char *channel, const char *payload)
{
    (void)channel;
    (void)payload;
    ((struct seen *)ctx)->notes++;
}

static void open_pg(const char *conninfo, int64_t timeout_us)
{
    const struct pg_options options = {.loop = &world.loop,
                                       .conninfo = conninfo,
                                       .application_name = "tested",
                                       .listen = "claimd",
                                       .timeout_us = timeout_us,
                                       .on_up = on_up,
                                       .on_down = on_down,
                                       .on_notify = on_notify,
                                       .ctx = &seen};
    ck_assert_int_eq(pg_open(&options, &pg, NULL), STATUS_OK);
}

static void setup(void)
{
    world_setup();
    seen = (struct seen){0};
    open_pg(world.conninfo, 5 * US_PER_S);
    RUN_UNTIL(seen.ups == 1);
}

static void setup_alone(void)
{
    ck_assert_int_eq(uv_loop_init(&world.loop), 0);
    seen = (struct seen){0};
}

static void teardown(void)
{
    pg_close(pg);
    world_teardown();
}

struct reply {
    int calls;
    enum status st;
    bool was_up; /* the callback could read it back */
    bool closes;
};

static void on_reply(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct reply *r = ctx;
    (void)results;
    (void)err;
    r->calls++;
    r->st = st;
    r->was_up = pg_is_up(pg);
    if (r->closes) {
        pg_close(pg);
        pg = NULL;
    }
}

static enum status try_send(struct reply *r, const char *sql, int64_t timeout_us)
{
    const struct pg_statement statement = {.name = "", .sql = sql};
    const struct pg_request request = {.steps = {{.statement = &statement}},
                                       .step_count = 1,
                                       .timeout_us = timeout_us,
                                       .done = on_reply,
                                       .ctx = r};
    return pg_send(pg, &request, NULL);
}

static void must_send(struct reply *r, const char *sql, int64_t timeout_us)
{
    ck_assert_int_eq(try_send(r, sql, timeout_us), STATUS_OK);
}

static int64_t count_backends(struct sql *side, int pid)
{
    return sql_number(side, "SELECT count(*)::text FROM pg_stat_activity WHERE pid = %d", pid);
}

#define CLAIM                                                                         \
    "UPDATE claimd.job SET state = 'running', fence = nextval('claimd.fence') WHERE " \
    "state = 'available'"

START_TEST(an_abandoned_claim_does_not_survive_its_deadline)
{
    struct sql *side = sql_open(world.conninfo);
    struct sql *locker = sql_open(world.conninfo);
    struct reply r = {0};
    int old_pid = pg_backend_pid(pg);
    sql_run(side, "SELECT claimd.enqueue('noop')::text");
    sql_run(locker, "BEGIN");
    sql_run(locker, "SELECT 1 FROM claimd.job FOR UPDATE");
    must_send(&r, CLAIM, 300 * US_PER_MS);
    RUN_UNTIL(r.calls == 1);
    ck_assert_int_eq(r.st, STATUS_UNKNOWN);
    ck_assert(r.was_up);
    ck_assert_int_eq(count_backends(side, old_pid), 0);
    ck_assert_int_ne(pg_backend_pid(pg), old_pid);
    sql_run(locker, "COMMIT");
    ck_assert_str_eq(sql_text(side, "SELECT state FROM claimd.job"), "available");
    RUN_UNTIL(seen.ups == 2);
    ck_assert_int_eq(seen.downs, 1);
    sql_close(locker);
    sql_close(side);
}
END_TEST

/* Otherwise the old backend would live on, and commit later. */
START_TEST(J1_the_old_backend_is_ended_by_postgresqls_own_function)
{
    struct sql *side = sql_open(world.conninfo);
    struct reply r = {0};
    int old_pid = pg_backend_pid(pg);
    sql_run(side, "CREATE SEQUENCE public.runs");
    sql_run(side, "CREATE FUNCTION public.pg_terminate_backend(integer, integer) RETURNS boolean "
                  "LANGUAGE sql RETURN nextval('public.runs') > 0");
    sql_run(side, "SELECT claimd.enqueue('noop')::text");
    sql_run(side, "BEGIN");
    sql_run(side, "SELECT 1 FROM claimd.job FOR UPDATE");
    must_send(&r, CLAIM, 300 * US_PER_MS);
    RUN_UNTIL(r.calls == 1);
    ck_assert_int_eq(r.st, STATUS_UNKNOWN);
    ck_assert_int_eq(count_backends(side, old_pid), 0);
    sql_run(side, "COMMIT");
    ck_assert_str_eq(sql_text(side, "SELECT is_called::text FROM public.runs"), "false");
    ck_assert_str_eq(sql_text(side, "SELECT state FROM claimd.job"), "available");
    sql_close(side);
}
END_TEST

START_TEST(unknown_is_not_said_while_the_old_backend_is_there)
{
    struct sql *side = sql_open(world.conninfo);
    struct reply r = {0};
    int old_pid = pg_backend_pid(pg);
    ck_assert_int_eq(kill(old_pid, SIGSTOP), 0);
    must_send(&r, CLAIM, 200 * US_PER_MS);
    RUN_UNTIL(sql_number(side, "SELECT count(*)::text FROM pg_stat_activity WHERE query LIKE "
                               "'%%SELECT pg_terminate_backend%%' AND state = 'active'") == 1);
    for (int i = 0; i < 5; i++) {
        world_turn();
    }
    ck_assert_int_eq(r.calls, 0);
    ck_assert_int_eq(kill(old_pid, SIGCONT), 0);
    RUN_UNTIL(r.calls == 1);
    ck_assert_int_eq(r.st, STATUS_UNKNOWN);
    ck_assert_int_eq(count_backends(side, old_pid), 0);
    sql_close(side);
}
END_TEST

START_TEST(D1_a_terminated_backend_is_replaced_and_listens_again)
{
    struct sql *side = sql_open(world.conninfo);
    sql_run(side, "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE "
                  "application_name = 'tested'");
    RUN_UNTIL(seen.ups == 2);
    ck_assert_int_eq(seen.downs, 1);
    ck_assert_msg(strstr(seen.why, "terminating connection due to administrator command") != NULL,
                  "%s", seen.why);
    sql_run(side, "SELECT pg_notify('claimd', '')");
    RUN_UNTIL(seen.notes == 1);
    sql_close(side);
}
END_TEST

START_TEST(a_session_that_ends_within_a_request_undoes_it)
{
    struct sql *side = sql_open(world.conninfo);
    struct reply r[3] = {0};
    must_send(&r[0], "INSERT INTO claimd.queue (name) VALUES ('kept')", 0);
    must_send(&r[1],
              "INSERT INTO claimd.queue (name) SELECT 'gone' WHERE "
              "pg_terminate_backend(pg_backend_pid())",
              0);
    must_send(&r[2], "INSERT INTO claimd.queue (name) VALUES ('never')", 0);
    RUN_UNTIL(r[2].calls == 1);
    ck_assert_int_eq(r[0].calls, 1);
    ck_assert_int_eq(r[0].st, STATUS_OK);
    ck_assert_int_eq(r[1].st, STATUS_UNKNOWN);
    ck_assert_int_eq(r[2].st, STATUS_UNKNOWN);
    ck_assert_str_eq(sql_text(side, "SELECT string_agg(name, ',') FROM claimd.queue"), "kept");
    sql_close(side);
}
END_TEST

/* For example after a SIGSTOP, or a page fault on a slow disk. */
START_TEST(a_reply_that_came_while_we_did_not_look_counts)
{
    struct admin *other = NULL;
    struct reply r = {0};
    ck_assert_int_eq(admin_open(world.conninfo, LIMIT_US, &other, NULL), STATUS_OK);
    must_send(&r, "SELECT 1", 50 * US_PER_MS);
    ck_assert_int_eq(admin_exec(other, "SELECT pg_sleep(0.2)", NULL), STATUS_OK);
    RUN_UNTIL(r.calls == 1);
    ck_assert_int_eq(r.st, STATUS_OK);
    ck_assert_int_eq(seen.downs, 0);
    admin_close(other);
}
END_TEST

START_TEST(a_callback_may_close_the_connection)
{
    struct reply r[3] = {{.closes = true}, {0}, {0}};
    for (size_t i = 0; i < ARRAY_COUNT(r); i++) {
        must_send(&r[i], "SELECT 1", 0);
    }
    RUN_UNTIL(r[2].calls == 1);
    ck_assert_int_eq(r[0].st, STATUS_OK);
    ck_assert_int_eq(r[1].st, STATUS_UNKNOWN);
    ck_assert_int_eq(r[2].st, STATUS_UNKNOWN);
}
END_TEST

START_TEST(closing_ends_what_was_sent_as_unknown)
{
    struct reply r = {0};
    must_send(&r, "SELECT pg_sleep(5)", 0);
    pg_close(pg);
    pg = NULL;
    ck_assert_int_eq(r.calls, 1);
    ck_assert_int_eq(r.st, STATUS_UNKNOWN);
}
END_TEST

START_TEST(too_many_requests_are_refused)
{
    static struct reply r[300];
    size_t sent = 0;
    while (sent < ARRAY_COUNT(r) && try_send(&r[sent], "SELECT 1", 0) == STATUS_OK) {
        sent++;
    }
    ck_assert_uint_gt(sent, 100);
    ck_assert_uint_lt(sent, ARRAY_COUNT(r));
    ck_assert_int_eq(try_send(&r[sent], "SELECT 1", 0), STATUS_LIMIT);
    RUN_UNTIL(r[sent - 1].calls == 1);
    ck_assert_int_eq(try_send(&r[sent], "SELECT 1", 0), STATUS_OK);
    RUN_UNTIL(r[sent].calls == 1);
}
END_TEST

START_TEST(nobody_there_is_tried_again_and_again)
{
    struct reply r = {0};
    open_pg("host=/nonexistent user=x dbname=x", 5 * US_PER_S);
    ck_assert_int_eq(try_send(&r, "SELECT 1", 0), STATUS_UNAVAILABLE);
    RUN_UNTIL(seen.downs >= 3);
    ck_assert_int_eq(seen.ups, 0);
    ck_assert_msg(strstr(seen.why, "/nonexistent") != NULL, "%s", seen.why);
    ck_assert(!pg_is_up(pg));
}
END_TEST

START_TEST(B10_a_name_is_looked_up_without_blocking_and_the_next_host_is_tried)
{
    char conninfo[SERVER_PATH_MAX + 128];
    (void)snprintf(conninfo, sizeof conninfo,
                   "host=localhost,no.such.host.invalid,127.0.0.1,%s port=1,2,3,5432 user=postgres "
                   "dbname=postgres",
                   world.server.dir);
    open_pg(conninfo, 5 * US_PER_S);
    RUN_UNTIL(seen.ups == 1);
}
END_TEST

START_TEST(B10_a_name_that_does_not_exist_is_said)
{
    open_pg("host=no.such.host.invalid", 5 * US_PER_S);
    RUN_UNTIL(seen.downs >= 1);
    ck_assert_msg(strstr(seen.why, "cannot look up 'no.such.host.invalid'") != NULL, "%s",
                  seen.why);
}
END_TEST

START_TEST(a_connection_may_be_closed_while_it_looks_up_a_name)
{
    open_pg("host=no.such.host.invalid", 5 * US_PER_S);
    (void)uv_run(&world.loop, UV_RUN_ONCE); /* the timer of the first attempt */
    pg_close(TAKE(pg));
}
END_TEST

START_TEST(a_wrong_connection_string_is_said)
{
    open_pg("host=a,b port=1,2,3", 5 * US_PER_S);
    RUN_UNTIL(seen.downs >= 1);
    ck_assert_msg(strstr(seen.why, "2 hosts, 3 ports") != NULL, "%s", seen.why);
    pg_close(pg);
    seen = (struct seen){0};
    open_pg("host=a,b,c,d,e,f,g,h,i", 5 * US_PER_S);
    RUN_UNTIL(seen.downs >= 1);
    ck_assert_msg(strstr(seen.why, "9 hosts, at most 8") != NULL, "%s", seen.why);
}
END_TEST

/* Opens a socket that accepts connections, by its backlog, and never answers. */
static int given_silent_server(char *ret_dir, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    ck_assert_int_eq(dir_make(ret_dir, size, NULL), STATUS_OK);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.60s/.s.PGSQL.5432", ret_dir);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    return fd;
}

START_TEST(a_server_that_never_answers_is_given_up)
{
    char conninfo[128];
    char dir[64];
    autoclose int fd = given_silent_server(dir, sizeof dir);
    ck_assert_int_ge(fd, 0);
    (void)snprintf(conninfo, sizeof conninfo, "host=%s user=x dbname=x sslmode=disable", dir);
    open_pg(conninfo, 200 * US_PER_MS);
    RUN_UNTIL(seen.downs >= 2);
    ck_assert_msg(strstr(seen.why, "no PostgreSQL session with") != NULL, "%s", seen.why);
    dir_remove(dir);
}
END_TEST

START_TEST(D5_a_host_that_is_silent_does_not_keep_us_from_the_next)
{
    char conninfo[SERVER_PATH_MAX + 128];
    char dir[64];
    autoclose int fd = given_silent_server(dir, sizeof dir);
    ck_assert_int_ge(fd, 0);
    (void)snprintf(conninfo, sizeof conninfo,
                   "host=%s,%s user=postgres dbname=postgres sslmode=disable", dir,
                   world.server.dir);
    open_pg(conninfo, 300 * US_PER_MS);
    RUN_UNTIL(seen.ups == 1);
    dir_remove(dir);
}
END_TEST

START_TEST(D5_claimctl_finds_the_host_that_answers_behind_a_silent_one)
{
    char conninfo[SERVER_PATH_MAX + 128];
    char dir[64];
    struct admin *admin = NULL;
    struct err err = {0};
    autoclose int fd = given_silent_server(dir, sizeof dir);
    ck_assert_int_ge(fd, 0);
    (void)snprintf(conninfo, sizeof conninfo,
                   "host=%s,%s user=postgres dbname=postgres sslmode=disable", dir,
                   world.server.dir);
    enum status st = admin_open(conninfo, 2 * US_PER_S, &admin, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    admin_close(admin);
    (void)snprintf(conninfo, sizeof conninfo, "host=%s,%s user=x dbname=x sslmode=disable", dir,
                   dir);
    ck_assert_int_eq(admin_open(conninfo, 200 * US_PER_MS, &admin, &err), STATUS_TIMEOUT);
    dir_remove(dir);
}
END_TEST

START_TEST(D6_a_session_that_takes_no_writes_any_more_is_left)
{
    struct reply r = {0};
    struct sql *other = sql_open(world.conninfo);
    (void)world_ask(pg, "SET default_transaction_read_only = on");
    must_send(&r, "INSERT INTO claimd.queue (name) VALUES ('x')", 0);
    RUN_UNTIL(r.calls == 1);
    ck_assert_int_eq(r.st, STATUS_UNAVAILABLE);
    RUN_UNTIL(seen.ups == 2);
    ck_assert_msg(strstr(seen.why, "takes no writes") != NULL, "%s", seen.why);
    sql_run(other, "ALTER ROLE postgres SET default_transaction_read_only = on");
    sql_run(other, "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE "
                   "application_name = 'tested'");
    RUN_UNTIL(seen.downs >= 3);
    ck_assert_msg(strstr(seen.why, "read-only; name the primary") != NULL, "%s", seen.why);
    sql_run(other, "ALTER ROLE postgres RESET default_transaction_read_only");
    RUN_UNTIL(seen.ups == 3);
    sql_close(other);
}
END_TEST

/* A server that may be killed, and a connection to it. */
struct own_server {
    struct pg_server pg;
    char dir[SERVER_PATH_MAX];
};

static void own_start(struct own_server *own)
{
    struct err err = {0};
    ck_assert_int_eq(dir_make(own->dir, sizeof own->dir, NULL), STATUS_OK);
    ck_assert_msg(pg_server_start(own->dir, false, &own->pg, &err) == STATUS_OK, "%s", err.msg);
    open_pg(own->pg.conninfo, 5 * US_PER_S);
    RUN_UNTIL(seen.ups == 1);
}

static void own_comes_back_and_tells(struct own_server *own, const struct reply *r)
{
    struct err err = {0};
    ck_assert_int_eq(r->calls, 0);
    ck_assert_msg(pg_server_restart(&own->pg, &err) == STATUS_OK, "%s", err.msg);
    RUN_UNTIL(seen.ups == 2);
    ck_assert_int_eq(r->calls, 1);
    ck_assert_int_eq(r->st, STATUS_UNKNOWN);
}

static void own_stop(struct own_server *own)
{
    pg_close(TAKE(pg));
    (void)uv_run(&world.loop, UV_RUN_DEFAULT);
    pg_server_stop(&own->pg);
    dir_remove(own->dir);
}

START_TEST(D3_a_killed_server_is_found_again_and_what_was_sent_is_unknown)
{
    struct own_server own;
    struct reply r = {0};
    own_start(&own);
    must_send(&r, "SELECT pg_sleep(4)", 0);
    world_turn();
    pg_server_kill(&own.pg);
    RUN_UNTIL(seen.downs >= 2);
    ck_assert_int_eq(r.calls, 0);
    ck_assert_int_eq(try_send(&r, "SELECT 1", 0), STATUS_UNAVAILABLE);
    own_comes_back_and_tells(&own, &r);
    own_stop(&own);
}
END_TEST

START_TEST(D3_what_is_sent_into_a_dead_socket_is_told_by_the_next_session)
{
    struct own_server own;
    struct reply r = {0};
    own_start(&own);
    pg_server_kill(&own.pg);
    must_send(&r, "SELECT 1", 0); /* the write notices it, before the loop could */
    RUN_UNTIL(seen.downs >= 2);
    own_comes_back_and_tells(&own, &r);
    own_stop(&own);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pg loss");
    TCase *loss = tcase_create("loss");
    tcase_add_checked_fixture(loss, setup, teardown);
    tcase_set_timeout(loss, 30);
    tcase_add_test(loss, an_abandoned_claim_does_not_survive_its_deadline);
    tcase_add_test(loss, unknown_is_not_said_while_the_old_backend_is_there);
    tcase_add_test(loss, J1_the_old_backend_is_ended_by_postgresqls_own_function);
    tcase_add_test(loss, D1_a_terminated_backend_is_replaced_and_listens_again);
    tcase_add_test(loss, a_session_that_ends_within_a_request_undoes_it);
    tcase_add_test(loss, a_reply_that_came_while_we_did_not_look_counts);
    tcase_add_test(loss, a_callback_may_close_the_connection);
    tcase_add_test(loss, closing_ends_what_was_sent_as_unknown);
    tcase_add_test(loss, D5_claimctl_finds_the_host_that_answers_behind_a_silent_one);
    tcase_add_test(loss, D6_a_session_that_takes_no_writes_any_more_is_left);
    tcase_add_test(loss, too_many_requests_are_refused);
    suite_add_tcase(suite, loss);
    TCase *absence = tcase_create("absence");
    tcase_add_checked_fixture(absence, setup_alone, teardown);
    tcase_set_timeout(absence, 30);
    tcase_add_test(absence, nobody_there_is_tried_again_and_again);
    tcase_add_test(absence, B10_a_name_is_looked_up_without_blocking_and_the_next_host_is_tried);
    tcase_add_test(absence, B10_a_name_that_does_not_exist_is_said);
    tcase_add_test(absence, a_connection_may_be_closed_while_it_looks_up_a_name);
    tcase_add_test(absence, D5_a_host_that_is_silent_does_not_keep_us_from_the_next);
    tcase_add_test(absence, a_wrong_connection_string_is_said);
    tcase_add_test(absence, a_server_that_never_answers_is_given_up);
    tcase_add_test(absence, D3_a_killed_server_is_found_again_and_what_was_sent_is_unknown);
    tcase_add_test(absence, D3_what_is_sent_into_a_dead_socket_is_told_by_the_next_session);
    suite_add_tcase(suite, absence);
    return world_run(suite);
}
