/* SPDX-License-Identifier: Apache-2.0 */
#include "search.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define TABLE_FIRST ((size_t)1 << 16)
#define HUGE_PAGE ((size_t)2 << 20)

/* Each visit touches memory at random: with pages of 4 kB, finding the pages takes long, too. */
static void *get_memory(size_t bytes)
{
    size_t rounded = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *memory = aligned_alloc(HUGE_PAGE, rounded);
    if (memory != NULL) {
        (void)madvise(memory, rounded, MADV_HUGEPAGE);
    }
    return memory;
}

static uint64_t *get_table(size_t size)
{
    uint64_t *table = get_memory(size * sizeof *table);
    if (table != NULL) {
        memset(table, 0, size * sizeof *table);
    }
    return table;
}

bool search_init(struct search *s, size_t state_size, size_t states_max)
{
    *s = (struct search){
        .state_size = state_size, .states_max = states_max, .table_size = TABLE_FIRST};
    s->states = get_memory(states_max * state_size);
    s->steps = malloc(states_max * sizeof *s->steps);
    s->table = get_table(s->table_size);
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

static uint32_t hash_of(const unsigned char *bytes, size_t size)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        size_t left = size - i;
        memcpy(&word, bytes + i, left < sizeof word ? left : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash >> 32);
}

/* An entry is the hash of a state, and its index + 1: a look that does not find the state rarely
 * touches one. */
static uint64_t entry_of(uint32_t hash, size_t index)
{
    return (uint64_t)hash << 32 | (index + 1);
}

static void grow(struct search *s)
{
    size_t size = s->table_size * 2;
    uint64_t *table = get_table(size);
    if (table == NULL) {
        s->is_too_big = true;
        return;
    }
    for (size_t i = 0; i < s->table_size; i++) {
        size_t at = s->table[i] >> 32 & (size - 1);
        while (s->table[i] != 0 && table[at] != 0) {
            at = (at + 1) & (size - 1);
        }
        table[at] = s->table[i] != 0 ? s->table[i] : table[at];
    }
    free(s->table);
    s->table = table;
    s->table_size = size;
}

bool search_visit(struct search *s, const void *state, uint32_t label)
{
    s->transitions++;
    uint32_t hash = hash_of(state, s->state_size);
    size_t at = hash & (s->table_size - 1);
    for (; s->table[at] != 0; at = (at + 1) & (s->table_size - 1)) {
        uint64_t entry = s->table[at];
        if (entry >> 32 == hash &&
            memcmp(search_state(s, (uint32_t)entry - 1), state, s->state_size) == 0) {
            return false;
        }
    }
    if (s->count == s->states_max) {
        s->is_too_big = true;
        return false;
    }
    memcpy(s->states + s->count * s->state_size, state, s->state_size);
    s->steps[s->count] = (struct search_step){.from = s->from, .label = label};
    s->table[at] = entry_of(hash, s->count++);
    if (s->count * 2 > s->table_size) {
        grow(s);
    }
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
