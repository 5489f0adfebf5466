/* SPDX-License-Identifier: Apache-2.0
 *
 * The clients in line, around the real decisions (redlock/rules/line_rules.c): rounds to all nodes,
 * offers that are collected, votes that are kept or yielded, and the release. */
#ifndef CLAIMD_TESTS_MODEL_LINE_WORLD_H
#define CLAIMD_TESTS_MODEL_LINE_WORLD_H

#include "line_state.h"

struct line_world {
    size_t nodes;
    size_t clients;
    bool is_held;      /* the last client holds the lock at the start, and does not wait */
    bool tries_first;  /* SET NX to all nodes precedes the line */
    bool hears_late;   /* messages overtaken by a round: a reason to look, not to confirm */
    bool has_no_order; /* gaps and tries allow overtaking: the order is not checked */
    unsigned budget;   /* from enum line_budget: each happens at most once */
    /* Rules that are removed or broken. */
    bool takes_any_free_key;    /* lock.L2 */
    bool counts_offers;         /* lock.L3: offers of a quorum count as the lock */
    bool counts_earlier_rounds; /* lock.L4 */
    bool yields_to_nobody;      /* lock.L5 */
    bool yields_to_quorums_only;
    bool first_yields_too;
    bool yields_to_the_last;
    bool confirms_late_offers; /* lock.L3: even those that a round has overtaken */
    bool never_refreshes;      /* lock.L7 */
};

#define NO_NODE LINE_NODES_MAX

void world_first(const struct line_world *w, struct line_state *ret);

/* Runs the next command of this client on the node. */
void world_run(const struct line_world *w, struct line_state *s, size_t node, size_t client);
/* Runs a refresh, which is sent when no other command of this client precedes it. */
void world_refresh(const struct line_world *w, struct line_state *s, size_t node, size_t client);

void world_begin(const struct line_world *w, struct line_state *s, size_t client);
void world_ask(const struct line_world *w, struct line_state *s, size_t client);
/* Declines an offer to a client that has left. */
void world_decline(const struct line_world *w, struct line_state *s, size_t node, size_t client);
/* A waiting client counts its offers as votes, if lock.L3 is removed. */
bool world_takes_offers(const struct line_world *w, struct line_state *s, size_t client);
void world_leave(const struct line_world *w, struct line_state *s, size_t client, unsigned gaps);

/* `silent`: the node whose answer did not arrive, or NO_NODE. */
bool world_is_answered(const struct line_world *w, const struct line_state *s, size_t client,
                       size_t silent);
/* True if the client has received enough to decide. */
bool world_may_decide(const struct line_world *w, const struct line_state *s, size_t client);
void world_decide(const struct line_world *w, struct line_state *s, size_t client, size_t silent,
                  bool has_kept_long);

/* For a waiting client: the first returns the votes that it knows of, the second whether they are
 * enough. */
unsigned world_known(const struct line_world *w, const struct line_state *s, size_t client);
bool world_is_to_confirm(const struct line_world *w, const struct line_state *s, size_t client);

size_t world_owned(const struct line_world *w, const struct line_state *s, uint8_t owner);

#endif
