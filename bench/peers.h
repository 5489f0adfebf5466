/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload peers: who is compared, and what was measured. */
#ifndef CLAIMD_BENCH_PEERS_H
#define CLAIMD_BENCH_PEERS_H

#include "bench/peer.h"
#include "bench/workloads.h"

#define PEERS_ROWS_MAX 32
#define PEERS_ROUNDS_MAX 20

/* Rows with a part in goals; claimd's first is what others are compared with. */
enum { PEERS_CLAIMD, PEERS_CLAIMD_SELECT, PEERS_RIVER };

enum peers_work { PEERS_DRAIN, PEERS_START, PEERS_INSERT, PEERS_WORKS };

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
};

struct peers {
    const struct peers_row *rows;
    size_t row_count;
    size_t rounds;
    struct peers_figure figures[PEERS_ROUNDS_MAX][PEERS_WORKS][PEERS_ROWS_MAX];
    char why_not[PEERS_ROWS_MAX][PEER_WHY_MAX]; /* it was skipped, or has failed */
};

const char *peers_work_name(enum peers_work work);

/* Its own share of a round; `row` is one of claimd's. */
enum status peers_measure_claimd(struct cluster *c, const struct bench_options *options,
                                 enum peers_work work, size_t row, struct peers_figure *ret,
                                 struct err *err) MUST_USE;

/* Adds medians and goals to `result`, and prints them as a table on stderr. */
void peers_report(const struct peers *p, json_t *result);

#endif
