/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/membership/kind_set.h"

static size_t text_size(const struct worker_kind *k)
{
    return strlen(k->name) + strlen(k->plugin) + strlen(k->version) + 3;
}

static const char *keep_text(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    char *kept = *at;
    memcpy(kept, text, size);
    *at += size;
    return kept;
}

enum status kind_set_fill(struct kind_set *ret, const struct worker_kind *const *kinds,
                          size_t count, struct err *err)
{
    size_t n = count < KIND_SET_MAX ? count : KIND_SET_MAX;
    size_t fixed = n * (sizeof ret->list[0] + sizeof ret->names[0]);
    size_t size = fixed + 1;
    for (size_t i = 0; i < n; i++) {
        size += text_size(kinds[i]);
    }
    void *block = malloc(size);
    if (block == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for %zu kinds", n);
    }
    struct kind_set set = {.list = block, .count = n, .block = block};
    char *at = set.block + fixed;
    void *names = set.list + n;
    set.names = names;
    for (size_t i = 0; i < n; i++) {
        struct worker_kind *k = &set.list[i];
        *k = *kinds[i];
        k->name = keep_text(&at, kinds[i]->name);
        k->plugin = keep_text(&at, kinds[i]->plugin);
        k->version = keep_text(&at, kinds[i]->version);
        set.names[i] = k->name;
    }
    *ret = set;
    return STATUS_OK;
}

void kind_set_release(struct kind_set *set)
{
    free(set->block);
    *set = (struct kind_set){.count = 0};
}

const struct worker_kind *kind_set_find(const struct kind_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++) {
        if (strcmp(set->names[i], name) == 0) {
            return &set->list[i];
        }
    }
    return NULL;
}

bool kind_equal(const struct worker_kind *a, const struct worker_kind *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->plugin, b->plugin) == 0 &&
           strcmp(a->version, b->version) == 0 && kind_settings_equal(&a->settings, &b->settings);
}

bool kind_set_covers(const struct kind_set *set, const struct kind_set *other)
{
    for (size_t i = 0; i < other->count; i++) {
        const struct worker_kind *k = kind_set_find(set, other->names[i]);
        if (k == NULL || !kind_equal(k, &other->list[i])) {
            return false;
        }
    }
    return true;
}

bool kind_set_equal(const struct kind_set *a, const struct kind_set *b)
{
    return a->count == b->count && kind_set_covers(a, b);
}

enum status kind_set_common(struct kind_set *ret, const struct kind_set *const *sets, size_t count,
                            struct err *err)
{
    const struct worker_kind *kept[KIND_SET_MAX];
    size_t n = 0;
    for (size_t i = 0; i < sets[0]->count; i++) {
        bool is_common = true;
        for (size_t k = 1; k < count && is_common; k++) {
            is_common = kind_set_find(sets[k], sets[0]->names[i]) != NULL;
        }
        if (is_common) {
            kept[n++] = &sets[0]->list[i];
        }
    }
    return kind_set_fill(ret, kept, n, err);
}
