/* SPDX-License-Identifier: Apache-2.0
 *
 * The faults that strike the world, each under its name. A fault strikes at random times; if it
 * lasts, it is healed at another time. Each draws from a random stream of its own, so that leaving
 * out others does not change what it does. */
#ifndef CLAIMD_TESTS_CHAOS_NEMESIS_H
#define CLAIMD_TESTS_CHAOS_NEMESIS_H

#include "base/rand.h"
#include "chaos/world.h"

#define NEMESES_MAX 64

struct nemesis;

/* The category of a fault in the figures of a run. */
enum nemesis_count {
    COUNT_OTHER,
    COUNT_KILL,
    COUNT_STOP,
    COUNT_EMPTY,
    COUNT_RESTART,
    COUNT_FAILOVER,
    COUNT_CLOCK,
    COUNTS
};

/* Times are unscaled; all are scaled later except those that a server needs. */
struct nemesis_def {
    const char *name;
    const char *what;
    enum nemesis_count count;
    unsigned traits;  /* sum of enum fault_trait, for the checkers */
    int64_t every_ms; /* average distance */
    int64_t last_min_ms;
    int64_t last_max_ms; /* 0 = it does not last */
    /* Chooses a target (nemesis_target()) and strikes it. Returns false if there is no target
     * now. */
    bool (*strike)(struct world *w, struct nemesis *n);
    void (*heal)(struct world *w, struct nemesis *n); /* NULL: nothing to undo */
};

struct nemesis {
    const struct nemesis_def *def;
    struct rand rand;
    bool is_on;
    int64_t next_us; /* time of the next strike */
    int64_t heal_us;
    int64_t struck_us; /* just before the last strike */
    int64_t strikes;
    char target[32];
    char detail[64];
    /* Passed from strike() to heal(). */
    size_t index;
    pid_t pids[64];
    size_t pid_count;
    struct session sessions[2];
};

/* Acts of the process faults. */
bool nemesis_kill9(struct world *w, struct nemesis *n);
void nemesis_kill_host(struct world *w, struct nemesis *n, struct host *h);
bool nemesis_kill_runner(struct world *w, struct nemesis *n);
bool nemesis_stop_worker(struct world *w, struct nemesis *n);
bool nemesis_stop_scheduler(struct world *w, struct nemesis *n);
void nemesis_continue(struct world *w, struct nemesis *n); /* heals a stop */

/* The tables of the nemesis_*.c. */
extern const struct nemesis_def nemesis_process_defs[];
extern const size_t nemesis_process_count;
extern const struct nemesis_def nemesis_redis_defs[];
extern const size_t nemesis_redis_count;
extern const struct nemesis_def nemesis_pg_defs[];
extern const size_t nemesis_pg_count;
extern const struct nemesis_def nemesis_net_defs[];
extern const size_t nemesis_net_count;
extern const struct nemesis_def nemesis_failover_defs[];
extern const size_t nemesis_failover_count;
extern const struct nemesis_def nemesis_file_defs[];
extern const size_t nemesis_file_count;

struct nemeses {
    struct nemesis all[NEMESES_MAX];
    size_t count;
    bool has_lulls; /* at times only nemesis_kill9 strikes */
    int64_t counts[COUNTS];
    int64_t begin_us;
    int64_t last_us; /* time of the last act, including heals */
};

void nemeses_add(struct nemeses *ns, const struct nemesis_def *def, uint64_t seed);
/* Adds all faults that the options want. Returns INVALID for an unknown name. */
enum status nemeses_init(struct nemeses *ns, const struct options *options,
                         struct err *err) MUST_USE;
void nemeses_list(void); /* prints to stdout */
/* Keeps about `percent` of the faults, chosen by that seed. */
void nemeses_thin(struct nemeses *ns, uint64_t seed, int percent);
void nemeses_begin(struct nemeses *ns, struct world *w, int64_t now_us);
void nemeses_tick(struct nemeses *ns, struct world *w, int64_t now_us);
void nemeses_end(struct nemeses *ns, struct world *w); /* heals all faults */
/* Returns the category of the fault with this name; COUNT_OTHER if there is none. */
enum nemesis_count nemesis_counts_as(const char *name);
bool nemeses_has(const struct nemeses *ns, const char *name);

/* For strike(): records the target and the details. */
void nemesis_target(struct nemesis *n, const char *detail, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Returns a random host that is running and not ending; `role` < 0 = any. NULL: none. */
struct host *nemesis_host(struct world *w, struct nemesis *n, int role);
int64_t nemesis_between(struct nemesis *n, int64_t min, int64_t max);

#endif
