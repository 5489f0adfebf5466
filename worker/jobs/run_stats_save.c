/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs/run_stats_save.h"

#include "base/clock.h"
#include "sql/queries.h"
#include "store/pg/params.h"
#include "worker/jobs/jobs.h"

#define PERIOD_US (5 * US_PER_S)
#define GROUP_MAX 64
#define BUCKETS_SIZE ((size_t)RUN_STATS_BUCKETS * 11 + 3)

/* The rows of one statement; names are borrowed. */
struct rows {
    size_t count;
    const char *queues[GROUP_MAX];
    const char *kinds[GROUP_MAX];
    int64_t for_us[GROUP_MAX];
    int64_t runs[GROUP_MAX];
    int64_t run_us[GROUP_MAX];
    const char *buckets[GROUP_MAX];
    char texts[GROUP_MAX][BUCKETS_SIZE];
};

/* Writes "{0,3,1}", up to the last bucket that is not empty. */
static void write_buckets(const struct run_window *window, char *ret_text)
{
    size_t count = RUN_STATS_BUCKETS;
    size_t len = 0;
    while (count > 0 && window->buckets[count - 1] == 0) {
        count--;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t runs = window->buckets[i] < INT32_MAX ? window->buckets[i] : INT32_MAX;
        len +=
            (size_t)snprintf(ret_text + len, BUCKETS_SIZE - len, "%c%u", i == 0 ? '{' : ',', runs);
    }
    (void)snprintf(ret_text + len, BUCKETS_SIZE - len, "%s", count > 0 ? "}" : "{}");
}

static void add(struct rows *rows, const struct run_length *length, int64_t now_us)
{
    struct run_window sum;
    size_t n = rows->count++;
    run_stats_sum(&length->stats, &sum);
    rows->queues[n] = lengths_queue(length);
    rows->kinds[n] = lengths_kind(length);
    rows->for_us[n] = now_us - sum.since_us;
    rows->runs[n] = sum.runs;
    rows->run_us[n] = sum.run_us;
    write_buckets(&sum, rows->texts[n]);
    rows->buckets[n] = rows->texts[n];
}

static void on_saved(void *ctx, enum status st, const struct pg_result *const *results,
                     const struct err *err)
{
    struct jobs *j = ctx;
    (void)results;
    j->run_stats_save.is_in_flight = false;
    if (st == STATUS_OK) {
        log_recovered("run_lengths_recovered", &j->run_stats_save.complaint);
    } else if (complaint_due(&j->run_stats_save.complaint, clock_boot_us())) {
        log_warn("run_lengths_failed", LOG_TEXT("err", err->msg),
                 LOG_TEXT("action", "claimctl kinds shows what was saved before"));
    }
}

static bool send_rows(struct jobs *j, const struct rows *rows)
{
    struct params p = {.count = 0};
    struct pg_request request = {.step_count = 1, .done = on_saved, .ctx = j};
    params_uuid(&p, j->env.standing->worker_id);
    params_text_array(&p, rows->queues, NULL, rows->count);
    params_text_array(&p, rows->kinds, NULL, rows->count);
    params_i64_array(&p, rows->for_us, rows->count);
    params_i64_array(&p, rows->runs, rows->count);
    params_i64_array(&p, rows->run_us, rows->count);
    params_text_array(&p, rows->buckets, NULL, rows->count);
    enum status st = params_step(&p, &SQL_WORKER_RUN_LENGTHS, &request.steps[0], NULL);
    if (st == STATUS_OK) {
        st = pg_send(j->env.servers->pg, &request, NULL);
    }
    params_release(&p);
    return st == STATUS_OK;
}

/* Sends a group of rows that have changed since they were last sent; false if there are none. Each
 * row holds all runs, so a row that is lost is replaced when its kind runs again. */
static bool save_some(struct jobs *j, int64_t now_us)
{
    struct rows *rows = NULL;
    for (struct run_length *l = j->env.lengths->by_name;
         l != NULL && (rows == NULL || rows->count < GROUP_MAX); l = l->hh.next) {
        if (l->stats.changed_us <= l->saved_us) {
            continue;
        }
        rows = rows != NULL ? rows : calloc(1, sizeof *rows);
        if (rows == NULL) {
            return false;
        }
        add(rows, l, now_us);
        l->saved_us = now_us;
    }
    bool is_sent = rows != NULL && send_rows(j, rows);
    j->run_stats_save.is_in_flight = j->run_stats_save.is_in_flight || is_sent;
    free(rows);
    return is_sent;
}

void run_stats_save_tick(struct jobs *j, int64_t now_us)
{
    struct run_stats_save *s = &j->run_stats_save;
    if (s->is_in_flight || now_us < s->next_us || !j->env.standing->is_registered ||
        !pg_is_up(j->env.servers->pg)) {
        return;
    }
    if (!save_some(j, now_us)) {
        s->next_us = now_us + PERIOD_US;
    }
}

void run_stats_save_last(struct jobs *j)
{
    int64_t now_us = clock_boot_us();
    while (j->env.standing->is_registered && pg_is_up(j->env.servers->pg) && save_some(j, now_us)) {
    }
}
