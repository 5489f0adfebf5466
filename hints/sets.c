/* SPDX-License-Identifier: Apache-2.0 */
#include "hints/sets.h"

#include "model/hint.h"

#include <assert.h>

static void sets_free(struct hints_sets *sets)
{
    free(sets->names);
    free(sets->key_bytes);
    free(sets->keys);
    free(sets);
}

static enum status copy_sets(struct hints_sets *sets, const char *prefix,
                             const struct hints_set *list, size_t count, struct err *err)
{
    sets->names = calloc(count, sizeof *sets->names);
    sets->key_bytes = calloc(count, HINT_KEY_MAX);
    sets->keys = calloc(2 * count, sizeof *sets->keys);
    if (sets->names == NULL || sets->key_bytes == NULL || sets->keys == NULL) {
        return err_fail(err, STATUS_NOMEM, "%zu sets of hints", count);
    }
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

enum status hints_sets_new(const char *prefix, const struct hints_set *list, size_t count,
                           struct hints_sets **ret_sets, struct err *err)
{
    if (count > HINTS_SETS_MAX) {
        return err_fail(err, STATUS_LIMIT, "%zu sets of hints: at most %d can be listened to",
                        count, HINTS_SETS_MAX);
    }
    struct hints_sets *sets = calloc(1, sizeof *sets);
    if (sets == NULL) {
        return err_fail(err, STATUS_NOMEM, "sets of hints");
    }
    sets->references = 1;
    enum status st = count == 0 ? STATUS_OK : copy_sets(sets, prefix, list, count, err);
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

const struct hints_set *hints_sets_find(const struct hints_sets *sets, const char *key, size_t len)
{
    for (size_t i = 0; i < sets->count; i++) {
        if (sets->keys[i].len == len && memcmp(sets->keys[i].bytes, key, len) == 0) {
            return &sets->names[i];
        }
    }
    return NULL;
}
