/* SPDX-License-Identifier: Apache-2.0 */
#include "test_redlock_world.h"

#include <signal.h>
#include <stdio.h>

static void given_a_short_memory(void)
{
    world.options.ttl_us = US_PER_S;
    world.options.ttl_max_us = 2 * US_PER_S;
    world.options.node_timeout_us = 100 * US_PER_MS;
}

START_TEST(N1_nodes_that_just_started_have_no_vote_yet)
{
    world_start(3, NULL);
    given_a_short_memory();
    world.options.trust_fresh = false;
    int64_t start_us = clock_boot_us();
    world_open();
    run_until(world_events_of(REDLOCK_EVENT_QUARANTINED) == 3);
    ck_assert_uint_eq(redlock_async_voting(world.lock), 0);
    (void)world_acquire(world.lock, 1, 1);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->results[REDLOCK_NO_QUORUM], 1);
    int64_t most_us = world.options.ttl_max_us + 5 * US_PER_S;
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_le(world_last_event(i)->until_us, start_us + most_us);
    }
    run_until(world_events_of(REDLOCK_EVENT_VOTING) == 3);
    ck_assert_int_ge(clock_boot_us() - start_us, world.options.ttl_max_us - US_PER_S);
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(N1_trusted_nodes_vote_at_once_but_not_after_a_restart)
{
    world_start(3, NULL);
    given_a_short_memory();
    world_open_voting();
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_UP), 3);
    redis_server_kill(&world.servers[0]);
    run_until(world_events_of(REDLOCK_EVENT_DOWN) == 1);
    ck_assert_int_eq(redis_server_restart(&world.servers[0], NULL), STATUS_OK);
    run_until(world_events_of(REDLOCK_EVENT_QUARANTINED) == 1);
    ck_assert_uint_eq(redlock_async_voting(world.lock), 2);
    struct redlock_batch *b = world_acquire(world.lock, 1, 1); /* the others are a quorum */
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    ck_assert_str_eq(cli(0, COUNT_LOCKS), "0");
    run_until(world_events_of(REDLOCK_EVENT_VOTING) == 1);
    ck_assert_uint_eq(redlock_async_voting(world.lock), 3);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(N1_a_connection_that_was_lost_is_no_restart)
{
    world_start(3, NULL);
    given_a_short_memory();
    world_open_voting();
    (void)cli(0, "CLIENT", "KILL", "TYPE", "normal");
    run_until(world_events_of(REDLOCK_EVENT_DOWN) == 1);
    run_until(redlock_async_voting(world.lock) == 3);
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_QUARANTINED), 0);
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_UP), 4);
}
END_TEST

static void restart(size_t node)
{
    redis_server_kill(&world.servers[node]);
    ck_assert_int_eq(redis_server_restart(&world.servers[node], NULL), STATUS_OK);
}

START_TEST(N2_a_lease_whose_votes_a_restarted_node_forgot_is_in_doubt_at_once)
{
    world_start(5, NULL);
    world.options.ttl_us = 60 * US_PER_S;
    world.options.ttl_max_us = world.options.ttl_us;
    redis_server_kill(&world.servers[3]);
    redis_server_kill(&world.servers[4]);
    world_open();
    run_until(redlock_async_voting(world.lock) == 3);
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    int64_t deadline_us = redlock_batch_deadline_us(b, 0);
    restart(0);
    run_until(world.states[REDLOCK_STATE_SUSPECT] == 1);
    int64_t first_round_us = deadline_us - world.options.ttl_us * 7 / 10; /* T/3 − 10 % */
    ck_assert_int_lt(clock_boot_us(), first_round_us);
    /* The other nodes are asked at once, not at T/3. */
    run_until(world_extends_by_set(1) ? world_calls(1, "set") >= 2
                                      : world_calls(1, "evalsha") >= 1);
    ck_assert_int_lt(clock_boot_us(), first_round_us);
    ck_assert_int_eq(redlock_batch_deadline_us(b, 0), deadline_us);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT], 1); /* W8 */
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(N2_a_lease_that_keeps_its_quorum_without_the_restarted_node_is_not_in_doubt)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    run_until(world_nodes_with("claimd:job:1") == 3);
    restart(0);
    run_until(world_events_of(REDLOCK_EVENT_QUARANTINED) == 1);
    world_run_for(100 * US_PER_MS);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT], 0);
    restart(1); /* only one of three is left, which the next round finds (E3) */
    run_until(world.states[REDLOCK_STATE_SUSPECT] == 1);
    run_until(world.states[REDLOCK_STATE_LOST] == 1);
    ck_assert_int_lt(world.lost_at_us, redlock_batch_deadline_us(b, 0));
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(N2_a_vote_of_a_restarted_node_wins_no_acquisition_that_is_under_way)
{
    world_start(3, NULL);
    world.options.ttl_us = 60 * US_PER_S;
    world.options.ttl_max_us = world.options.ttl_us;
    world.options.node_timeout_us = 5 * US_PER_S;
    world_open_voting();
    (void)cli(2, "SET", "claimd:job:1", "somebody");
    world_signal(1, 2, SIGSTOP);
    world_acquire_start(world.lock, 1, 1);
    run_until(strcmp(cli(0, "EXISTS", "claimd:job:1"), "1") == 0);
    world_run_for(50 * US_PER_MS); /* its vote has arrived */
    restart(0);
    run_until(world_events_of(REDLOCK_EVENT_QUARANTINED) == 1);
    ck_assert_ptr_null(world_acquired());
    world_signal(1, 2, SIGCONT); /* one grants the key, one refuses it */
    run_until(world_acquired() != NULL);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->results[REDLOCK_OK], 0);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->results[REDLOCK_SPLIT], 1);
}
END_TEST

static void check_refused(const char *extra, const char *reason)
{
    world_start(1, extra);
    world_open();
    run_until(world_events_of(REDLOCK_EVENT_REFUSED) == 1);
    ck_assert_msg(strstr(world.events[0].why, reason) != NULL, "%s", world.events[0].why);
    ck_assert_uint_eq(redlock_async_voting(world.lock), 0);
}

START_TEST(N3_a_replica_is_refused)
{
    check_refused("replicaof 127.0.0.1 1", "a replica");
}
END_TEST

START_TEST(N3_a_node_of_a_redis_cluster_is_refused)
{
    char extra[160];
    (void)snprintf(extra, sizeof extra,
                   "cluster-enabled yes\nbind 127.0.0.1\nport %d\ncluster-port %d", port_free(),
                   port_free());
    check_refused(extra, "Redis Cluster");
}
END_TEST

START_TEST(N5_a_node_that_evicts_is_refused)
{
    check_refused("maxmemory 100mb\nmaxmemory-policy allkeys-lru", "allkeys-lru");
}
END_TEST

START_TEST(N5_a_bounded_memory_without_eviction_is_fine)
{
    world_start(1, "maxmemory 100mb");
    world_open_voting();
}
END_TEST

START_TEST(N3_N5_unsafe_nodes_may_be_allowed)
{
    world_start(1, "maxmemory 100mb\nmaxmemory-policy allkeys-lru");
    world.options.allow_unsafe = true;
    world_open_voting();
}
END_TEST

/* No lock is requested in the meantime: the nodes are checked anyway. */
static void expect_refusal_until_mended(const char *what, const char *const *mend)
{
    run_until(world_events_of(REDLOCK_EVENT_REFUSED) == 1);
    ck_assert_ptr_nonnull(strstr(world_last_event(0)->why, what));
    ck_assert_uint_eq(redlock_async_voting(world.lock), 2);
    struct redlock_node_info info = {0};
    redlock_async_node(world.lock, 0, &info);
    ck_assert_int_gt(info.quarantine_ms, 0); /* it may have lost locks */
    (void)world_cli(0, mend);
    run_until(redlock_async_voting(world.lock) == 3);
}

START_TEST(N5_a_node_that_begins_to_evict_is_refused_until_it_stops)
{
    static const char *const mend[] = {"CONFIG", "SET", "maxmemory-policy", "noeviction", NULL};
    world_start(3, NULL);
    given_a_short_memory();
    world_open_voting();
    (void)cli(0, "CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru");
    expect_refusal_until_mended("maxmemory-policy allkeys-lru evicts locks", mend);
}
END_TEST

START_TEST(N3_a_node_that_becomes_a_replica_is_refused_until_it_is_a_master)
{
    static const char *const mend[] = {"REPLICAOF", "NO", "ONE", NULL};
    world_start(3, NULL);
    given_a_short_memory();
    world_open_voting();
    (void)cli(0, "REPLICAOF", "127.0.0.1", "1");
    expect_refusal_until_mended("a replica: lock nodes are independent masters", mend);
}
END_TEST

START_TEST(N2_a_lease_with_votes_of_a_node_that_evicts_is_in_doubt)
{
    world_start(3, NULL);
    given_a_short_memory();
    redis_server_kill(&world.servers[2]);
    world_open();
    run_until(redlock_async_voting(world.lock) == 2);
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    (void)cli(0, "CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru");
    run_until(world.states[REDLOCK_STATE_SUSPECT] == 1);
    run_until(world.states[REDLOCK_STATE_LOST] == 1);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(N7_two_endpoints_of_one_server_are_refused)
{
    world_start(2, NULL);
    redis_server_kill(&world.servers[1]);
    ck_assert_int_eq(symlink(world.servers[0].path, world.servers[1].path), 0);
    world_open();
    run_until(world_events_of(REDLOCK_EVENT_REFUSED) == 1 && redlock_async_voting(world.lock) == 1);
    for (size_t i = 0; i < world.event_count; i++) {
        if (world.events[i].event == REDLOCK_EVENT_REFUSED) {
            ck_assert_ptr_nonnull(strstr(world.events[i].why, "the same server as node"));
        }
    }
}
END_TEST

START_TEST(a_node_that_is_not_there_is_reported_once)
{
    world_start(2, NULL);
    redis_server_kill(&world.servers[1]);
    world_open();
    run_until(world_events_of(REDLOCK_EVENT_UP) == 1 && world_events_of(REDLOCK_EVENT_DOWN) == 1);
    world_run_for(400 * US_PER_MS);
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_DOWN), 1);
    ck_assert_ptr_nonnull(strstr(world_last_event(1)->why, "redis.sock: connect"));
}
END_TEST

START_TEST(C8_a_node_that_goes_on_refusing_is_asked_less_and_less_often)
{
    world_start(3, NULL);
    world_open_voting();
    (void)cli(0, "CONFIG", "SET", "maxmemory", "1");
    for (int64_t end_us = clock_boot_us() + 8 * US_PER_S; clock_boot_us() < end_us;) {
        struct redlock_batch *b = world_acquire(world.lock, 1, 1);
        redlock_batch_release(b, 0);
        world_run_for(50 * US_PER_MS);
    }
    ck_assert_uint_ge(world_events_of(REDLOCK_EVENT_REFUSED), 2);
    /* Attempts after 0, 1, 3 and 7 s. */
    ck_assert_uint_le(world_events_of(REDLOCK_EVENT_REFUSED), 4);
}
END_TEST

START_TEST(C8_a_node_that_answers_with_errors_is_reported_and_not_asked_for_a_while)
{
    world_start(3, NULL);
    given_a_short_memory();
    world_open_voting();
    (void)cli(0, "CONFIG", "SET", "maxmemory", "1"); /* OOM */
    (void)cli(1, "ACL", "SETUSER", "default", "-set");
    (void)world_acquire(world.lock, 1, 2);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->results[REDLOCK_NO_QUORUM], 2);
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_REFUSED), 2);
    ck_assert_ptr_nonnull(strstr(world_last_event(0)->why, "OOM command not allowed"));
    ck_assert_ptr_nonnull(strstr(world_last_event(1)->why, "NOPERM"));
    ck_assert_uint_eq(redlock_async_voting(world.lock), 1);
    (void)cli(0, "CONFIG", "SET", "maxmemory", "0");
    run_until(world_last_event(0)->event == REDLOCK_EVENT_VOTING);
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(C1_one_connection_per_node)
{
    world_start(1, NULL);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    const char *list = cli(0, "CLIENT", "LIST");
    size_t lines = 1;
    for (const char *p = list; (p = strchr(p, '\n')) != NULL; p++) {
        lines++;
    }
    ck_assert_uint_eq(lines, 2); /* ours, and that of redis-cli */
    redlock_batch_release(b, 0);
}
END_TEST

START_TEST(C5_the_rights_of_the_least_privileged_user_are_enough)
{
    world_start(3, "user w on >pw ~claimd:* resetchannels -@all +set +mget +del +pexpire +evalsha "
                   "+eval +script|load +info +time");
    for (size_t i = 0; i < 3; i++) {
        world.nodes[i].user = "w";
        world.nodes[i].password = "pw";
    }
    world.options.ttl_us = 6 * US_PER_S; /* extended every 2 s */
    world.options.node_timeout_us = world.options.ttl_us / 10;
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 2);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    run_until(redlock_async_counters(world.lock)->extended == 2);
    world_release_all(b);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with("claimd:job:1"), 0);
    ck_assert_uint_ge(redlock_async_counters(world.lock)->release_deleted, 4);
}
END_TEST

/* The user lacks the right to CLIENT KILL. */
START_TEST(R1_where_nothing_is_killed_a_release_after_a_reconnect_is_sent_once_more)
{
    char token[64];
    world_start(3, "user default on nopass ~* &* +@all -client|kill\nuser root on >pw ~* &* +@all");
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    run_until(world_nodes_with("claimd:job:1") == 3);
    (void)snprintf(token, sizeof token, "%s", cli(1, "GET", "claimd:job:1"));
    (void)cli(0, "--no-auth-warning", "--user", "root", "--pass", "pw", "CLIENT", "KILL", "USER",
              "default");
    run_until(world_events_of(REDLOCK_EVENT_DOWN) == 1);
    run_until(redlock_async_voting(world.lock) == 3);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with("claimd:job:1"), 0);
    /* The server now runs what was still in its buffers. */
    (void)cli(0, "SET", "claimd:job:1", token);
    run_until(world_nodes_with("claimd:job:1") == 0);
    ck_assert_int_eq(world_calls(0, "evalsha"), 2 + 2); /* the first two belong to a reconnect */
    ck_assert_int_eq(world_calls(1, "evalsha"), 1);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->release_deleted, 3);
    ck_assert_uint_eq(redlock_async_counters(world.lock)->release_unknown, 0);
}
END_TEST

START_TEST(R1_where_it_was_killed_a_release_after_a_reconnect_is_sent_once)
{
    world_start(3, NULL);
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    (void)cli(0, "CLIENT", "KILL", "TYPE", "normal");
    run_until(world_events_of(REDLOCK_EVENT_DOWN) == 1);
    run_until(redlock_async_voting(world.lock) == 3);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    world_run_for(3 * world.options.node_timeout_us);
    ck_assert_int_eq(world_calls(0, "evalsha"), 2 + 1); /* the first two belong to a reconnect */
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, N1_nodes_that_just_started_have_no_vote_yet);
    tcase_add_test(t, N1_trusted_nodes_vote_at_once_but_not_after_a_restart);
    tcase_add_test(t, N1_a_connection_that_was_lost_is_no_restart);
    tcase_add_test(t, N2_a_lease_whose_votes_a_restarted_node_forgot_is_in_doubt_at_once);
    tcase_add_test(t, N2_a_lease_that_keeps_its_quorum_without_the_restarted_node_is_not_in_doubt);
    tcase_add_test(t, N2_a_vote_of_a_restarted_node_wins_no_acquisition_that_is_under_way);
    tcase_add_test(t, N3_a_replica_is_refused);
    tcase_add_test(t, N3_a_node_of_a_redis_cluster_is_refused);
    tcase_add_test(t, N5_a_node_that_evicts_is_refused);
    tcase_add_test(t, N5_a_bounded_memory_without_eviction_is_fine);
    tcase_add_test(t, N3_N5_unsafe_nodes_may_be_allowed);
    tcase_add_test(t, C8_a_node_that_goes_on_refusing_is_asked_less_and_less_often);
    tcase_add_test(t, N5_a_node_that_begins_to_evict_is_refused_until_it_stops);
    tcase_add_test(t, N3_a_node_that_becomes_a_replica_is_refused_until_it_is_a_master);
    tcase_add_test(t, N2_a_lease_with_votes_of_a_node_that_evicts_is_in_doubt);
    tcase_add_test(t, N7_two_endpoints_of_one_server_are_refused);
    tcase_add_test(t, a_node_that_is_not_there_is_reported_once);
    tcase_add_test(t, C8_a_node_that_answers_with_errors_is_reported_and_not_asked_for_a_while);
    tcase_add_test(t, C1_one_connection_per_node);
    tcase_add_test(t, R1_where_nothing_is_killed_a_release_after_a_reconnect_is_sent_once_more);
    tcase_add_test(t, R1_where_it_was_killed_a_release_after_a_reconnect_is_sent_once);
    tcase_add_test(t, C5_the_rights_of_the_least_privileged_user_are_enough);
}

int main(void)
{
    return world_main("redlock_nodes", add_tests);
}
