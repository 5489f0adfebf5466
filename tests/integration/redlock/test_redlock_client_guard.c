/* SPDX-License-Identifier: Apache-2.0
 *
 * REDLOCK_WITH: however its body is left, the lock is released; and without the lock, the body does
 * not run. */
#include "test_redlock_client_world.h"

static int runs;

static bool is_free(const char *key)
{
    return nodes_with(key) == 0;
}

START_TEST(a_scope_runs_its_body_once_under_the_lock)
{
    given_client(3);
    REDLOCK_WITH(lock, redlock_try(world.client, "job:1", &lock))
    {
        runs++;
        ck_assert_uint_ge(nodes_with("job:1"), 2);
    }
    ck_assert_int_eq(runs, 1);
    until(is_free("job:1"));
}
END_TEST

START_TEST(a_scopes_body_does_not_run_without_the_lock_and_the_result_says_why)
{
    given_nodes(3, NULL);
    world.client = client_of_world();
    struct redlock_lock *held = given_lock("job:1");
    enum redlock_result result = REDLOCK_OK;
    REDLOCK_WITH(lock, result = redlock_try(world.client, "job:1", &lock))
    {
        runs++;
    }
    ck_assert_int_eq(runs, 0);
    ck_assert_int_eq(result, REDLOCK_HELD);
    ck_assert_int_eq(redlock_state(held), REDLOCK_STATE_HELD);
    ck_assert_int_eq(redlock_unlock(held, NULL), REDLOCK_OK);
    REDLOCK_WITH(lock, result = redlock_try(world.client, "", &lock))
    {
        runs++;
    }
    ck_assert_int_eq(runs, 0);
    ck_assert_int_eq(result, REDLOCK_INVALID);
}
END_TEST

static int leave_by_return(void)
{
    REDLOCK_WITH(lock, redlock_try(world.client, "job:1", &lock))
    {
        return 7;
    }
    return 0;
}

START_TEST(a_scope_is_left_by_return)
{
    given_client(3);
    ck_assert_int_eq(leave_by_return(), 7);
    until(is_free("job:1"));
}
END_TEST

START_TEST(a_scope_is_left_by_break_and_a_loop_around_it_goes_on)
{
    given_client(3);
    for (int i = 0; i < 3; i++) {
        REDLOCK_WITH(lock, redlock_try(world.client, "job:1", &lock))
        {
            runs++;
            break;
        }
    }
    ck_assert_int_eq(runs, 3); /* a lock that was not released would have stopped the second run */
    until(is_free("job:1"));
}
END_TEST

START_TEST(a_scope_is_left_by_continue)
{
    int after = 0;
    given_client(3);
    for (int i = 0; i < 3; i++) {
        REDLOCK_WITH(lock, redlock_try(world.client, "job:1", &lock))
        {
            runs++;
            if (i < 2) {
                continue; /* continues the scope: it ends, and the outer loop continues after it */
            }
            runs += 10;
        }
        after++;
    }
    ck_assert_int_eq(runs, 13);
    ck_assert_int_eq(after, 3);
    until(is_free("job:1"));
}
END_TEST

START_TEST(a_scope_is_left_by_goto)
{
    given_client(3);
    REDLOCK_WITH(lock, redlock_try(world.client, "job:1", &lock))
    {
        runs++;
        goto out;
    }
    runs = 100;
out:
    ck_assert_int_eq(runs, 1);
    until(is_free("job:1"));
}
END_TEST

START_TEST(scopes_nest_and_name_their_handles)
{
    given_client(3);
    REDLOCK_WITH(outer, redlock_try(world.client, "job:1", &outer))
    {
        REDLOCK_WITH(inner, redlock_try(world.client, "job:2", &inner))
        {
            runs++;
            ck_assert_str_eq(redlock_lock_key(outer, NULL), "job:1");
            ck_assert_str_eq(redlock_lock_key(inner, NULL), "job:2");
            ck_assert(is_held(outer) && is_held(inner));
        }
        until(is_free("job:2"));
        ck_assert_uint_ge(nodes_with("job:1"), 2);
    }
    ck_assert_int_eq(runs, 1);
    until(is_free("job:1"));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, a_scope_runs_its_body_once_under_the_lock);
    tcase_add_test(t, a_scopes_body_does_not_run_without_the_lock_and_the_result_says_why);
    tcase_add_test(t, a_scope_is_left_by_return);
    tcase_add_test(t, a_scope_is_left_by_break_and_a_loop_around_it_goes_on);
    tcase_add_test(t, a_scope_is_left_by_continue);
    tcase_add_test(t, a_scope_is_left_by_goto);
    tcase_add_test(t, scopes_nest_and_name_their_handles);
}

int main(void)
{
    return client_world_main("redlock_client_guard", add_tests);
}
