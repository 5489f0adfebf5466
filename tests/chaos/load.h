/* SPDX-License-Identifier: Apache-2.0
 *
 * The load: a process of its own that inserts jobs of mixed kinds, cancels and edits some, and
 * keeps books of what was acknowledged (acked.jsonl). It goes on whatever happens to the server. */
#ifndef CLAIMD_TESTS_CHAOS_LOAD_H
#define CLAIMD_TESTS_CHAOS_LOAD_H

#include "chaos/world.h"

/* One job to be. */
struct task {
    int64_t n; /* its number in the books, also where its id isn't known */
    const char *kind;
    const char *does;
    const char *expect; /* the state that it must end in, or "any" */
    int64_t ms;
    int until;
    bool is_deaf;
    int pad_bytes;
    int priority;
    int share;
    const char *queue;
    int64_t delay_ms;
};

/* Draws the next one; load_mix.c has the table. */
struct rand;
void load_draw(struct rand *r, const struct options *options, int64_t n, struct task *ret);

/* Forks it. `has_slow`: it holds transactions open before it commits them. */
enum status load_start(struct world *w, bool has_slow, pid_t *ret_pid, struct err *err) MUST_USE;
/* Tells it to end and waits; false = it had to be killed, or what it put in was refused. */
bool load_stop(pid_t pid);

#endif
