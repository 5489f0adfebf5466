/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "cluster/servers.h"
#include "redis/redis.h"
#include "support/suite.h"

#include <arpa/inet.h>
#include <check.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#define LIMIT_US (120 * US_PER_S)
#define NODES_MAX 12

/* ---- the resolver of this program: linked in place of the C library's functions ---- */

int look_up(const char *name, const char *service, const struct addrinfo *hints,
            struct addrinfo **ret_list) __asm__("getaddrinfo");
void forget(struct addrinfo *list) __asm__("freeaddrinfo");

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool hangs;
    int failure;  /* EAI_…; 0 = resolves to this host */
    in_addr_t to; /* address of this host: 127.0.0.1 or another one */
    size_t asked; /* number of lookups */
    size_t answered;
} names = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int answer(in_addr_t to, const char *service, struct addrinfo **ret_list)
{
    struct addrinfo *list = calloc(1, sizeof *list);
    struct sockaddr_in *address = calloc(1, sizeof *address);
    if (list == NULL || address == NULL) {
        abort();
    }
    *address = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)strtol(service, NULL, 10)),
                                    .sin_addr.s_addr = to};
    *list = (struct addrinfo){.ai_family = AF_INET,
                              .ai_socktype = SOCK_STREAM,
                              .ai_addrlen = sizeof *address,
                              .ai_addr = (struct sockaddr *)address};
    *ret_list = list;
    return 0;
}

int look_up(const char *name, const char *service, const struct addrinfo *hints,
            struct addrinfo **ret_list)
{
    if ((hints->ai_flags & AI_NUMERICHOST) != 0) {
        struct in_addr literal;
        return inet_pton(AF_INET, name, &literal) == 1 ? answer(literal.s_addr, service, ret_list)
                                                       : EAI_NONAME;
    }
    (void)pthread_mutex_lock(&names.mutex);
    names.asked++;
    while (names.hangs && strcmp(name, "answers.example") != 0) {
        (void)pthread_cond_wait(&names.changed, &names.mutex);
    }
    int failure = names.failure;
    in_addr_t to = names.to != 0 ? names.to : htonl(INADDR_LOOPBACK);
    names.answered++;
    (void)pthread_mutex_unlock(&names.mutex);
    return failure != 0 ? failure : answer(to, service, ret_list);
}

void forget(struct addrinfo *list)
{
    free(list->ai_addr);
    free(list);
}

static void name_server(bool hangs, int failure)
{
    (void)pthread_mutex_lock(&names.mutex);
    names.hangs = hangs;
    names.failure = failure;
    (void)pthread_cond_broadcast(&names.changed);
    (void)pthread_mutex_unlock(&names.mutex);
}

static size_t asked(void)
{
    (void)pthread_mutex_lock(&names.mutex);
    size_t count = names.asked;
    (void)pthread_mutex_unlock(&names.mutex);
    return count;
}

static bool are_all_answered(void)
{
    (void)pthread_mutex_lock(&names.mutex);
    bool are = names.asked == names.answered;
    (void)pthread_mutex_unlock(&names.mutex);
    return are;
}

/* ---- nodes ---- */

static char base_dir[SERVER_PATH_MAX];
static struct redis_server server;
static int port;
static uv_loop_t loop;
static uv_timer_t tick;
static struct redis_node *nodes[NODES_MAX];
static size_t node_count;
static int64_t connect_timeout_us = 150 * US_PER_MS;

struct seen {
    size_t ups;
    size_t downs;
    char why[ERR_TEXT_MAX];
    char run_id[41]; /* of the server of the last connection */
};
static struct seen seen;

#define run_until(expr)                                           \
    do {                                                          \
        int64_t end_ = clock_boot_us() + LIMIT_US;                \
        while (!(expr) && clock_boot_us() < end_) {               \
            (void)uv_run(&loop, UV_RUN_ONCE);                     \
        }                                                         \
        ck_assert_msg((expr), "never: %s (%s)", #expr, seen.why); \
    } while (0)

static enum status on_up(void *ctx, struct redis_node *n, const struct redis_server_info *info,
                         struct err *err)
{
    struct seen *s = ctx;
    (void)n;
    (void)err;
    memcpy(s->run_id, info->run_id, sizeof s->run_id);
    s->ups++;
    return STATUS_OK;
}

static void on_down(void *ctx, struct redis_node *n, const struct err *why)
{
    struct seen *s = ctx;
    (void)n;
    s->downs++;
    (void)snprintf(s->why, sizeof s->why, "%s", why->msg);
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static void start_server(const char *address, struct redis_server *ret_server)
{
    char dir[SERVER_PATH_MAX + 32];
    char extra[64];
    struct err err = {0};
    (void)snprintf(dir, sizeof dir, "%s/%d-%s", base_dir, (int)getpid(), address);
    (void)snprintf(extra, sizeof extra, "bind %s\nport %d", address, port);
    ck_assert_msg(redis_server_start(dir, extra, ret_server, &err) == STATUS_OK, "%s", err.msg);
}

static void setup(void)
{
    port = port_free();
    start_server("127.0.0.1", &server);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uv_timer_init(&loop, &tick), 0);
    (void)uv_timer_start(&tick, on_tick, 5, 5); /* so that run_until() can give up */
}

static void close_all(void)
{
    while (node_count > 0) {
        redis_node_close(nodes[--node_count]);
    }
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0); /* no handle is left open */
}

static void teardown(void)
{
    name_server(false, EAI_AGAIN);
    ck_assert(WAIT_UNTIL(are_all_answered(), LIMIT_US)); /* or the sanitizer reports their memory */
    redis_server_stop(&server);
}

static void open_node(const char *host)
{
    struct redis_options o = {.loop = &loop,
                              .endpoint.port = port,
                              .connect_timeout_us = connect_timeout_us,
                              .on_up = on_up,
                              .on_down = on_down,
                              .ctx = &seen};
    (void)snprintf(o.endpoint.host, sizeof o.endpoint.host, "%s", host);
    ck_assert_int_eq(redis_node_open(&o, &nodes[node_count++], NULL), STATUS_OK);
}

/* More of them than libuv's thread pool has threads. */
START_TEST(C7_names_that_hang_keep_no_other_name_from_its_answer)
{
    name_server(true, 0);
    for (int i = 0; i < 8; i++) {
        open_node("hangs.example");
    }
    run_until(asked() == 8);
    open_node("answers.example");
    run_until(seen.ups == 1);
    run_until(seen.downs == 8);
    ck_assert_ptr_nonnull(strstr(seen.why, "hangs.example"));
    ck_assert_ptr_nonnull(strstr(seen.why, "no address in time"));
    ck_assert_uint_eq(asked(), 9);
    close_all();
}
END_TEST

START_TEST(C7_closing_does_not_wait_for_a_name_server_that_hangs)
{
    name_server(true, 0);
    open_node("hangs.example");
    run_until(asked() == 1);
    int64_t begin_us = clock_boot_us();
    close_all();
    ck_assert_int_lt(clock_boot_us() - begin_us, LIMIT_US);
    ck_assert(!are_all_answered());
}
END_TEST

START_TEST(C7_one_lookup_per_node_is_under_way_however_often_it_is_tried)
{
    name_server(true, 0);
    open_node("hangs.example");
    open_node("127.0.0.1"); /* needs no lookup */
    run_until(seen.downs == 1 && seen.ups == 1);
    int64_t end_us = clock_boot_us() + 800 * US_PER_MS;
    run_until(clock_boot_us() >= end_us);
    ck_assert_uint_eq(asked(), 1);
    close_all();
}
END_TEST

START_TEST(C7_an_answer_that_came_too_late_serves_the_next_try)
{
    name_server(true, 0);
    open_node("hangs.example");
    run_until(seen.downs == 1);
    name_server(false, 0);
    run_until(seen.ups == 1);
    close_all();
}
END_TEST

static const struct {
    bool hangs;
    int failure;
} outages[] = {{true, 0}, {false, EAI_AGAIN}};

START_TEST(C7_a_known_address_is_used_while_the_name_server_is_out_of_order)
{
    open_node("redis.example");
    run_until(seen.ups == 1);
    name_server(outages[_i].hangs, outages[_i].failure);
    redis_server_kill(&server);
    run_until(seen.downs == 1);
    run_until(asked() == 2);
    ck_assert_int_eq(redis_server_restart(&server, NULL), STATUS_OK);
    run_until(seen.ups == 2);
    close_all();
}
END_TEST

START_TEST(C7_a_name_without_an_address_is_a_reason_and_is_asked_for_again)
{
    name_server(false, EAI_NONAME);
    open_node("nowhere.example");
    run_until(seen.downs == 1);
    ck_assert_ptr_nonnull(strstr(seen.why, "resolve: Name or service not known"));
    run_until(asked() > 3);
    name_server(false, 0);
    run_until(seen.ups == 1);
    close_all();
}
END_TEST

/* ---- a name that moves: both addresses have a server ---- */

static void name_moves_to(const char *address)
{
    (void)pthread_mutex_lock(&names.mutex);
    names.to = inet_addr(address);
    (void)pthread_mutex_unlock(&names.mutex);
}

/* The name's connection is up at the first of two servers; returns the run_id of the second. */
static void given_two_servers(struct redis_server *ret_other, char ret_run_id[41])
{
    start_server("127.0.0.2", ret_other);
    open_node("127.0.0.2");
    run_until(seen.ups == 1);
    memcpy(ret_run_id, seen.run_id, sizeof seen.run_id);
    redis_node_close(nodes[--node_count]);
    open_node("redis.example");
    run_until(seen.ups == 2);
    ck_assert_str_ne(seen.run_id, ret_run_id);
}

static void restart_first(void)
{
    redis_server_kill(&server);
    ck_assert_int_eq(redis_server_restart(&server, NULL), STATUS_OK);
}

START_TEST(C7_a_name_that_moved_is_not_connected_to_where_it_was)
{
    struct redis_server other;
    char run_id[41];
    given_two_servers(&other, run_id);
    name_moves_to("127.0.0.2");
    restart_first(); /* the server at the old address answers there */
    run_until(seen.ups == 3);
    ck_assert_str_eq(seen.run_id, run_id);
    close_all();
    redis_server_stop(&other);
}
END_TEST

START_TEST(C7_where_a_name_was_is_not_connected_to_while_the_answer_may_still_come)
{
    struct redis_server other;
    char run_id[41];
    connect_timeout_us = 60 * US_PER_S;
    given_two_servers(&other, run_id);
    name_server(true, 0);
    name_moves_to("127.0.0.2");
    size_t before = asked();
    restart_first();
    run_until(asked() > before);
    int64_t end_us = clock_boot_us() + US_PER_S;
    run_until(clock_boot_us() >= end_us);
    ck_assert_uint_eq(seen.ups, 2);
    name_server(false, 0);
    run_until(seen.ups == 3);
    ck_assert_str_eq(seen.run_id, run_id);
    close_all();
    redis_server_stop(&other);
}
END_TEST

START_TEST(C7_an_answer_that_comes_late_ends_a_connection_to_where_the_name_was)
{
    struct redis_server other;
    char run_id[41];
    given_two_servers(&other, run_id);
    name_server(true, 0);
    name_moves_to("127.0.0.2");
    restart_first();
    run_until(seen.ups == 3); /* no better address is known */
    ck_assert_str_ne(seen.run_id, run_id);
    name_server(false, 0);
    run_until(seen.ups == 4);
    ck_assert_str_eq(seen.run_id, run_id);
    close_all();
    redis_server_stop(&other);
}
END_TEST

START_TEST(C7_a_connection_in_doubt_is_kept_while_the_name_is_where_it_was)
{
    struct redis_server other;
    char run_id[41];
    given_two_servers(&other, run_id);
    size_t before = asked();
    redis_node_doubt(nodes[0]);
    run_until(asked() == before + 1 && are_all_answered());
    name_server(false, EAI_AGAIN);
    run_until((redis_node_doubt(nodes[0]), asked() >= before + 2 && are_all_answered()));
    name_server(false, 0);
    ck_assert_uint_eq(seen.downs, 0);
    name_moves_to("127.0.0.2");
    run_until((redis_node_doubt(nodes[0]), seen.downs == 1 && seen.ups == 3));
    ck_assert_ptr_nonnull(strstr(seen.why, "its name now has another address"));
    ck_assert_str_eq(seen.run_id, run_id);
    close_all();
    redis_server_stop(&other);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("names");
    TCase *t = tcase_create("names");
    struct err err = {0};
    if (dir_make(base_dir, sizeof base_dir, &err) != STATUS_OK) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return EXIT_FAILURE;
    }
    tcase_set_timeout(t, 30);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, C7_names_that_hang_keep_no_other_name_from_its_answer);
    tcase_add_test(t, C7_closing_does_not_wait_for_a_name_server_that_hangs);
    tcase_add_test(t, C7_one_lookup_per_node_is_under_way_however_often_it_is_tried);
    tcase_add_test(t, C7_an_answer_that_came_too_late_serves_the_next_try);
    tcase_add_loop_test(t, C7_a_known_address_is_used_while_the_name_server_is_out_of_order, 0,
                        (int)ARRAY_COUNT(outages));
    tcase_add_test(t, C7_a_name_without_an_address_is_a_reason_and_is_asked_for_again);
    tcase_add_test(t, C7_a_name_that_moved_is_not_connected_to_where_it_was);
    tcase_add_test(t, C7_where_a_name_was_is_not_connected_to_while_the_answer_may_still_come);
    tcase_add_test(t, C7_an_answer_that_comes_late_ends_a_connection_to_where_the_name_was);
    tcase_add_test(t, C7_a_connection_in_doubt_is_kept_while_the_name_is_where_it_was);
    suite_add_tcase(s, t);
    int code = suite_run(s);
    dir_remove(base_dir);
    return code;
}
