/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/load.h"

#include "base/buf.h"
#include "base/clock.h"
#include "chaos/load_process.h"

#include <poll.h>
#include <stdio.h>

#define ROUND_MAX 10000
#define ROUNDS 40
#define THOUSAND 1000
#define PRESSURE 80              /* jobs of priority 0 in the queue where priorities age */
#define OPEN_MAX 100000          /* open jobs; with more, the next round waits */
#define LEAST_US (40 * US_PER_S) /* from the first round to the last: the faults need time */
#define STATEMENT_US (60 * US_PER_S)
#define ACT_US (US_PER_S / 2)
#define FILTER_US (5 * US_PER_S)
#define TURN_MS 50
#define STOP_US (90 * US_PER_S)
#define OUTPUT_MAX ((size_t)1 << 20)

struct load {
    const struct world *world;
    int who; /* 0 makes the rounds */
    struct session sql;
    int64_t jobs;
    int64_t put; /* jobs inserted so far */
    int64_t put_us;
    int64_t act_us;
    int64_t filter_us;
};

int64_t load_round(int64_t jobs)
{
    int64_t round = jobs / ROUNDS / THOUSAND * THOUSAND;
    return round < THOUSAND ? THOUSAND : round > ROUND_MAX ? ROUND_MAX : round;
}

/* Inserts the next round. Counts the committed jobs first, since the answer to the last commit may
 * have been lost. */
static void put(struct load *l, int64_t now_us)
{
    int64_t open = 0;
    int64_t there = 0;
    int64_t round = load_round(l->jobs);
    int64_t count = l->jobs - l->put < round ? l->jobs - l->put : round;
    if (session_i64(&l->sql, &there, NULL,
                    "SELECT COALESCE(sum(jobs), 0)::bigint FROM soak.round") != STATUS_OK) {
        return;
    }
    l->put = there;
    if (l->put >= l->jobs ||
        session_i64(&l->sql, &open, NULL, "SELECT count(*) FROM claimd.job") != STATUS_OK ||
        open > OPEN_MAX) {
        l->put_us = now_us + US_PER_S;
        return;
    }
    if (session_do(&l->sql, NULL, "SELECT soak.put(%lld, %lld)", (long long)there,
                   (long long)count) == STATUS_OK) {
        l->put = there + count;
        l->put_us = now_us + LEAST_US / (l->jobs / round);
    }
}

/* Cancels the jobs with the tag, queued or running, by claimctl as an operator would. */
static void cancel_by_filter(struct load *l)
{
    static const char *const words[] = {"jobs",  "cancel",   "--queue", "soak_cancel",
                                        "--tag", "unwanted", "--yes",   NULL};
    int code = -1;
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    enum status st = world_claimctl(l->world, words, &out, &code, NULL);
    (void)st; /* the server may be away: the next call tries again */
}

static void act(struct load *l)
{
    enum status st = session_do(&l->sql, NULL,
                                "SELECT soak.edit_some(20), soak.amend_some(10),"
                                " soak.cancel_some(10), soak.retry_some(5)");
    (void)st;
}

static void tick(struct load *l)
{
    int64_t now_us = clock_boot_us();
    if (now_us >= l->put_us) {
        put(l, now_us);
    }
    if (now_us >= l->act_us) {
        l->act_us = now_us + ACT_US;
        act(l);
    }
    if (now_us >= l->filter_us) {
        l->filter_us = now_us + FILTER_US;
        cancel_by_filter(l);
    }
}

/* One step of a process that only adds jobs to one queue. */
static void stream(struct load *l)
{
    enum status st = l->who == LOAD_PROCESSES - 1
                         ? session_do(&l->sql, NULL, "SELECT soak.press(%d)", PRESSURE)
                         : session_do(&l->sql, NULL, "SELECT soak.offer(%d)", l->who);
    (void)st; /* the server may be away: the next call tries again */
}

static int load_main(void *ctx)
{
    struct load *l = ctx;
    session_init(&l->sql, l->world->conninfo, STATEMENT_US);
    while (!load_process_must_end()) {
        if (l->who == 0) {
            tick(l);
        } else {
            stream(l);
        }
        (void)poll(NULL, 0, TURN_MS);
    }
    session_close(&l->sql);
    return 0;
}

enum status load_start(struct world *w, int64_t jobs, struct load_processes *ret, struct err *err)
{
    for (int who = 0; who < LOAD_PROCESSES; who++) {
        struct load l = {.world = w, .who = who, .jobs = jobs};
        enum status st = load_process_start(load_main, &l, &ret->pids[who], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

void load_stop(struct load_processes *l)
{
    for (size_t i = 0; i < LOAD_PROCESSES; i++) {
        if (l->pids[i] > 0) {
            (void)load_process_stop(l->pids[i], STOP_US);
            l->pids[i] = 0;
        }
    }
}
