/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of the wall clocks of masters and of the client (lock.A2, N4). Leases are 2 s and steps a
 * minute, so that the whole lifetime of a key is within one step. */
#include "base/buf.h"
#include "support/clock_shim.h"
#include "test_redlock_world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define KEY "claimd:job:1"
#define STEP_US (60 * US_PER_S)
#define STEPPED_MAX 2

static void write_offset(size_t node, int64_t us)
{
    char path[SERVER_PATH_MAX + 16];
    (void)snprintf(path, sizeof path, "%s/clock", world.servers[node].dir);
    autoclose int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, &us, sizeof us, 0), sizeof us);
}

/* Restarts the server with a clock that can be stepped. The shim is beside its data, where the
 * servers' user can read it. */
static void give_clock(size_t node)
{
    char shim[SERVER_PATH_MAX + 16];
    autobuf struct buf out = BUF_INIT(4096);
    int code = -1;
    (void)snprintf(shim, sizeof shim, "%s/shim.so", world.servers[node].dir);
    const char *const argv[] = {"cp", CLOCK_SHIM, shim, NULL};
    ck_assert_int_eq(program_run(argv, NULL, WORLD_LIMIT_US, &out, &code, NULL), STATUS_OK);
    ck_assert_int_eq(code, 0);
    write_offset(node, 0);
    redis_server_kill(&world.servers[node]);
    (void)setenv("LD_PRELOAD", shim, 1);
    (void)setenv("CLOCK_SHIM_FILE", "clock", 1);
    ck_assert_int_eq(redis_server_restart(&world.servers[node], NULL), STATUS_OK);
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv("CLOCK_SHIM_FILE");
}

static struct redlock_batch *given_a_lock_of(int64_t ttl_us)
{
    world_start(5, NULL);
    for (size_t i = 0; i < STEPPED_MAX; i++) {
        give_clock(i);
    }
    world.options.ttl_us = ttl_us;
    world.options.ttl_max_us = ttl_us;
    world.options.node_timeout_us = ttl_us / 10;
    world_open_voting();
    struct redlock_batch *b = world_acquire(world.lock, 1, 1);
    ck_assert_int_eq(redlock_batch_result(b, 0), REDLOCK_OK);
    return b;
}

static struct redlock_batch *given_a_lock(void)
{
    return given_a_lock_of(4 * US_PER_S);
}

static uint64_t extended(void)
{
    return redlock_async_counters(world.lock)->extended;
}

static bool are_clocks_known(void)
{
    size_t known = 0;
    for (size_t i = 0; i < world.count; i++) {
        struct redlock_node_info info;
        redlock_async_node(world.lock, i, &info);
        known += info.clock_offset_us != INT64_MIN;
    }
    return known == world.count;
}

/* Lets another client try all the time. */
static void contend_until(struct redlock_async *other, bool (*is_over)(void))
{
    int64_t end_us = clock_boot_us() + WORLD_LIMIT_US;
    while (!is_over() && clock_boot_us() < end_us) {
        world_acquire_start(other, 1, 1);
        run_until(world_acquired() != NULL);
        ck_assert_uint_eq(redlock_async_counters(other)->results[REDLOCK_OK], 0);
        world_run_for(5 * US_PER_MS);
    }
    ck_assert(is_over());
}

static size_t stepped;

static bool is_over_when_all_are_quarantined_and_trusted_again(void)
{
    return world_events_of(REDLOCK_EVENT_QUARANTINED) == stepped &&
           world_events_of(REDLOCK_EVENT_VOTING) == stepped;
}

START_TEST(N4_T5_a_lock_survives_masters_whose_clocks_go_ahead_and_they_lose_their_votes)
{
    stepped = (size_t)_i;
    struct redlock_batch *b = given_a_lock();
    struct redlock_async *other = world_other_client();
    run_until(are_clocks_known()); /* there is a sample to compare with */
    for (size_t i = 0; i < stepped; i++) {
        write_offset(i, STEP_US);
        ck_assert_str_eq(cli(i, "EXISTS", KEY), "0"); /* the key expired early */
    }
    run_until(world_events_of(REDLOCK_EVENT_QUARANTINED) == stepped);
    ck_assert_uint_eq(redlock_async_voting(world.lock), 5 - stepped);
    for (size_t i = 0; i < stepped; i++) {
        struct redlock_node_info info;
        redlock_async_node(world.lock, i, &info);
        ck_assert_ptr_nonnull(strstr(info.why, "its clock went ahead by "));
        ck_assert_str_eq(info.why, world_last_event(i)->why);
        ck_assert_int_gt(info.clock_offset_us, STEP_US - US_PER_S);
        ck_assert_int_gt(info.quarantine_ms, 1000);
        ck_assert(info.is_up && !info.may_vote);
    }
    contend_until(other, is_over_when_all_are_quarantined_and_trusted_again);
    ck_assert_uint_gt(redlock_async_counters(other)->results[REDLOCK_HELD], 0);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT] + world.states[REDLOCK_STATE_LOST], 0);
    ck_assert_int_eq(redlock_batch_state(b, 0), REDLOCK_STATE_HELD);
    redlock_batch_release(b, 0);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

static bool is_over_after_two_ttls(void)
{
    static int64_t end_us;
    end_us = end_us != 0 ? end_us : clock_boot_us() + 2 * world.options.ttl_us;
    return clock_boot_us() >= end_us;
}

START_TEST(N4_T5_no_second_owner_wins_while_clocks_step_under_the_first_one)
{
    struct redlock_batch *b = given_a_lock_of(8 * US_PER_S);
    struct redlock_async *other = world_other_client();
    for (size_t i = 0; i < (size_t)_i; i++) {
        write_offset(i, STEP_US);
    }
    contend_until(other, is_over_after_two_ttls);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_LOST], 0);
    ck_assert_uint_ge(extended(), 3);
    redlock_batch_release(b, 0);
    redlock_async_close(other, NULL, NULL);
}
END_TEST

START_TEST(N4_T5_a_master_whose_clock_goes_back_keeps_its_vote_with_a_warning)
{
    stepped = (size_t)_i;
    struct redlock_batch *b = given_a_lock();
    run_until(are_clocks_known());
    for (size_t i = 0; i < stepped; i++) {
        write_offset(i, -STEP_US);
    }
    run_until(world_events_of(REDLOCK_EVENT_WARNED) == stepped);
    ck_assert_ptr_nonnull(strstr(world_last_event(0)->why, "its clock went back by "));
    ck_assert_uint_eq(redlock_async_voting(world.lock), 5);
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_QUARANTINED), 0);
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT] + world.states[REDLOCK_STATE_LOST], 0);
    (void)cli(0, "CLIENT", "KILL", "TYPE", "normal"); /* its uptime is negative now */
    run_until(world_last_event(0)->event == REDLOCK_EVENT_UP);
    redlock_batch_release(b, 0);
    world_flush(world.lock);
    ck_assert_uint_eq(world_nodes_with(KEY), 0);
}
END_TEST

START_TEST(A2_T5_a_step_of_the_clients_own_wall_clock_changes_nothing)
{
    int64_t step_us = _i == 0 ? STEP_US : -STEP_US;
    struct redlock_batch *b = given_a_lock();
    run_until(extended() >= 1);
    int64_t deadline_us = redlock_batch_deadline_us(b, 0);
    int64_t wall_us = clock_wall_us();
    clock_shim_step(step_us);
    ck_assert_int_lt(llabs(clock_wall_us() - wall_us - step_us),
                     5 * US_PER_S); /* the step has taken effect */
    ck_assert_int_eq(redlock_batch_deadline_us(b, 0), deadline_us);
    ck_assert_int_eq(redlock_batch_state(b, 0), REDLOCK_STATE_HELD);
    run_until(extended() >= 5); /* long after the old deadline */
    ck_assert_uint_eq(world.states[REDLOCK_STATE_SUSPECT] + world.states[REDLOCK_STATE_LOST], 0);
    ck_assert_uint_eq(world_events_of(REDLOCK_EVENT_QUARANTINED), 0);
    struct redlock_batch *second = world_acquire(world.lock, 2, 1);
    ck_assert_int_eq(redlock_batch_result(second, 0), REDLOCK_OK);
    int64_t left_us = redlock_batch_deadline_us(second, 0) - clock_boot_us();
    ck_assert_int_gt(left_us, world.options.ttl_us / 2);
    ck_assert_int_le(left_us, world.options.ttl_us);
    redlock_batch_release(second, 0);
    redlock_batch_release(b, 0);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(
        t, N4_T5_a_lock_survives_masters_whose_clocks_go_ahead_and_they_lose_their_votes, 1,
        STEPPED_MAX + 1);
    tcase_add_loop_test(t, N4_T5_no_second_owner_wins_while_clocks_step_under_the_first_one, 1,
                        STEPPED_MAX + 1);
    tcase_add_loop_test(t, N4_T5_a_master_whose_clock_goes_back_keeps_its_vote_with_a_warning, 1,
                        STEPPED_MAX + 1);
    tcase_add_loop_test(t, A2_T5_a_step_of_the_clients_own_wall_clock_changes_nothing, 0, 2);
}

int main(void)
{
    return world_main("redlock_clock", add_tests);
}
