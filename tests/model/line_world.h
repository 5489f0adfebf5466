/* SPDX-License-Identifier: Apache-2.0
 *
 * What clients do in line, around the real decisions (redlock/rules/line_rules.c): rounds to all
 * nodes, offers that are collected, votes that are kept or yielded, and the release. */
#ifndef CLAIMD_TESTS_MODEL_LINE_WORLD_H
#define CLAIMD_TESTS_MODEL_LINE_WORLD_H

#include "line_state.h"

struct line_world {
    size_t nodes;
    size_t clients;
    bool is_held;      /* the last client holds the lock at the start, and waits for nothing */
    bool tries_first;  /* SET NX to all nodes comes before the line */
    bool hears_late;   /* messages that a round has overtaken: a reason to look, not to confirm */
    bool has_no_order; /* gaps and tries let others pass: the order is not checked */
    unsigned budget;   /* of enum line_budget: each happens once at most */
    /* Rules that are taken away. */
    bool takes_any_free_key;    /* lock.L2 */
    bool counts_offers;         /* lock.L3: who was offered a quorum has the lock */
    bool counts_earlier_rounds; /* lock.L4 */
    bool yields_to_nobody;      /* lock.L5 */
    bool yields_to_quorums_only;
    bool first_yields_too;
    bool yields_to_the_last;
    bool confirms_late_offers; /* lock.L3: those that a round has overtaken, too */
    bool never_refreshes;      /* lock.L7 */
};

#define NO_NODE LINE_NODES_MAX

void world_first(const struct line_world *w, struct line_state *ret);

/* The node runs the next command of this client. */
void world_run(const struct line_world *w, struct line_state *s, size_t node, size_t client);
/* A refresh, which is sent when nothing else of this client is to run before. */
void world_refresh(const struct line_world *w, struct line_state *s, size_t node, size_t client);

void world_begin(const struct line_world *w, struct line_state *s, size_t client);
void world_ask(const struct line_world *w, struct line_state *s, size_t client);
/* An offer for one who has left. */
void world_decline(const struct line_world *w, struct line_state *s, size_t node, size_t client);
/* One who waits counts its offers as votes: lock.L3 is taken away. */
bool world_takes_offers(const struct line_world *w, struct line_state *s, size_t client);
void world_leave(const struct line_world *w, struct line_state *s, size_t client, unsigned gaps);

/* `silent`: the node whose answer was not heard, or NO_NODE. */
bool world_is_answered(const struct line_world *w, const struct line_state *s, size_t client,
                       size_t silent);
/* Has the client heard enough to decide? */
bool world_may_decide(const struct line_world *w, const struct line_state *s, size_t client);
void world_decide(const struct line_world *w, struct line_state *s, size_t client, size_t silent,
                  bool has_kept_long);

/* Of one who waits: does it know of votes, and of enough of them? */
unsigned world_known(const struct line_world *w, const struct line_state *s, size_t client);
bool world_is_to_confirm(const struct line_world *w, const struct line_state *s, size_t client);

size_t world_owned(const struct line_world *w, const struct line_state *s, uint8_t owner);

#endif
