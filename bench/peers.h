/* SPDX-License-Identifier: Apache-2.0
 *
 * Workloads peers, realistic and start: who is compared, at what, and what was measured. */
#ifndef CLAIMD_BENCH_PEERS_H
#define CLAIMD_BENCH_PEERS_H

#include "bench/peer.h"
#include "bench/workloads.h"

#define PEERS_ROWS_MAX 32
#define PEERS_ROUNDS_MAX 20
#define PEERS_SLOTS 32 /* of workers whose handlers take time */

/* Rows with a part in goals; claimd's first is what others are compared with. */
enum { PEERS_CLAIMD, PEERS_CLAIMD_SELECT, PEERS_RIVER };

enum peers_work {
    PEERS_DRAIN,
    PEERS_START,
    PEERS_INSERT,
    PEERS_START_500, /* a second, by one client */
    PEERS_SLEEP_1,   /* drains with handlers that take so many ms */
    PEERS_SLEEP_10,
    PEERS_SLEEP_100,
    PEERS_CPU_1,
    PEERS_CPU_10,
    PEERS_MIXED,  /* handlers that sleep 1 to 500 ms, 14 on average */
    PEERS_PYTHON, /* no-op drains, as PEERS_DRAIN */
    PEERS_PYTHON_10,
    PEERS_WORKS
};

struct peers_work_spec {
    const char *name;
    const char *asked; /* an adapter's first argument: drain, start or insert */
    int64_t gap_ms;    /* start: between inserts; 0 = one after the other */
    int64_t sleep_ms;  /* what handlers do, if not nothing */
    int64_t cpu_ms;
    bool is_mixed;
    bool is_python; /* claimd's handlers, as those of others are */
};
extern const struct peers_work_spec peers_works[PEERS_WORKS];

bool peers_is_timed(enum peers_work work);     /* start: times, no speed */
bool peers_has_handlers(enum peers_work work); /* that take time */

struct peers_row {
    const char *name; /* of its folder in bench/peers/ */
    const char *settings;
    bool is_durable;   /* what it has acknowledged survives the machine's end */
    int64_t share;     /* a drain has so many times fewer jobs, because it is so much slower */
    unsigned works;    /* a bit for each */
    bool is_asked_for; /* measured only if --only names it */
};

struct peers_figure {
    bool is_there;
    double per_s;
    double cpu_us; /* per job, of all processes */
    double p50_ms;
    double p99_ms;
    double slots_used; /* by handlers that sleep; 0 = that is not known */
    double commits;    /* per job, as the next one; claimd's alone */
    double redis_commands;
};

struct peers {
    const struct peers_row *rows;
    size_t row_count;
    size_t rounds;
    struct peers_figure figures[PEERS_ROUNDS_MAX][PEERS_WORKS][PEERS_ROWS_MAX];
    char why_not[PEERS_ROWS_MAX][PEER_WHY_MAX]; /* it was skipped, or has failed */
};

/* Its own share of a round; `row` is one of claimd's. */
enum status peers_measure_claimd(struct cluster *c, const struct bench_options *options,
                                 enum peers_work work, size_t row, int64_t count,
                                 struct peers_figure *ret, struct err *err) MUST_USE;

/* Adds medians and goals to `result`, and prints them as a table on stderr. */
void peers_report(const struct peers *p, json_t *result);

#endif
