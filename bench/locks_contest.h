/* SPDX-License-Identifier: Apache-2.0
 *
 * A contest: some processes, each a client of its own, want the same lock again and again, as fast
 * as they get it. They are ours or redsync's or both; all of them count in one shared file. */
#ifndef CLAIMD_BENCH_LOCKS_CONTEST_H
#define CLAIMD_BENCH_LOCKS_CONTEST_H

#include "bench/locks.h"

#include <stdatomic.h>

#define CONTEST_CLIENTS_MAX 64
#define CONTEST_KEYS 3

struct contest {
    size_t clients;
    size_t rivals; /* the last so many of them are redsync's */
    int64_t hold_ms;
    bool has_pairs;   /* ours want a, b, c, {a, b}, {b, c}, {c, a} in turn instead of a alone */
    bool has_readers; /* the first client writes, the others read */
    bool has_kills;   /* twice a second a client that waits is killed, and another replaces it */
};

enum contest_figure {
    FIGURE_WINS,    /* per second */
    FIGURE_CHANGES, /* wins by another client than the last, of all wins */
    FIGURE_LEAST,   /* wins of the client with the fewest, to the fair share */
    FIGURE_MOST,
    FIGURE_OURS, /* wins of all of ours, to their fair share */
    FIGURE_RIVALS,
    FIGURE_COMMANDS, /* that a node is sent, per win */
    FIGURE_WAIT_MS,  /* the longest of any client, also of one that still waits at the end */
    /* The longest time that a side had no win: any before redsync's first win, and then. */
    FIGURE_EARLY_MS,
    FIGURE_OURS_LATE_MS,
    FIGURE_RIVALS_LATE_MS,
    FIGURE_STALL_MS, /* the longest time without a win */
    FIGURE_OVERLAPS, /* sections that began while another one had not ended */
    FIGURE_FAILURES, /* calls that ended without the lock, such as redsync's after its 32 tries */
    FIGURE_KILLED,
    FIGURES
};

/* Blocks for `seconds` and some more. UNAVAILABLE: a client did not start, or ended early. */
enum status contest_run(const struct locks_world *w, const struct contest *c, int64_t seconds,
                        double ret_figures[FIGURES], struct err *err) MUST_USE;

/* ---- what the clients share; rivals/redsync/contest.go has the same layout ---- */

enum contest_phase { CONTEST_READY, CONTEST_GO, CONTEST_STOP };

struct contest_client {
    _Atomic int64_t wins;
    _Atomic int64_t since_us;   /* it has waited since then; 0 = it does not wait */
    _Atomic int64_t longest_us; /* wait */
    int64_t spare[5];
};

struct contest_share {
    _Atomic int64_t phase;
    _Atomic int64_t ready; /* how many clients are */
    _Atomic int64_t entries;
    _Atomic int64_t last; /* the client that won last, from 1 on */
    _Atomic int64_t changes;
    _Atomic int64_t overlaps;
    _Atomic int64_t failures;
    _Atomic int64_t seen_us;              /* redsync's first win; 0 = none */
    _Atomic int64_t inside[CONTEST_KEYS]; /* the client in the section of each key; 0 = none */
    _Atomic int64_t readers;              /* in the section */
    int64_t spare[4];
    struct contest_client clients[CONTEST_CLIENTS_MAX];
};

/* One of ours, to its end; in a process of its own. */
struct contest_entrant {
    const struct locks_world *world;
    const struct contest *contest;
    struct contest_share *share;
    const char *key;
    size_t index;
};
_Noreturn void contest_enter(const struct contest_entrant *self);

/* Commands that clients send to a node, without those that scripts run: INFO counts both, MONITOR
 * tells them apart. */
struct contest_monitor {
    int fd;
    int64_t commands;
    char head[64]; /* of the line that has begun */
    size_t head_len;
};
enum status contest_monitor_open(struct contest_monitor *m, const char *path,
                                 struct err *err) MUST_USE;
void contest_monitor_read(struct contest_monitor *m); /* what is there; never blocks */
void contest_monitor_close(struct contest_monitor *m);

#define CONTEST_KILLS_TTL_MS 1000

#endif
