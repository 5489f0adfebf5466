/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "chaos/nemesis.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>

#define STEP_US (20 * US_PER_MS)
#define TIME_US (3600 * US_PER_S)
#define STRIKES_MAX 1000

static const struct options options = {.time_scale = 1, .schedulers = 3, .workers = 12};
static struct world world;

/* What has struck: at which time, and what was drawn. */
struct story {
    int64_t now_us;
    struct {
        char name;
        int64_t at_us;
        int64_t drawn;
    } strikes[STRIKES_MAX];
    size_t count;
    bool is_stopped;
};

static struct story *story;

static bool note(struct nemesis *n)
{
    ck_assert_uint_lt(story->count, STRIKES_MAX);
    story->strikes[story->count].name = n->def->name[0];
    story->strikes[story->count].at_us = story->now_us;
    story->strikes[story->count++].drawn = nemesis_between(n, 0, 1000000);
    return true;
}

static bool strike(struct world *w, struct nemesis *n)
{
    (void)w;
    return note(n);
}

static bool stop(struct world *w, struct nemesis *n)
{
    (void)w;
    ck_assert(!story->is_stopped); /* not again before it is healed */
    story->is_stopped = true;
    return note(n);
}

static void go_on(struct world *w, struct nemesis *n)
{
    (void)w;
    (void)n;
    story->is_stopped = false;
}

static const struct nemesis_def strike_def = {.name = "kill", .every_ms = 10000, .strike = strike};
static const struct nemesis_def stop_def = {.name = "stop",
                                            .every_ms = 15000,
                                            .last_min_ms = 2000,
                                            .last_max_ms = 15000,
                                            .strike = stop,
                                            .heal = go_on};

/* Lets an hour pass. */
static void run(struct story *s, uint64_t seed, bool has_stops)
{
    struct nemeses all = {0};
    *s = (struct story){0};
    story = s;
    nemeses_add(&all, &strike_def, seed);
    if (has_stops) {
        nemeses_add(&all, &stop_def, seed);
    }
    nemeses_begin(&all, &world, 0);
    for (; s->now_us < TIME_US; s->now_us += STEP_US) {
        nemeses_tick(&all, &world, s->now_us);
    }
    nemeses_end(&all, &world);
    ck_assert(!s->is_stopped);
}

static bool is_same(const struct story *a, const struct story *b)
{
    bool is_alike = a->count == b->count;
    for (size_t i = 0; i < a->count && is_alike; i++) {
        is_alike = a->strikes[i].name == b->strikes[i].name &&
                   a->strikes[i].at_us == b->strikes[i].at_us &&
                   a->strikes[i].drawn == b->strikes[i].drawn;
    }
    return is_alike;
}

static int64_t count(const struct story *s, char name)
{
    int64_t times = 0;
    for (size_t i = 0; i < s->count; i++) {
        times += s->strikes[i].name == name;
    }
    return times;
}

static struct story first;
static struct story second;

START_TEST(a_seed_gives_the_same_faults_again_and_another_one_others)
{
    run(&first, 7, true);
    run(&second, 7, true);
    ck_assert(is_same(&first, &second));
    run(&second, 8, true);
    ck_assert(!is_same(&first, &second));
}
END_TEST

START_TEST(a_fault_is_the_same_without_the_others)
{
    run(&first, 7, true);
    run(&second, 7, false);
    size_t kept = 0;
    for (size_t i = 0; i < first.count; i++) {
        if (first.strikes[i].name == 'k') {
            first.strikes[kept++] = first.strikes[i];
        }
    }
    first.count = kept;
    ck_assert(is_same(&first, &second));
}
END_TEST

START_TEST(faults_strike_as_often_as_their_table_says)
{
    run(&first, 1, true);
    int64_t kills = TIME_US / (strike_def.every_ms * US_PER_MS);
    int64_t stops = TIME_US / (stop_def.every_ms * US_PER_MS);
    ck_assert_int_ge(count(&first, 'k'), kills * 9 / 10);
    ck_assert_int_le(count(&first, 'k'), kills * 11 / 10);
    ck_assert_int_ge(count(&first, 's'), stops / 2);
    ck_assert_int_le(count(&first, 's'), stops * 11 / 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nemesis");
    TCase *tcase = tcase_create("nemesis");
    world.options = &options;
    world.nemesis.fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    tcase_add_test(tcase, a_seed_gives_the_same_faults_again_and_another_one_others);
    tcase_add_test(tcase, a_fault_is_the_same_without_the_others);
    tcase_add_test(tcase, faults_strike_as_often_as_their_table_says);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
