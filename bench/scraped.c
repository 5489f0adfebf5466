/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures what scraping /metrics costs: the same drain with and without scrapes, in turns. The
 * results are medians of the ratios within a round, so that a disturbance affects both sides
 * alike. */
#include "base/clock.h"
#include "bench/drain.h"
#include "bench/figures.h"
#include "bench/report.h"
#include "bench/workloads.h"
#include "cluster/scrape.h"

#include <inttypes.h>
#include <stdio.h>

#define PER_S 10 /* scrapes of each daemon per second */
#define SCRAPE_TIMEOUT_US US_PER_S
#define SCRAPES_MAX 200000
#define ROUNDS_MAX 20
#define TEXT_MAX ((size_t)8 << 20)

struct scraper {
    struct cluster *cluster;
    uv_timer_t timer;
    int64_t *took_us;
    size_t count;
    size_t failed;
    size_t bytes; /* size of the last text of a worker */
};

/* ---- scrapes ---- */

static void scrape_one(struct scraper *s, size_t daemon)
{
    autobuf struct buf text = BUF_INIT(TEXT_MAX);
    int64_t begun_us = clock_boot_us();
    if (scrape_get(s->cluster->http[daemon], "/metrics", SCRAPE_TIMEOUT_US, &text, NULL) !=
        STATUS_OK) {
        s->failed++; /* it has usually just been started */
        return;
    }
    if (s->count < SCRAPES_MAX) {
        s->took_us[s->count++] = clock_boot_us() - begun_us;
    }
    s->bytes = text.len;
}

static void on_scrape(uv_timer_t *timer)
{
    struct scraper *s = timer->data;
    for (size_t i = 0; i <= s->cluster->options.workers; i++) {
        scrape_one(s, i);
    }
}

static void on_running(void *ctx, bool is_running)
{
    struct scraper *s = ctx;
    if (is_running) {
        (void)uv_timer_start(&s->timer, on_scrape, 0, 1000 / PER_S);
    } else {
        (void)uv_timer_stop(&s->timer);
    }
}

/* ---- all drains ---- */

static void add_results(json_t *result, struct drain_speed sides[ROUNDS_MAX][2], size_t rounds,
                        struct scraper *s)
{
    double rate_ratios[ROUNDS_MAX];
    double cpu_ratios[ROUNDS_MAX];
    double rates[2][ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++) {
        rates[0][i] = sides[i][0].jobs_per_s;
        rates[1][i] = sides[i][1].jobs_per_s;
        rate_ratios[i] = rates[1][i] / rates[0][i];
        cpu_ratios[i] = sides[i][1].cpu_us_per_job / sides[i][0].cpu_us_per_job;
    }
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"jobs_per_s", figures_median(rates[0], rounds)},
                   {"jobs_per_s_scraped", figures_median(rates[1], rounds)},
                   {"throughput_ratio", figures_median(rate_ratios, rounds)},
                   {"cpu_per_job_ratio", figures_median(cpu_ratios, rounds)}};
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        (void)json_object_set_new(result, numbers[i].name, json_real(numbers[i].value));
    }
    if (s->count > 0) {
        report_times(result, "scrape_", s->took_us, s->count);
    }
    (void)json_object_set_new(result, "scrapes", json_integer((json_int_t)s->count));
    (void)json_object_set_new(result, "scrapes_failed", json_integer((json_int_t)s->failed));
    (void)json_object_set_new(result, "text_bytes", json_integer((json_int_t)s->bytes));
}

enum status scraped_run(struct cluster *c, const struct bench_options *options, json_t *result,
                        struct err *err)
{
    struct drain_speed sides[ROUNDS_MAX][2] = {0};
    size_t rounds = (size_t)options->rounds;
    struct scraper scraper = {.cluster = c, .took_us = calloc(SCRAPES_MAX, sizeof(int64_t))};
    if (scraper.took_us == NULL) {
        return err_fail(err, STATUS_NOMEM, "times of scrapes");
    }
    (void)uv_timer_init(&c->loop, &scraper.timer);
    scraper.timer.data = &scraper;
    enum status st = STATUS_OK;
    for (size_t n = 0; n < 2 * rounds && st == STATUS_OK; n++) {
        size_t round = n / 2;
        size_t side = (n + round) % 2; /* 0 1, 1 0, 0 1, … */
        struct drain_plan plan = {.jobs = options->jobs};
        if (side == 1) {
            plan.on_running = on_running;
            plan.ctx = &scraper;
        }
        st = drain_timed(c, &plan, &sides[round][side], err);
        (void)fprintf(stderr, "bench: round %zu, %s: %.0f jobs/s\n", round + 1,
                      side == 1 ? "scraped" : "not scraped",
                      st == STATUS_OK ? sides[round][side].jobs_per_s : 0);
    }
    uv_close((uv_handle_t *)&scraper.timer, NULL);
    (void)uv_run(&c->loop, UV_RUN_NOWAIT); /* the timer is on this stack */
    (void)json_object_set_new(result, "jobs", json_integer(options->jobs));
    (void)json_object_set_new(result, "rounds", json_integer(options->rounds));
    if (st == STATUS_OK) {
        add_results(result, sides, rounds, &scraper);
    }
    free(scraper.took_us);
    return st;
}
