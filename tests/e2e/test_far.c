/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker far away from all servers: its slots work while claims and finishes are in flight. */
#include "cluster/link_proxy.h"
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <sys/stat.h>

#define SLOTS 4
#define HOST 0
#define POSTGRES MASTERS /* its number in the proxy, where the masters come first, from 0 */
#define MASTERS 3
#define PG_SOCKET ".s.PGSQL.5432"

static struct fleet fleet;
static struct link_proxy *proxy;
static char far_dir[SERVER_PATH_MAX];

#define OK(call)                                                      \
    do {                                                              \
        struct err err = {0};                                         \
        ck_assert_msg((call) == STATUS_OK, "%s: %s", #call, err.msg); \
    } while (0)

/* Opens a socket of ours, which leads to a server. */
static void carry(const char *name, const char *server, char *ret_socket, size_t size)
{
    (void)snprintf(ret_socket, size, "%s/%s", far_dir, name);
    OK(link_proxy_add(proxy, ret_socket, server, &err));
    ck_assert_int_eq(chmod(ret_socket, 0777), 0);
}

/* All daemons must agree on the lock nodes, so the scheduler uses the proxy as well, without a
 * delay. */
static void carry_masters(char *ret_nodes, size_t size)
{
    size_t len = (size_t)snprintf(ret_nodes, size, "CLAIMD_LOCK_NODES=");
    for (size_t i = 0; i < MASTERS; i++) {
        char name[16];
        char socket[2 * SERVER_PATH_MAX];
        (void)snprintf(name, sizeof name, "redis%zu", i);
        carry(name, fleet.masters[i].path, socket, sizeof socket);
        len += (size_t)snprintf(ret_nodes + len, size - len, "%sunix:%s", i > 0 ? "," : "", socket);
    }
}

static void carry_postgres(char *ret_conninfo, size_t size)
{
    char server[SERVER_PATH_MAX + 32];
    char socket[SERVER_PATH_MAX + 32];
    (void)snprintf(server, sizeof server, "%s/" PG_SOCKET, fleet.pg.dir);
    carry(PG_SOCKET, server, socket, sizeof socket);
    (void)snprintf(ret_conninfo, size, "CLAIMD_POSTGRES_CONNINFO=%s user=fleet_worker host=%s",
                   fleet.conninfo, far_dir);
}

static void setup(void)
{
    static char nodes[MASTERS * 2 * SERVER_PATH_MAX];
    static char conninfo[4 * SERVER_PATH_MAX];
    const char *const near[] = {nodes, NULL};
    const char *const far[] = {nodes, conninfo, NULL};
    fleet_start(&fleet,
                &(struct fleet_options){.slots = SLOTS, .masters = MASTERS, .time_scale = 1});
    OK(dir_make(far_dir, sizeof far_dir, &err));
    ck_assert_int_eq(chmod(far_dir, 0755), 0);
    OK(link_proxy_start(&proxy, &err));
    carry_masters(nodes, sizeof nodes);
    carry_postgres(conninfo, sizeof conninfo);
    fleet_launch_scheduler(&fleet, 0, near);
    fleet_launch_worker(&fleet, 0, far);
    link_proxy_is_host(proxy, HOST, fleet.workers[0]);
    ck_assert(WAIT_UNTIL(fleet_is_registered(&fleet, 0), SOON_US));
}

static void teardown(void)
{
    fleet_stop(&fleet);
    link_proxy_stop(proxy);
    dir_remove(far_dir);
}

/* A busy machine makes some runs of a round so long that nothing is claimed ahead of them. */
#define ROUNDS_MAX 6

static const struct {
    const char *to;
    int round_trip_ms;
    bool is_postgres_near;
    int run_ms;
    int jobs; /* per round */
} worlds[] = {{"all servers", 50, false, 100, 400},
              {"all servers", 20, false, 30, 1000},
              {"the masters", 50, true, 100, 400}};

/* Counts the jobs in the later half of the round whose claim was answered while each slot was still
 * running an earlier job. A run that ends a round trip to PostgreSQL after a job was claimed was
 * still running when the worker received the claim: each message takes half of a round trip. */
static int64_t claimed_ahead(int64_t after, int claim_ms)
{
    return sql_number(fleet.sql,
                      "SELECT count(*) FROM claimd.job_history AS j WHERE id > %lld AND (SELECT "
                      "count(*) FROM claimd.job_history AS b"
                      " WHERE b.attempted_at < j.attempted_at AND b.finalized_at > j.attempted_at +"
                      " %d * interval '1 ms') >= %d",
                      (long long)after, claim_ms, SLOTS);
}

static int64_t run_round(int n, int round)
{
    char args[32];
    int jobs = worlds[n].jobs;
    (void)snprintf(args, sizeof args, "{\"ms\": %d}", worlds[n].run_ms);
    int64_t last = fleet_enqueue(&fleet, "sleep", args, jobs);
    fleet_wait_finished(&fleet, (round + 1) * jobs, "completed", 2 * SOON_US);
    int64_t ahead =
        claimed_ahead(last - jobs / 2, worlds[n].is_postgres_near ? 0 : worlds[n].round_trip_ms);
    (void)printf("%d ms to %s and back, handlers of %d ms: %lld of %d jobs are claimed ahead\n",
                 worlds[n].round_trip_ms, worlds[n].to, worlds[n].run_ms, (long long)ahead,
                 jobs / 2);
    return ahead;
}

START_TEST(feat_B30_jobs_wait_at_a_far_worker_before_a_slot_is_idle)
{
    int64_t one_way_us = worlds[_i].round_trip_ms * US_PER_MS / 2;
    int64_t ahead = 0;
    link_proxy_rule(proxy, HOST, LINK_ALL,
                    &(struct link_rule){.to_server_us = one_way_us, .to_client_us = one_way_us});
    if (worlds[_i].is_postgres_near) {
        link_proxy_rule(proxy, HOST, POSTGRES, &(struct link_rule){.to_server_us = 0});
    }
    for (int i = 0; i < ROUNDS_MAX && ahead <= worlds[_i].jobs / 2 * 3 / 4; i++) {
        ahead = run_round(_i, i);
    }
    ck_assert_int_gt(ahead, worlds[_i].jobs / 2 * 3 / 4);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("far");
    TCase *c = tcase_create("far");
    tcase_set_timeout(c, 240);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, feat_B30_jobs_wait_at_a_far_worker_before_a_slot_is_idle, 0,
                        ARRAY_COUNT(worlds));
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
