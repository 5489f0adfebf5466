/* SPDX-License-Identifier: Apache-2.0 */
#include "hints/sets.h"

#include <assert.h>
#include <stdio.h>

#define SHARE_BYTES_MAX 24 /* for two numbers */

static void sets_free(struct hints_sets *sets)
{
    buf_release(&sets->shares);
    free(sets->names);
    free(sets->key_bytes);
    free(sets->all_keys);
    free(sets);
}

static enum status copy_sets(struct hints_sets *sets, const char *prefix,
                             const struct hints_set *list, size_t count, struct err *err)
{
    sets->names = calloc(count, sizeof *sets->names);
    sets->key_bytes = calloc(count, HINT_KEY_MAX);
    sets->all_keys = calloc(1 + 2 * count, sizeof *sets->all_keys);
    if (sets->names == NULL || sets->key_bytes == NULL || sets->all_keys == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for %zu sets of hints", count);
    }
    sets->all_keys[0] = redis_bytes(sets->wake_key, sets->wake_key_len);
    sets->keys = sets->all_keys + 1;
    for (size_t i = 0; i < count; i++) {
        char *key = sets->key_bytes + i * HINT_KEY_MAX;
        const char *kind = list[i].kind[0] == '\0' ? NULL : list[i].kind;
        sets->names[i] = list[i];
        sets->keys[i].bytes = key;
        sets->keys[i].len = hint_key(key, prefix, list[i].queue, kind);
        sets->keys[count + i] = sets->keys[i];
    }
    sets->count = count;
    return STATUS_OK;
}

static bool has_weights(const struct hints_sets *sets)
{
    for (size_t i = 0; i < sets->count; i++) {
        if (sets->names[i].weight > 0) {
            return true;
        }
    }
    return false;
}

static size_t end_of_queue(const struct hints_sets *sets, size_t first)
{
    size_t end = first + 1;
    while (end < sets->count && strcmp(sets->names[end].queue, sets->names[first].queue) == 0) {
        end++;
    }
    return end;
}

static enum status write_shares(struct hints_sets *sets, struct err *err)
{
    enum status st = STATUS_OK;
    size_t end = 0;
    buf_init(&sets->shares, sets->count * SHARE_BYTES_MAX);
    for (size_t first = 0; first < sets->count && st == STATUS_OK; first = end) {
        int weight = sets->names[first].weight;
        end = end_of_queue(sets, first);
        st = buf_printf(&sets->shares, err, "%s%d:%zu", first > 0 ? "," : "",
                        weight > 0 ? weight : 1, end - first);
    }
    return st;
}

enum status hints_sets_new(const char *prefix, const char *sleeper, const struct hints_set *list,
                           size_t count, struct hints_sets **ret_sets, struct err *err)
{
    if (count > HINTS_SETS_MAX) {
        return err_fail(err, STATUS_LIMIT, "%zu sets of hints: at most %d can be listened to",
                        count, HINTS_SETS_MAX);
    }
    struct hints_sets *sets = calloc(1, sizeof *sets);
    if (sets == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the sets of hints");
    }
    sets->references = 1;
    (void)snprintf(sets->sleeper, sizeof sets->sleeper, "%s", sleeper);
    sets->wake_key_len = hint_wake_key(sets->wake_key, prefix, sleeper);
    enum status st = count == 0 ? STATUS_OK : copy_sets(sets, prefix, list, count, err);
    if (st == STATUS_OK && has_weights(sets)) {
        st = write_shares(sets, err);
    }
    if (st != STATUS_OK) {
        sets_free(sets);
        return st;
    }
    *ret_sets = sets;
    return STATUS_OK;
}

struct hints_sets *hints_sets_share(struct hints_sets *sets)
{
    sets->references++;
    return sets;
}

void hints_sets_drop(struct hints_sets *sets)
{
    if (sets == NULL) {
        return;
    }
    assert(sets->references > 0);
    if (--sets->references == 0) {
        sets_free(sets);
    }
}

static bool is_key(const struct hints_sets *sets, size_t i, const char *key, size_t len)
{
    return sets->keys[i].len == len && memcmp(sets->keys[i].bytes, key, len) == 0;
}

const struct hints_set *hints_sets_find(const struct hints_sets *sets, const char *key, size_t len)
{
    for (size_t i = 0; i < sets->count; i++) {
        if (is_key(sets, i, key, len)) {
            return &sets->names[i];
        }
    }
    return NULL;
}

bool hints_sets_are_within(const struct hints_sets *part, const struct hints_sets *whole)
{
    size_t at = 0;
    for (size_t i = 0; part != whole && i < part->count; i++, at++) {
        while (at < whole->count && !is_key(whole, at, part->keys[i].bytes, part->keys[i].len)) {
            at++;
        }
        if (at == whole->count) {
            return false;
        }
    }
    return true;
}
