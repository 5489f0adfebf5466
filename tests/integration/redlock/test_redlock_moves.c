/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock nodes whose names move to other addresses, as those of containers do (lock.C7, N7). */
#include "test_redlock_world.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>

#define NODES 3

/* ---- the resolver of this program: linked in place of the C library's functions ---- */

int look_up(const char *name, const char *service, const struct addrinfo *hints,
            struct addrinfo **ret_list) __asm__("getaddrinfo");
void forget(struct addrinfo *list) __asm__("freeaddrinfo");

/* n0.example has the address 127.0.0.<to[0] + 1>. */
static struct {
    pthread_mutex_t mutex;
    int to[NODES];
} names = {.mutex = PTHREAD_MUTEX_INITIALIZER, .to = {0, 1, 2}};

int look_up(const char *name, const char *service, const struct addrinfo *hints,
            struct addrinfo **ret_list)
{
    struct addrinfo *list = calloc(1, sizeof *list);
    struct sockaddr_in *address = calloc(1, sizeof *address);
    if (list == NULL || address == NULL) {
        abort();
    }
    if ((hints->ai_flags & AI_NUMERICHOST) != 0) {
        free(list);
        free(address);
        return EAI_NONAME;
    }
    (void)pthread_mutex_lock(&names.mutex);
    int to = names.to[name[1] - '0'];
    (void)pthread_mutex_unlock(&names.mutex);
    *address = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)strtol(service, NULL, 10)),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)to)};
    *list = (struct addrinfo){.ai_family = AF_INET,
                              .ai_socktype = SOCK_STREAM,
                              .ai_addrlen = sizeof *address,
                              .ai_addr = (struct sockaddr *)address};
    *ret_list = list;
    return 0;
}

void forget(struct addrinfo *list)
{
    free(list->ai_addr);
    free(list);
}

static void name_moves_to(int name, int to)
{
    (void)pthread_mutex_lock(&names.mutex);
    names.to[name] = to;
    (void)pthread_mutex_unlock(&names.mutex);
}

/* ---- nodes ---- */

static char run_ids[NODES][41]; /* of the servers, by address */

static const char *run_id_of(size_t node)
{
    static struct redlock_node_info info;
    redlock_async_node(world.lock, node, &info);
    return info.run_id;
}

/* Starts three servers at three addresses, each with its name. */
static void given_names(void)
{
    static char urls[NODES][64];
    struct err err = {0};
    int port = port_free();
    world_start(0, NULL);
    for (int i = 0; i < NODES; i++) {
        char dir[SERVER_PATH_MAX + 32];
        char extra[64];
        struct redis_server server;
        world_dir((size_t)i, dir, sizeof dir);
        (void)snprintf(extra, sizeof extra, "bind 127.0.0.%d\nport %d", i + 1, port);
        ck_assert_msg(redis_server_start(dir, extra, &server, &err) == STATUS_OK, "%s", err.msg);
        world_add(&server);
        (void)snprintf(urls[i], sizeof urls[i], "n%d.example:%d", i, port);
        world.nodes[i].url = urls[i];
    }
    world.options.ttl_us = US_PER_S;
    world.options.ttl_max_us = US_PER_S; /* how long a moved node has no vote */
    world.options.node_timeout_us = 100 * US_PER_MS;
    world_open_voting();
    for (size_t i = 0; i < NODES; i++) {
        (void)snprintf(run_ids[i], sizeof run_ids[i], "%s", run_id_of(i));
    }
}

static void cut_off(size_t server)
{
    (void)cli(server, "CLIENT", "KILL", "TYPE", "normal");
}

static bool is_at(size_t node, size_t server)
{
    return strcmp(run_id_of(node), run_ids[server]) == 0;
}

static void expect_all(size_t of_n0, size_t of_n1)
{
    run_until(is_at(0, of_n0) && is_at(1, of_n1) && is_at(2, 2) &&
              redlock_async_voting(world.lock) == NODES);
}

START_TEST(C7_nodes_that_swap_their_addresses_all_vote_again)
{
    given_names();
    name_moves_to(0, 1);
    name_moves_to(1, 0);
    cut_off(0);
    cut_off(1);
    expect_all(1, 0);
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_REFUSED), 0);
}
END_TEST

/* If two names lead to the same server for a while, the one that was resolved last is right. */
START_TEST(N7_a_name_that_still_leads_to_anothers_server_is_looked_up_again)
{
    given_names();
    name_moves_to(1, 0);
    cut_off(1);
    run_until(world_events_of(REDLOCK_EVENT_REFUSED) == 1);
    ck_assert_ptr_nonnull(strstr(world_last_event(1)->why, "the same server as node n0.example"));
    ck_assert_uint_eq(redlock_async_voting(world.lock), NODES - 1);
    name_moves_to(0, 1);
    expect_all(1, 0);
}
END_TEST

START_TEST(N7_a_server_that_has_two_names_for_good_keeps_its_one_vote)
{
    given_names();
    name_moves_to(1, 0);
    cut_off(1);
    run_until(world_events_of(REDLOCK_EVENT_REFUSED) == 1);
    world_run_for(2 * US_PER_S); /* several tries */
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_REFUSED), 1);
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_DOWN), 1);
    ck_assert_uint_eq(redlock_async_voting(world.lock), NODES - 1);
    ck_assert(is_at(0, 0));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, C7_nodes_that_swap_their_addresses_all_vote_again);
    tcase_add_test(t, N7_a_name_that_still_leads_to_anothers_server_is_looked_up_again);
    tcase_add_test(t, N7_a_server_that_has_two_names_for_good_keeps_its_one_vote);
}

int main(void)
{
    return world_main("redlock_moves", add_tests);
}
