/* SPDX-License-Identifier: Apache-2.0
 *
 * A search of all states that can be reached, the nearest ones first: the set of those met, and how
 * each was first reached. A state is `state_size` bytes, equal where it behaves alike: who visits
 * has normalised it. */
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
    uint32_t *table; /* index + 1 */
    size_t table_size;
    size_t count;
    size_t transitions;
    uint32_t from;   /* the state whose steps are visited now */
    bool is_too_big; /* or out of memory: no result */
};

/* `states_max` below 2^31; false: out of memory. search_release() in any case. */
bool search_init(struct search *s, size_t state_size, size_t states_max);
void search_release(struct search *s);

/* True: it was not met before. */
bool search_visit(struct search *s, const void *state, uint32_t label);

const void *search_state(const struct search *s, size_t at);

/* The states on the way to `at`, the first step first, at most `max`: the first ones are left out.
 * Each is named by the step that led there. */
size_t search_path(const struct search *s, size_t at, size_t *ret_path, size_t max);

#endif
