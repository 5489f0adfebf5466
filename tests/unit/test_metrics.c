/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics/metrics.h"
#include "support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>

#define TEXT_MAX ((size_t)1 << 20)

static const double few_bounds[] = {0.5, 2, 0};
static const struct metric_family finished = {.name = "t_finished_total",
                                              .help = "Ends.",
                                              .type = METRIC_COUNTER,
                                              .labels = {"kind", "outcome"}};
static const struct metric_family slots = {
    .name = "t_slots", .help = "Slots.", .type = METRIC_GAUGE};
static const struct metric_family depth = {
    .name = "t_jobs", .help = "Jobs.", .type = METRIC_GAUGE, .labels = {"queue"}};
static const struct metric_family taken = {.name = "t_taken_seconds",
                                           .help = "Time.",
                                           .type = METRIC_HISTOGRAM,
                                           .labels = {"kind"},
                                           .bounds = few_bounds};

static struct metrics *opened(void)
{
    struct metrics *m = NULL;
    ck_assert_int_eq(metrics_open(&m, NULL), STATUS_OK);
    return m;
}

static void ck_text_is(const struct metrics *m, const char *expected)
{
    autobuf struct buf text = BUF_INIT(TEXT_MAX);
    ck_assert_int_eq(metrics_render(m, &text, NULL), STATUS_OK);
    ck_assert_str_eq(text.len == 0 ? "" : buf_at(&text), expected);
}

static void ck_text_has(const struct metrics *m, const char *line)
{
    autobuf struct buf text = BUF_INIT(TEXT_MAX);
    ck_assert_int_eq(metrics_render(m, &text, NULL), STATUS_OK);
    ck_assert_msg(strstr(buf_at(&text), line) != NULL, "no '%s' in\n%s", line, buf_at(&text));
}

START_TEST(families_are_shown_in_the_order_of_their_first_use_each_with_its_type)
{
    struct metrics *m = opened();
    metric_set(metrics_series(m, &slots, NULL, NULL), 8);
    metric_add(metrics_series(m, &finished, "checksum", "completed"), 2);
    metric_add(metrics_series(m, &finished, "checksum", "retry"), 0);
    metric_add(metrics_series(m, &finished, "checksum", "completed"), 3);
    ck_text_is(m, "# HELP t_slots Slots.\n"
                  "# TYPE t_slots gauge\n"
                  "t_slots 8\n"
                  "# HELP t_finished_total Ends.\n"
                  "# TYPE t_finished_total counter\n"
                  "t_finished_total{kind=\"checksum\",outcome=\"completed\"} 5\n"
                  "t_finished_total{kind=\"checksum\",outcome=\"retry\"} 0\n");
    metrics_close(m);
}
END_TEST

START_TEST(a_histogram_shows_cumulative_buckets_a_sum_and_a_count)
{
    struct metrics *m = opened();
    struct metric *h = metrics_series(m, &taken, "noop", NULL);
    metric_observe_us(h, 500000); /* equal to a bound: in that bucket */
    metric_observe_us(h, 1500000);
    metric_observe(h, 2.25);
    metric_observe_us(h, -7); /* a clock that was set back */
    ck_text_is(m, "# HELP t_taken_seconds Time.\n"
                  "# TYPE t_taken_seconds histogram\n"
                  "t_taken_seconds_bucket{kind=\"noop\",le=\"0.5\"} 2\n"
                  "t_taken_seconds_bucket{kind=\"noop\",le=\"2\"} 3\n"
                  "t_taken_seconds_bucket{kind=\"noop\",le=\"+Inf\"} 4\n"
                  "t_taken_seconds_sum{kind=\"noop\"} 4.25\n"
                  "t_taken_seconds_count{kind=\"noop\"} 4\n");
    metrics_close(m);
}
END_TEST

START_TEST(durations_have_rising_bounds_from_100_us_to_an_hour)
{
    size_t n = 0;
    while (metric_seconds[n] > 0) {
        ck_assert(n == 0 || metric_seconds[n] > metric_seconds[n - 1]);
        n++;
    }
    ck_assert_double_eq(metric_seconds[0], 0.0001);
    ck_assert_double_eq(metric_seconds[n - 1], 3600);
}
END_TEST

START_TEST(label_values_are_escaped_and_what_is_no_utf8_becomes_a_question_mark)
{
    static const char *const pairs[][2] = {
        {"a\"b\\c\nd", "a\\\"b\\\\c\\nd"},
        {"gr\xC3\xBC\xC3\x9F", "gr\xC3\xBC\xC3\x9F"},
        {"\xF0\x9F\x90\x98", "\xF0\x9F\x90\x98"},
        {"cut \xC3", "cut ?"},
        {"latin \xFC.", "latin ?."},
        {"overlong \xC0\xAF \xE0\x80\xAF", "overlong ?? ???"},
        {"surrogate \xED\xA0\x80", "surrogate ???"},
        {"beyond \xF4\x90\x80\x80", "beyond ????"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) {
        char line[128];
        struct metrics *m = opened();
        metric_set(metrics_series(m, &depth, pairs[i][0], NULL), 1);
        (void)snprintf(line, sizeof line, "\nt_jobs{queue=\"%s\"} 1\n", pairs[i][1]);
        ck_text_has(m, line);
        metrics_close(m);
    }
}
END_TEST

START_TEST(numbers_are_written_so_that_prometheus_reads_them_back)
{
    static const struct {
        double number;
        const char *text;
    } cases[] = {{0, "0"},
                 {-3, "-3"},
                 {0.25, "0.25"},
                 {1e15, "1000000000000000"},
                 {1e300, "1e+300"},
                 {1774150000.123, "1774150000.123"},
                 {HUGE_VAL, "+Inf"},
                 {-HUGE_VAL, "-Inf"},
                 {(double)NAN, "NaN"}};
    struct metrics *m = opened();
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char line[64];
        metric_set(metrics_series(m, &slots, NULL, NULL), cases[i].number);
        (void)snprintf(line, sizeof line, "\nt_slots %s\n", cases[i].text);
        ck_text_has(m, line);
    }
    metrics_close(m);
}
END_TEST

START_TEST(a_counter_takes_over_the_value_that_somebody_else_keeps)
{
    struct metrics *m = opened();
    struct metric *c = metrics_series(m, &finished, "noop", "completed");
    metric_take(c, UINT64_MAX);
    ck_text_has(m, "{kind=\"noop\",outcome=\"completed\"} 18446744073709551615\n");
    metric_take_us(metrics_series(m, &finished, "cpu", "used"), 1500000);
    ck_text_has(m, "{kind=\"cpu\",outcome=\"used\"} 1.5\n");
    metrics_close(m);
}
END_TEST

START_TEST(series_above_the_bound_are_counted_together_under_other)
{
    struct metrics *m = opened();
    char kind[32];
    for (int i = 0; i < METRICS_SERIES_MAX + 50; i++) {
        (void)snprintf(kind, sizeof kind, "kind_%d", i);
        metric_add(metrics_series(m, &finished, kind, i % 2 == 0 ? "completed" : "retry"), 1);
    }
    ck_text_has(m, "{kind=\"kind_199\",outcome=\"retry\"} 1\n");
    ck_text_has(m, "{kind=\"other\",outcome=\"completed\"} 25\n");
    ck_text_has(m, "{kind=\"other\",outcome=\"retry\"} 25\n");
    /* This pair has a series of its own. */
    metric_add(metrics_series(m, &finished, "kind_0", "completed"), 1);
    ck_text_has(m, "{kind=\"kind_0\",outcome=\"completed\"} 2\n");
    metrics_close(m);
}
END_TEST

START_TEST(the_second_label_does_not_break_the_bound_either)
{
    struct metrics *m = opened();
    char text[32];
    struct metric *last = NULL;
    for (int i = 0; i < METRICS_SERIES_MAX * 3; i++) {
        (void)snprintf(text, sizeof text, "v%d", i);
        last = metrics_series(m, &finished, text, text);
    }
    ck_assert_ptr_eq(last, metrics_series(m, &finished, "new", "new"));
    autobuf struct buf out = BUF_INIT(TEXT_MAX);
    ck_assert_int_eq(metrics_render(m, &out, NULL), STATUS_OK);
    size_t lines = 0;
    for (const char *p = strchr(buf_at(&out), '\n'); p != NULL; p = strchr(p + 1, '\n')) {
        lines++;
    }
    ck_assert_uint_le(lines, METRICS_SERIES_MAX + 16 + 2);
    ck_text_has(m, "{kind=\"other\",outcome=\"other\"} 0\n");
    metrics_close(m);
}
END_TEST

START_TEST(of_three_labels_the_last_one_is_kept_above_the_bound)
{
    static const struct metric_family ended = {.name = "claimd_ended_total",
                                               .help = "Ends.",
                                               .type = METRIC_COUNTER,
                                               .labels = {"queue", "kind", "outcome"}};
    struct metrics *m = opened();
    char kind[32];
    for (int i = 0; i < METRICS_SERIES_MAX; i++) {
        (void)snprintf(kind, sizeof kind, "k%d", i / 2);
        metric_add(metrics_series_of(m, &ended,
                                     (const char *[]){"q", kind, i % 2 == 0 ? "done" : "failed"}),
                   1);
    }
    metric_add(metrics_series_of(m, &ended, (const char *[]){"q", "k0", "failed"}), 6);
    metric_add(metrics_series_of(m, &ended, (const char *[]){"q", "new", "failed"}), 2);
    metric_add(metrics_series_of(m, &ended, (const char *[]){"p", "k0", "failed"}), 3);
    ck_text_has(m, "{queue=\"q\",kind=\"k0\",outcome=\"failed\"} 7\n");
    ck_text_has(m, "{queue=\"other\",kind=\"other\",outcome=\"failed\"} 5\n");
    metrics_close(m);
}
END_TEST

START_TEST(a_gauge_above_the_bound_is_left_out_rather_than_wrong)
{
    struct metrics *m = opened();
    char queue[32];
    for (int i = 0; i < METRICS_SERIES_MAX; i++) {
        (void)snprintf(queue, sizeof queue, "queue_%d", i);
        ck_assert_ptr_nonnull(metrics_series(m, &depth, queue, NULL));
    }
    ck_assert_ptr_null(metrics_series(m, &depth, "one_more", NULL));
    metrics_close(m);
}
END_TEST

START_TEST(without_a_registry_nothing_is_counted_and_nothing_breaks)
{
    struct metric *none = metrics_series(NULL, &finished, "a", "b");
    ck_assert_ptr_null(none);
    metric_add(none, 1);
    metric_take(none, 1);
    metric_set(none, 1);
    metric_observe(none, 1);
    metric_observe_us(none, 1);
    metrics_forget(NULL, &depth);
    metrics_close(NULL);
    ck_text_is(NULL, "");
}
END_TEST

START_TEST(missing_and_needless_label_values_do_no_harm)
{
    struct metrics *m = opened();
    ck_assert_ptr_eq(metrics_series(m, &slots, "needless", "too"),
                     metrics_series(m, &slots, NULL, NULL));
    metric_add(metrics_series(m, &finished, NULL, "retry"), 1);
    ck_text_has(m, "t_finished_total{kind=\"\",outcome=\"retry\"} 1\n");
    metrics_close(m);
}
END_TEST

START_TEST(long_label_values_are_cut_and_still_told_apart_by_what_is_kept)
{
    struct metrics *m = opened();
    char value[1000];
    memset(value, 'q', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    struct metric *made = metrics_series(m, &depth, value, NULL);
    ck_assert_ptr_eq(metrics_series(m, &depth, value, NULL), made);
    value[0] = 'r';
    ck_assert_ptr_ne(metrics_series(m, &depth, value, NULL), made);
    metrics_close(m);
}
END_TEST

START_TEST(a_family_whose_series_are_forgotten_is_shown_no_more_until_it_is_used_again)
{
    struct metrics *m = opened();
    metric_set(metrics_series(m, &depth, "gone", NULL), 3);
    metrics_forget(m, &depth);
    metrics_forget(m, &slots); /* never used */
    ck_text_is(m, "");
    metric_set(metrics_series(m, &depth, "new", NULL), 4);
    ck_text_is(m, "# HELP t_jobs Jobs.\n# TYPE t_jobs gauge\nt_jobs{queue=\"new\"} 4\n");
    metrics_close(m);
}
END_TEST

START_TEST(a_text_that_does_not_fit_is_refused)
{
    struct metrics *m = opened();
    struct err err = {0};
    autobuf struct buf small = BUF_INIT(40);
    metric_set(metrics_series(m, &depth, "queue", NULL), 3);
    ck_assert_int_eq(metrics_render(m, &small, &err), STATUS_LIMIT);
    ck_assert_uint_le(small.len, 40);
    ck_assert_int_eq(err.status, STATUS_LIMIT);
    metrics_close(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("metrics");
    TCase *t = tcase_create("metrics");
    tcase_add_test(t, families_are_shown_in_the_order_of_their_first_use_each_with_its_type);
    tcase_add_test(t, a_histogram_shows_cumulative_buckets_a_sum_and_a_count);
    tcase_add_test(t, durations_have_rising_bounds_from_100_us_to_an_hour);
    tcase_add_test(t, label_values_are_escaped_and_what_is_no_utf8_becomes_a_question_mark);
    tcase_add_test(t, numbers_are_written_so_that_prometheus_reads_them_back);
    tcase_add_test(t, a_counter_takes_over_the_value_that_somebody_else_keeps);
    tcase_add_test(t, series_above_the_bound_are_counted_together_under_other);
    tcase_add_test(t, the_second_label_does_not_break_the_bound_either);
    tcase_add_test(t, of_three_labels_the_last_one_is_kept_above_the_bound);
    tcase_add_test(t, a_gauge_above_the_bound_is_left_out_rather_than_wrong);
    tcase_add_test(t, without_a_registry_nothing_is_counted_and_nothing_breaks);
    tcase_add_test(t, missing_and_needless_label_values_do_no_harm);
    tcase_add_test(t, long_label_values_are_cut_and_still_told_apart_by_what_is_kept);
    tcase_add_test(t, a_family_whose_series_are_forgotten_is_shown_no_more_until_it_is_used_again);
    tcase_add_test(t, a_text_that_does_not_fit_is_refused);
    suite_add_tcase(s, t);
    return suite_run(s);
}
