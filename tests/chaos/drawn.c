/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/drawn.h"

#include "base/rand.h"
#include "chaos/drawn_dba.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LONGEST_MS 10000
#define QUICKEST_MS 5.0   /* approximate time of a job besides its handler */
#define PACE_MAX 60.0     /* jobs per second of one queue: this is no benchmark */
#define TRICKLE_MOST 0.25 /* fraction of the pace of a queue */
#define LANES_MIN 33000   /* more than the table of the feed has room for */
#define LANES_MAX 45000
#define BURST_S 3 /* time to work off a burst if nothing else comes */

/* ---- drawing ---- */

static int between(struct rand *r, int min, int max)
{
    return min + (int)rand_below(r, max - min + 1);
}

static bool in_percent(struct rand *r, int percent)
{
    return rand_below(r, 100) < percent;
}

/* Draws as many short kinds as long ones, by orders of magnitude; some take no time. */
static void draw_kinds(struct drawn *d, struct rand *r)
{
    for (size_t i = 0; i < DRAWN_KINDS; i++) {
        struct drawn_kind *k = &d->kinds[i];
        double exponent = (double)rand_below(r, 4001) / 1000;
        (void)snprintf(k->name, sizeof k->name, "k%02zu", i);
        k->ms = in_percent(r, 20) ? 0 : (int)pow(10, exponent);
        assert(k->ms <= LONGEST_MS);
    }
}

static void draw_workers(struct drawn *d, struct rand *r)
{
    d->queue_count = (size_t)between(r, 1, DRAWN_QUEUES_MAX);
    d->worker_count = (size_t)between(r, 2, DRAWN_WORKERS_MAX);
    for (size_t w = 0; w < d->worker_count; w++) {
        struct drawn_worker *v = &d->workers[w];
        int percent = between(r, 10, 100);
        /* Draws an exponent first, so that small workers are as likely as large ones. */
        v->slots = between(r, 1, 1 << between(r, 1, 5));
        for (size_t q = 0; q < d->queue_count; q++) {
            /* The first worker serves all queues, so that none is unserved. */
            if (w == 0 || in_percent(r, percent)) {
                v->queues[v->queue_count++] = q;
            }
        }
        if (v->queue_count == 0) {
            v->queues[v->queue_count++] = (size_t)rand_below(r, (int64_t)d->queue_count);
        }
    }
}

static double pace_of(const struct drawn *d, const struct drawn_queue *q, double ms)
{
    double places = 0;
    for (size_t w = 0; w < d->worker_count; w++) {
        const struct drawn_worker *v = &d->workers[w];
        for (size_t i = 0; i < v->queue_count; i++) {
            bool is_its = &d->queues[v->queues[i]] == q;
            places += is_its ? (double)v->slots / (double)v->queue_count : 0;
        }
    }
    places = q->running > 0 && q->running < places ? q->running : places;
    double pace = places * 1000 / (ms + QUICKEST_MS);
    pace = q->rate > 0 && q->rate < pace ? q->rate : pace;
    return pace < PACE_MAX ? pace : PACE_MAX;
}

double drawn_pace(const struct drawn *d, const struct drawn_queue *q, size_t kind)
{
    return pace_of(d, q, d->kinds[kind].ms);
}

static void draw_queue(struct drawn *d, struct rand *r, size_t number)
{
    struct drawn_queue *q = &d->queues[number];
    if (number == 0) {
        (void)snprintf(q->name, sizeof q->name, "default");
    } else {
        (void)snprintf(q->name, sizeof q->name, "q%zu", number);
    }
    q->running = in_percent(r, 30) ? between(r, 1, 8) : 0;
    q->rate = in_percent(r, 15) ? between(r, 5, 50) : 0;
    q->weight = in_percent(r, 20) ? between(r, 1, 10) : 0;
    q->tenants = in_percent(r, 30) ? between(r, 2, 3000) : 0;
    q->key_places = in_percent(r, 20) ? between(r, 1, 3) : 0;
    q->has_priorities = in_percent(r, 40);
    q->kind_count = (size_t)between(r, 1, DRAWN_KINDS_OF_QUEUE);
    double ms = 0;
    for (size_t i = 0; i < q->kind_count; i++) {
        q->kinds[i] = (size_t)rand_below(r, DRAWN_KINDS);
        ms += (double)d->kinds[q->kinds[i]].ms / (double)q->kind_count;
    }
    /* A thousandth of what the queue could do is as likely as a quarter: most worlds have idle
     * workers. */
    q->trickle = pace_of(d, q, ms) * TRICKLE_MOST / pow(10, (double)rand_below(r, 3001) / 1000);
    q->burst = in_percent(r, 70) ? between(r, 2, 100) : 0;
    q->burst_ms = between(r, 4 * BURST_S, 10 * BURST_S) * 1000;
}

void drawn_draw(struct drawn *d, uint64_t number)
{
    struct rand r;
    *d = (struct drawn){.number = number};
    rand_seed(&r, number ^ UINT64_C(0x3017d));
    d->fault_percent = in_percent(&r, 50) ? 0 : between(&r, 5, 20);
    draw_kinds(d, &r);
    draw_workers(d, &r);
    for (size_t q = 0; q < d->queue_count; q++) {
        draw_queue(d, &r, q);
    }
    d->lanes = in_percent(&r, 5) ? between(&r, LANES_MIN, LANES_MAX) : 0;
    d->dba = drawn_dba_draw(&r);
}

/* ---- printing ---- */

static void print_queue(const struct drawn *d, const struct drawn_queue *q)
{
    (void)printf("  queue %s:", q->name);
    if (q->running > 0) {
        (void)printf(" %d at once,", q->running);
    }
    if (q->rate > 0) {
        (void)printf(" %d starts/s,", q->rate);
    }
    if (q->weight > 0) {
        (void)printf(" weight %d,", q->weight);
    }
    if (q->tenants > 0) {
        (void)printf(" %d tenants,", q->tenants);
    }
    if (q->key_places > 0) {
        (void)printf(" keys with %d places,", q->key_places);
    }
    (void)printf("%s %.2f jobs/s", q->has_priorities ? " priorities," : "", q->trickle);
    if (q->burst > 0) {
        (void)printf(" and up to %d at once every %d s", q->burst, q->burst_ms / 1000);
    }
    (void)printf(", of");
    for (size_t i = 0; i < q->kind_count; i++) {
        const struct drawn_kind *k = &d->kinds[q->kinds[i]];
        (void)printf(" %s (%d ms)", k->name, k->ms);
    }
    (void)printf("\n");
}

void drawn_print(const struct drawn *d)
{
    (void)printf("world %llu: %zu workers, %zu queues, %d %% of the faults\n",
                 (unsigned long long)d->number, d->worker_count, d->queue_count, d->fault_percent);
    drawn_dba_print(d->dba);
    if (d->lanes > 0) {
        (void)printf("  %d lanes of jobs of `default` that are due in a day\n", d->lanes);
    }
    for (size_t w = 0; w < d->worker_count; w++) {
        const struct drawn_worker *v = &d->workers[w];
        (void)printf("  worker w%zu: %d slots, for", w + 1, v->slots);
        for (size_t i = 0; i < v->queue_count; i++) {
            (void)printf(" %s", d->queues[v->queues[i]].name);
        }
        (void)printf("\n");
    }
    for (size_t q = 0; q < d->queue_count; q++) {
        print_queue(d, &d->queues[q]);
    }
}

/* ---- preparing ---- */

static enum status prepare_queue(const struct drawn_queue *q, struct session *sql, struct err *err)
{
    enum status st = STATUS_OK;
    if (q->running > 0) {
        st = session_do(sql, err, "SELECT claimd.limit_queue('%s', %d)", q->name, q->running);
    }
    if (st == STATUS_OK && q->rate > 0) {
        st = session_do(sql, err, "SELECT claimd.limit_rate('%s', %d)", q->name, q->rate);
    }
    if (st == STATUS_OK && q->weight > 0) {
        st = session_do(sql, err, "SELECT claimd.weigh_queue('%s', %d)", q->name, q->weight);
    }
    for (int k = 0; st == STATUS_OK && q->key_places > 1 && k < DRAWN_KEYS; k++) {
        st =
            session_do(sql, err, "SELECT claimd.limit_key('%s-%d', %d)", q->name, k, q->key_places);
    }
    return st;
}

/* Runs a statement without triggers, so that its rows are in no books and wake no scheduler. */
static enum status without_triggers(struct session *sql, const char *statement, struct err *err)
{
    enum status st = session_do(sql, err, "SET session_replication_role = replica");
    if (st != STATUS_OK) {
        return st;
    }
    st = session_run(sql, statement, NULL, 0, NULL, err);
    return st == STATUS_OK ? session_do(sql, err, "RESET session_replication_role") : st;
}

enum status drawn_clear(const struct drawn *d, struct session *sql, struct err *err)
{
    return d->lanes == 0
               ? STATUS_OK
               : without_triggers(sql, "DELETE FROM claimd.job WHERE kind = 'in_a_day'", err);
}

static enum status prepare_lanes(const struct drawn *d, struct session *sql, struct err *err)
{
    char statement[512];
    (void)snprintf(statement, sizeof statement,
                   "INSERT INTO claimd.job (kind, queue, priority, share, scheduled_at)"
                   " SELECT 'in_a_day', 'default', n %% 10, 1 + n / 10, now() + interval '1 day'"
                   " FROM generate_series(1, %d) AS n",
                   d->lanes);
    return without_triggers(sql, statement, err);
}

enum status drawn_prepare(const struct drawn *d, struct session *sql, struct err *err)
{
    if (d->lanes > 0) {
        enum status st = prepare_lanes(d, sql, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    for (size_t q = 0; q < d->queue_count; q++) {
        enum status st = prepare_queue(&d->queues[q], sql, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

void drawn_limits(const struct drawn *d, json_t **ret_limits, json_t **ret_rates)
{
    json_t *running = json_object();
    json_t *places = json_object();
    json_t *rates = json_object();
    for (size_t i = 0; i < d->queue_count; i++) {
        const struct drawn_queue *q = &d->queues[i];
        if (q->running > 0) {
            (void)json_object_set_new(running, q->name, json_integer(q->running));
        }
        if (q->rate > 0) {
            (void)json_object_set_new(rates, q->name, json_integer(q->rate));
        }
        for (int k = 0; q->key_places > 1 && k < DRAWN_KEYS; k++) {
            char key[2 * DRAWN_NAME_MAX];
            (void)snprintf(key, sizeof key, "%s-%d", q->name, k);
            (void)json_object_set_new(places, key, json_integer(q->key_places));
        }
    }
    *ret_limits = json_pack("{s:o, s:o}", "queues", running, "keys", places);
    *ret_rates = json_pack("{s:o}", "queues", rates);
}

void drawn_env(const struct drawn *d, size_t worker, char ret_slots[DRAWN_ENV_MAX],
               char ret_queues[DRAWN_ENV_MAX])
{
    const struct drawn_worker *v = &d->workers[worker];
    (void)snprintf(ret_slots, DRAWN_ENV_MAX, "CLAIMD_WORKER_SLOTS=%d", v->slots);
    int n = snprintf(ret_queues, DRAWN_ENV_MAX, "CLAIMD_WORKER_QUEUES=");
    for (size_t i = 0; i < v->queue_count; i++) {
        n += snprintf(ret_queues + n, DRAWN_ENV_MAX - (size_t)n, "%s%s", i > 0 ? "," : "",
                      d->queues[v->queues[i]].name);
        assert(n < DRAWN_ENV_MAX);
    }
}
