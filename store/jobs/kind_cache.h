/* SPDX-License-Identifier: Apache-2.0
 *
 * The defaults that a NULL in a job stands for, for the kinds that are claimed: rows of `kind`,
 * read once and refreshed now and then, so that a claim needs no join. Sorted by name. */
#ifndef CLAIMD_STORE_JOBS_KIND_CACHE_H
#define CLAIMD_STORE_JOBS_KIND_CACHE_H

#include "model/job.h"
#include "store/pg/pg.h"

#define KIND_CACHE_MAX 500

struct kind_defaults {
    char name[JOB_NAME_MAX + 1];
    struct kind_settings settings;
    bool is_asked; /* a read is in flight */
    bool is_known; /* was read, perhaps a while ago */
};

struct kind_cache {
    struct kind_defaults *kinds;
    size_t count;
    int64_t loaded_us; /* BOOTTIME; 0 = never */
};

void kind_cache_release(struct kind_cache *c);

/* Adds kinds, which are known from the next read on; those without a row get the built-in defaults.
 * LIMIT, NOMEM. */
enum status kind_cache_want(struct kind_cache *c, const char *const *names, size_t count,
                            struct err *err) MUST_USE;
bool kind_cache_knows(const struct kind_cache *c, const char *const *names, size_t count);

/* Returns NULL if the kind is not known. Borrowed until the next kind_cache_want(). */
const struct kind_defaults *kind_cache_find(const struct kind_cache *c, const char *name);

/* Fills in the names of all wanted kinds, at most KIND_CACHE_MAX, for a job_kinds that is about to
 * be sent. Returns how many. */
size_t kind_cache_ask(struct kind_cache *c, const char **ret_names);
void kind_cache_load(struct kind_cache *c, const struct pg_result *rows, int64_t now_us);

#endif
