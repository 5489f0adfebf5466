/* SPDX-License-Identifier: Apache-2.0
 *
 * The load: a process of its own that inserts jobs of mixed kinds, cancels and edits some, and
 * records what was acknowledged (acked.jsonl). It continues whatever happens to the server. */
#ifndef CLAIMD_TESTS_CHAOS_LOAD_H
#define CLAIMD_TESTS_CHAOS_LOAD_H

#include "chaos/world.h"

/* One job to insert. */
struct task {
    int64_t n; /* its number in the books, known even without its id */
    const char *kind;
    const char *does;
    const char *expect; /* the state in which it must end, or "any" */
    int64_t ms;
    int until;
    bool is_deaf;
    int pad_bytes;
    int priority;
    int share;
    const char *queue;
    int64_t delay_ms;
};

/* Draws the next task; load_mix.c has the table. */
struct rand;
void load_draw(struct rand *r, const struct options *options, int64_t n, struct task *ret);

/* Starts the load, a process of load_process.h. `has_slow`: it keeps transactions open for a while
 * before it commits them. */
enum status load_start(struct world *w, bool has_slow, pid_t *ret_pid, struct err *err) MUST_USE;

#endif
