/* SPDX-License-Identifier: Apache-2.0
 *
 * A breadth-first search of all reachable states: the set of those found, and how each was first
 * reached. A state has `state_size` bytes; callers normalize it, so that states that behave alike
 * are equal. */
#ifndef CLAIMD_TESTS_MODEL_SEARCH_H
#define CLAIMD_TESTS_MODEL_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct search_step { /* how a state was first reached */
    uint32_t from;
    uint32_t label;
};

struct search {
    size_t state_size;
    size_t states_max;
    unsigned char *states;
    struct search_step *steps;
    uint64_t *table; /* grows */
    size_t table_size;
    size_t count;
    size_t transitions;
    uint32_t from;   /* the state whose steps are being visited */
    bool is_too_big; /* or memory ran out: there is no result */
};

/* `states_max` must be below 2^31. Returns false if memory ran out. Call search_release() in any
 * case. */
bool search_init(struct search *s, size_t state_size, size_t states_max);
void search_release(struct search *s);

/* Returns true if the state is new. */
bool search_visit(struct search *s, const void *state, uint32_t label);

const void *search_state(const struct search *s, size_t at);

/* Returns the states on the path to `at`, in order, at most `max`: if there are more, the first
 * ones are left out. Each is identified by the step that led there. */
size_t search_path(const struct search *s, size_t at, size_t *ret_path, size_t max);

#endif
