/* SPDX-License-Identifier: Apache-2.0
 *
 * Pops from queues with weights: the share of each, and the order. */
#include "test_hints_world.h"

#include <stdio.h>
#include <stdlib.h>

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define MANY 10000

static void push_range(const char *queue, const char *kind, int64_t from, int count, int priority)
{
    static struct hint list[HINTS_PUSH_MAX];
    size_t n = 0;
    for (int64_t id = from; id < from + count; id++) {
        list[n] = given_hint(id, priority, id);
        list[n].queue = queue;
        list[n++].kind = kind;
        if (n == HINTS_PUSH_MAX || id == from + count - 1) {
            push_all(list, n);
            ck_assert_int_eq(world.push_status, STATUS_OK);
            n = 0;
        }
    }
}

static void pop(size_t count)
{
    size_t before = world.popped_count;
    world_want(count);
    RUN_UNTIL(world.popped_count >= before + count);
    ck_assert_uint_eq(world.popped_count, before + count);
}

/* Opens a popper whose next pop uses the script: the first pop blocks, and takes from one set. */
static void open_popper(const char *const *sets)
{
    world_open_popper(sets);
    world.is_want_used_up = true;
    push_one("a", NULL, 1, 0, 1);
    pop(1);
    world.popped_count = 0;
}

static int popped_of(const char *set, size_t from)
{
    int count = 0;
    for (size_t i = from; i < world.popped_count; i++) {
        count += strcmp(world.popped[i].set, set) == 0;
    }
    return count;
}

/* Tolerates two percent of all. */
static void assert_share(const char *set, int wanted_percent)
{
    int all = (int)world.popped_count;
    int off = popped_of(set, 0) * 100 - wanted_percent * all;
    ck_assert_msg(abs(off) <= 2 * all, "%s: %d of %d", set, popped_of(set, 0), all);
}

static const struct {
    size_t size;
    int pops;
} sizes[] = {{1, 1000}, {2, 1000}, {7, 300}, {100, 30}, {500, 10}};

/* By score, a would come last. */
START_TEST(pops_of_any_size_are_shared_by_weight)
{
    open_popper(SETS("a*6", "b*3", "c"));
    push_range("a", NULL, 100000, MANY, 4);
    push_range("b", NULL, 50000, MANY, 4);
    push_range("c", NULL, 10, MANY, 4);
    for (int i = 0; i < sizes[_i].pops; i++) {
        pop(sizes[_i].size);
    }
    assert_share("a", 60);
    assert_share("b", 30);
    assert_share("c", 10);
}
END_TEST

START_TEST(each_queue_gives_its_lowest_scores_whatever_those_of_others_are)
{
    int64_t next[2] = {10, 5000};
    open_popper(SETS("a*3", "b*1"));
    push_range("a", NULL, next[0], 1000, 9);
    push_range("b", NULL, next[1], 1000, 0);
    for (int i = 0; i < 50; i++) {
        pop(16);
    }
    for (size_t i = 0; i < world.popped_count; i++) {
        ck_assert_int_eq(world.popped[i].id, next[world.popped[i].set[0] - 'a']++);
    }
    ck_assert_int_eq(popped_of("b", 0), 200);
}
END_TEST

START_TEST(the_sets_of_a_queue_are_merged_and_count_once)
{
    open_popper(SETS("a*1", "a:x*1", "a:y*1", "b*1"));
    push_range("a", NULL, 1000, 500, 4);
    push_range("a", "x", 500, 500, 4);
    push_range("a", "y", 10, 100, 5);
    push_range("b", NULL, 5000, 1000, 4);
    for (int i = 0; i < 12; i++) {
        pop(100);
    }
    ck_assert_int_eq(popped_of("b", 0), 600);
    ck_assert_int_eq(popped_of("a:x", 0), 500);
    ck_assert_int_eq(popped_of("a", 0), 100);
    ck_assert_int_eq(popped_of("a:y", 0), 0);
}
END_TEST

START_TEST(what_a_queue_lacks_goes_to_the_others_by_weight)
{
    open_popper(SETS("a*80", "b*6", "c*4"));
    push_range("a", NULL, 10, 40, 4);
    push_range("b", NULL, 1000, 1000, 4);
    push_range("c", NULL, 5000, 1000, 4);
    pop(100);
    ck_assert_int_eq(popped_of("a", 0), 40);
    ck_assert_int_eq(popped_of("b", 0) + popped_of("c", 0), 60);
    ck_assert_int_le(abs(popped_of("b", 0) - 36), 2);
    pop(100);
    ck_assert_int_eq(popped_of("b", 100), 60);
    ck_assert_int_eq(popped_of("c", 100), 40);
}
END_TEST

/* The random number that decides whether there is a remainder must not also decide which queue gets
 * it. */
START_TEST(beside_a_queue_that_always_has_one_hint_the_others_are_still_served_by_weight)
{
    open_popper(SETS("a*8", "b*1", "c*1"));
    push_range("b", NULL, 10000, MANY, 4);
    push_range("c", NULL, 30000, MANY, 4);
    for (int i = 0; i < 600; i++) {
        push_one("a", NULL, 10 + i, 4, 1);
        pop(2);
    }
    int b = popped_of("b", 0);
    int c = popped_of("c", 0);
    ck_assert_int_eq(popped_of("a", 0) + b + c, 1200);
    ck_assert_msg(abs(b - c) <= 60, "b: %d, c: %d", b, c);
}
END_TEST

START_TEST(a_pop_brings_all_that_is_wanted_although_two_queues_run_dry)
{
    open_popper(SETS("a*90", "b*9", "c*1"));
    push_range("a", NULL, 10, 10, 4);
    push_range("b", NULL, 100, 30, 4);
    push_range("c", NULL, 1000, 1000, 4);
    pop(100);
    ck_assert_int_eq(popped_of("c", 0), 60);
    ck_assert_uint_eq(world.biggest_pop, 100);
}
END_TEST

START_TEST(all_that_is_there_is_popped_once_when_more_is_wanted)
{
    open_popper(SETS("a*100", "b", "c*3"));
    push_range("a", NULL, 10, 30, 4);
    push_range("b", NULL, 100, 200, 4);
    push_range("c", NULL, 400, 5, 4);
    world_want(500);
    RUN_UNTIL(world.popped_count == 235);
    ck_assert_int_eq(popped_of("a", 0), 30);
    ck_assert_int_eq(popped_of("b", 0), 200);
    ck_assert_int_eq(popped_of("c", 0), 5);
    ck_assert_str_eq(CLI(0, "DBSIZE"), "0\n");
}
END_TEST

START_TEST(other_weights_count_from_the_next_pop_on)
{
    open_popper(SETS("a*9", "b*1"));
    push_range("a", NULL, 10, 1000, 4);
    push_range("b", NULL, 5000, 1000, 4);
    pop(100);
    ck_assert_int_eq(popped_of("a", 0), 90);
    world_listen(SETS("a*1", "b*4"));
    pop(100);
    ck_assert_int_eq(popped_of("a", 100), 20);
    world_listen(SETS("a", "b"));
    pop(100);
    ck_assert_int_eq(popped_of("a", 200), 100);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, pops_of_any_size_are_shared_by_weight, 0, ARRAY_COUNT(sizes));
    tcase_add_test(t, each_queue_gives_its_lowest_scores_whatever_those_of_others_are);
    tcase_add_test(t, the_sets_of_a_queue_are_merged_and_count_once);
    tcase_add_test(t, what_a_queue_lacks_goes_to_the_others_by_weight);
    tcase_add_test(t,
                   beside_a_queue_that_always_has_one_hint_the_others_are_still_served_by_weight);
    tcase_add_test(t, a_pop_brings_all_that_is_wanted_although_two_queues_run_dry);
    tcase_add_test(t, all_that_is_there_is_popped_once_when_more_is_wanted);
    tcase_add_test(t, other_weights_count_from_the_next_pop_on);
}

int main(void)
{
    return world_main("hints_weights", add_tests);
}
