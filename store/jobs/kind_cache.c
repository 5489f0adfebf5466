/* SPDX-License-Identifier: Apache-2.0 */
#include "store/jobs/kind_cache.h"

#include <stdio.h>

void kind_cache_release(struct kind_cache *c)
{
    free(c->kinds);
    *c = (struct kind_cache){.kinds = NULL};
}

/* Returns the index of `name`, or the index where it is to be inserted. */
static size_t place_of(const struct kind_cache *c, const char *name)
{
    size_t low = 0;
    size_t high = c->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(c->kinds[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct kind_defaults *find(const struct kind_cache *c, const char *name)
{
    size_t at = place_of(c, name);
    return at < c->count && strcmp(c->kinds[at].name, name) == 0 ? &c->kinds[at] : NULL;
}

const struct kind_defaults *kind_cache_find(const struct kind_cache *c, const char *name)
{
    const struct kind_defaults *kind = find(c, name);
    return kind != NULL && kind->is_known ? kind : NULL;
}

bool kind_cache_knows(const struct kind_cache *c, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (kind_cache_find(c, names[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static const struct kind_settings defaults = {.max_attempts = JOB_MAX_ATTEMPTS_DEFAULT,
                                              .max_crashes = JOB_MAX_CRASHES_DEFAULT,
                                              .timeout_us = JOB_TIMEOUT_US_DEFAULT};

static enum status want(struct kind_cache *c, const char *name, struct err *err)
{
    size_t len = strlen(name);
    if (c->count == KIND_CACHE_MAX || len > JOB_NAME_MAX) {
        return err_fail(err, STATUS_LIMIT, "kind '%.64s': at most %d kinds of at most %d bytes",
                        name, KIND_CACHE_MAX, JOB_NAME_MAX);
    }
    struct kind_defaults *kinds = realloc(c->kinds, (c->count + 1) * sizeof *kinds);
    if (kinds == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the defaults of kind '%s'", name);
    }
    c->kinds = kinds;
    size_t at = place_of(c, name);
    memmove(kinds + at + 1, kinds + at, (c->count - at) * sizeof *kinds);
    kinds[at] = (struct kind_defaults){.settings = defaults};
    memcpy(kinds[at].name, name, len + 1);
    c->count++;
    return STATUS_OK;
}

enum status kind_cache_want(struct kind_cache *c, const char *const *names, size_t count,
                            struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (find(c, names[i]) == NULL) {
            enum status st = want(c, names[i], err);
            if (st != STATUS_OK) {
                return st;
            }
        }
    }
    return STATUS_OK;
}

size_t kind_cache_ask(struct kind_cache *c, const char **ret_names)
{
    for (size_t i = 0; i < c->count; i++) {
        c->kinds[i].is_asked = true;
        ret_names[i] = c->kinds[i].name;
    }
    return c->count;
}

void kind_cache_load(struct kind_cache *c, const struct pg_result *rows, int64_t now_us)
{
    for (size_t i = 0; i < c->count; i++) {
        struct kind_defaults *kind = &c->kinds[i];
        if (kind->is_asked) {
            kind->settings = defaults;
            kind->is_asked = false;
            kind->is_known = true;
        }
    }
    for (int row = 0; row < pg_row_count(rows); row++) {
        size_t len = 0;
        struct kind_defaults *kind = find(c, pg_text(rows, row, 0, &len));
        if (kind != NULL) {
            kind->settings = (struct kind_settings){.max_attempts = (int)pg_i64(rows, row, 1),
                                                    .max_crashes = (int)pg_i64(rows, row, 2),
                                                    .timeout_us = pg_i64(rows, row, 3),
                                                    .at_most_once = pg_bool(rows, row, 4),
                                                    .keeps_none = pg_bool(rows, row, 6),
                                                    .keeps_log = pg_bool(rows, row, 7),
                                                    .grace_us = pg_i64(rows, row, 8)};
            (void)snprintf(kind->settings.backoff, sizeof kind->settings.backoff, "%s",
                           pg_text(rows, row, 5, &len));
        }
    }
    c->loaded_us = now_us;
}
