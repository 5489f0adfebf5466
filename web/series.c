/* SPDX-License-Identifier: Apache-2.0 */
#include "web/series.h"

#include "base/clock.h"
#include "ctl/core/human.h"

#include <pthread.h>
#include <stdio.h>

#define MINUTES 1440
#define MINUTE_US (60 * US_PER_S)

struct series {
    pthread_mutex_t mutex;
    struct series_minute minutes[MINUTES]; /* that of minute n is at n % MINUTES */
};

static const struct period {
    const char *name;
    int64_t minutes;
    int64_t step; /* minutes of one row */
} periods[] = {{"15m", 15, 1}, {"1h", 60, 1}, {"24h", MINUTES, 16}};

enum status series_open(struct series **ret, struct err *err)
{
    struct series *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    (void)pthread_mutex_init(&s->mutex, NULL);
    *ret = s;
    return STATUS_OK;
}

void series_close(struct series *s)
{
    if (s != NULL) {
        (void)pthread_mutex_destroy(&s->mutex);
        free(s);
    }
}

static struct series_minute *place_of(struct series *s, int64_t minute)
{
    return &s->minutes[minute % MINUTES];
}

/* The caller holds the mutex. NULL: that minute is not known. */
static const struct series_minute *find(struct series *s, int64_t minute)
{
    const struct series_minute *m = place_of(s, minute);
    return m->at_us / MINUTE_US == minute ? m : NULL;
}

bool series_is_due(struct series *s, int64_t now_us)
{
    (void)pthread_mutex_lock(&s->mutex);
    bool is_due = find(s, now_us / MINUTE_US) == NULL;
    (void)pthread_mutex_unlock(&s->mutex);
    return is_due;
}

void series_add(struct series *s, const struct series_minute *minute)
{
    (void)pthread_mutex_lock(&s->mutex);
    *place_of(s, minute->at_us / MINUTE_US) = *minute;
    (void)pthread_mutex_unlock(&s->mutex);
}

/* Adds up the counts, and takes the highest of the percentiles. The caller holds the mutex. */
static struct series_minute sum(struct series *s, int64_t first, int64_t count)
{
    struct series_minute all = {.wait_p95_s = -1, .run_p95_s = -1};
    for (int64_t minute = first; minute < first + count; minute++) {
        const struct series_minute *m = find(s, minute);
        if (m != NULL) {
            all.at_us = m->at_us;
            all.completed += m->completed;
            all.discarded += m->discarded;
            all.cancelled += m->cancelled;
            all.wait_p95_s = m->wait_p95_s > all.wait_p95_s ? m->wait_p95_s : all.wait_p95_s;
            all.run_p95_s = m->run_p95_s > all.run_p95_s ? m->run_p95_s : all.run_p95_s;
            all.is_estimated = all.is_estimated || m->is_estimated;
        }
    }
    return all;
}

static void put_number(struct text *out, const char *name, double value, bool is_known)
{
    if (is_known && value >= 0) {
        text_put(out, ", \"%s\": %.3f", name, value);
    } else {
        text_put(out, ", \"%s\": null", name);
    }
}

static void put_row(struct text *out, int64_t end, const struct series_minute *m)
{
    char at[HUMAN_TIME_MAX];
    bool is_known = m->at_us != 0;
    human_iso(end * MINUTE_US, at);
    text_put(out, "{\"at\": \"%s\"", at);
    put_number(out, "completed", m->completed, is_known);
    put_number(out, "discarded", m->discarded, is_known);
    put_number(out, "cancelled", m->cancelled, is_known);
    put_number(out, "wait_p95_s", m->wait_p95_s, is_known);
    put_number(out, "run_p95_s", m->run_p95_s, is_known);
    text_put(out, ", \"estimated\": %s}", m->is_estimated ? "true" : "false");
}

static void put_period(struct series *s, const struct period *p, int64_t now_us, struct text *out)
{
    int64_t end = now_us / MINUTE_US + 1;
    text_put(out, "{\"series\": [");
    (void)pthread_mutex_lock(&s->mutex);
    for (int64_t first = end - p->minutes; first < end; first += p->step) {
        struct series_minute all = sum(s, first, p->step);
        text_put(out, "%s", first == end - p->minutes ? "\n    " : ",\n    ");
        put_row(out, first + p->step, &all);
    }
    (void)pthread_mutex_unlock(&s->mutex);
    text_put(out, "],\n \"period\": {\"seconds\": %lld, \"step_s\": %lld}}\n",
             (long long)p->minutes * 60, (long long)p->step * 60);
}

enum status series_put(struct series *s, const char *period, int64_t now_us, struct text *out,
                       struct err *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(periods); i++) {
        if (strcmp(periods[i].name, period) == 0) {
            put_period(s, &periods[i], now_us, out);
            return text_end(out, err);
        }
    }
    return err_fail(err, STATUS_INVALID, "period '%.20s': must be 15m, 1h or 24h", period);
}
