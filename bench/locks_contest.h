/* SPDX-License-Identifier: Apache-2.0
 *
 * A contest: several processes, each with a client of its own, compete for the same lock again and
 * again, as fast as they can. They are ours, redsync's, or both; all count in one shared file. */
#ifndef CLAIMD_BENCH_LOCKS_CONTEST_H
#define CLAIMD_BENCH_LOCKS_CONTEST_H

#include "bench/locks.h"

#include <stdatomic.h>

#define CONTEST_CLIENTS_MAX 64
#define CONTEST_KEYS 3

struct contest {
    size_t clients;
    size_t rivals; /* the last ones of `clients` are redsync's */
    int64_t hold_ms;
    bool has_pairs;   /* ours want a, b, c, {a, b}, {b, c}, {c, a} in turn instead of only a */
    bool has_readers; /* the first client writes, the others read */
    bool has_kills;   /* twice a second a waiting client is killed and replaced */
};

enum contest_figure {
    FIGURE_WINS,    /* per second */
    FIGURE_CHANGES, /* share of the wins by another client than the last */
    FIGURE_LEAST,   /* wins of the client with the fewest, relative to the fair share */
    FIGURE_MOST,
    FIGURE_OURS, /* wins of all of ours, relative to their fair share */
    FIGURE_RIVALS,
    FIGURE_COMMANDS, /* sent to a node, per win */
    FIGURE_WAIT_MS,  /* longest wait of any client, including one that still waits at the end */
    /* Longest time without a win: of either side before redsync's first win, then of each side
     * after it. */
    FIGURE_EARLY_MS,
    FIGURE_OURS_LATE_MS,
    FIGURE_RIVALS_LATE_MS,
    FIGURE_STALL_MS, /* the longest time without a win */
    FIGURE_OVERLAPS, /* critical sections that began before another one had ended */
    FIGURE_FAILURES, /* calls that failed to get the lock, as redsync's do after 32 tries */
    FIGURE_KILLED,
    FIGURES
};

/* Runs the contest. Blocks for `seconds` and a little longer. UNAVAILABLE: a client did not start,
 * or ended early. */
enum status contest_run(const struct locks_world *w, const struct contest *c, int64_t seconds,
                        double ret_figures[FIGURES], struct err *err) MUST_USE;

/* ---- shared by the clients; rivals/redsync/contest.go has the same layout ---- */

enum contest_phase { CONTEST_READY, CONTEST_GO, CONTEST_STOP };

struct contest_client {
    _Atomic int64_t wins;
    _Atomic int64_t since_us;   /* since when it waits; 0 = it does not wait */
    _Atomic int64_t longest_us; /* longest wait */
    int64_t spare[5];
};

struct contest_share {
    _Atomic int64_t phase;
    _Atomic int64_t ready; /* number of clients that are ready */
    _Atomic int64_t entries;
    _Atomic int64_t last; /* the client that won last, counted from 1 */
    _Atomic int64_t changes;
    _Atomic int64_t overlaps;
    _Atomic int64_t failures;
    _Atomic int64_t seen_us;              /* time of redsync's first win; 0 = none */
    _Atomic int64_t inside[CONTEST_KEYS]; /* the client in the section of each key; 0 = none */
    _Atomic int64_t readers;              /* in the critical section */
    int64_t spare[4];
    struct contest_client clients[CONTEST_CLIENTS_MAX];
};

/* Runs one of our clients to its end, in a process of its own. */
struct contest_entrant {
    const struct locks_world *world;
    const struct contest *contest;
    struct contest_share *share;
    const char *key;
    size_t index;
};
_Noreturn void contest_enter(const struct contest_entrant *self);

/* Counts commands that clients send to a node, without those that scripts run: INFO counts both,
 * MONITOR distinguishes them. */
struct contest_monitor {
    int fd;
    int64_t commands;
    char head[64]; /* of the present line */
    size_t head_len;
};
enum status contest_monitor_open(struct contest_monitor *m, const char *path,
                                 struct err *err) MUST_USE;
void contest_monitor_read(struct contest_monitor *m); /* reads what has arrived; never blocks */
void contest_monitor_close(struct contest_monitor *m);

#define CONTEST_KILLS_TTL_MS 1000

#endif
