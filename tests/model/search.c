/* SPDX-License-Identifier: Apache-2.0 */
#include "search.h"

#include <stdlib.h>
#include <string.h>

bool search_init(struct search *s, size_t state_size, size_t states_max)
{
    *s = (struct search){.state_size = state_size, .states_max = states_max, .table_size = 1};
    while (s->table_size < states_max + states_max / 2) {
        s->table_size *= 2;
    }
    s->states = malloc(states_max * state_size);
    s->steps = malloc(states_max * sizeof *s->steps);
    s->table = calloc(s->table_size, sizeof *s->table);
    s->is_too_big = s->states == NULL || s->steps == NULL || s->table == NULL;
    return !s->is_too_big;
}

void search_release(struct search *s)
{
    free(s->states);
    free(s->steps);
    free(s->table);
    *s = (struct search){0};
}

static uint64_t hash_of(const unsigned char *bytes, size_t size)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        size_t left = size - i;
        memcpy(&word, bytes + i, left < sizeof word ? left : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return hash;
}

bool search_visit(struct search *s, const void *state, uint32_t label)
{
    s->transitions++;
    size_t at = hash_of(state, s->state_size) & (s->table_size - 1);
    while (s->table[at] != 0) {
        if (memcmp(search_state(s, s->table[at] - 1), state, s->state_size) == 0) {
            return false;
        }
        at = (at + 1) & (s->table_size - 1);
    }
    if (s->count == s->states_max) {
        s->is_too_big = true;
        return false;
    }
    memcpy(s->states + s->count * s->state_size, state, s->state_size);
    s->steps[s->count] = (struct search_step){.from = s->from, .label = label};
    s->table[at] = (uint32_t)++s->count;
    return true;
}

const void *search_state(const struct search *s, size_t at)
{
    return s->states + at * s->state_size;
}

size_t search_path(const struct search *s, size_t at, size_t *ret_path, size_t max)
{
    size_t len = 0;
    for (; at != 0 && len < max; at = s->steps[at].from) {
        ret_path[len++] = at;
    }
    for (size_t i = 0; i < len / 2; i++) {
        size_t other = ret_path[i];
        ret_path[i] = ret_path[len - 1 - i];
        ret_path[len - 1 - i] = other;
    }
    return len;
}
