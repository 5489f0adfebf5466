/* SPDX-License-Identifier: Apache-2.0
 *
 * What a NULL in a job means for the kinds that are claimed: rows of `kind`, read once and again
 * now and then, so that a claim needs no join. Sorted by name. */
#ifndef CLAIMD_STORE_JOBS_KIND_CACHE_H
#define CLAIMD_STORE_JOBS_KIND_CACHE_H

#include "model/job.h"
#include "store/pg/pg.h"

#define KIND_CACHE_MAX 500

struct kind_defaults {
    char name[JOB_NAME_MAX + 1];
    struct kind_settings settings;
    bool is_asked; /* a read is under way */
    bool is_known; /* was read, though perhaps a while ago */
};

struct kind_cache {
    struct kind_defaults *kinds;
    size_t count;
    int64_t loaded_us; /* BOOTTIME; 0 = never */
};

void kind_cache_release(struct kind_cache *c);

/* Makes them known from the next read on; without a row they have the built-in defaults. LIMIT,
 * NOMEM. */
enum status kind_cache_want(struct kind_cache *c, const char *const *names, size_t count,
                            struct err *err) MUST_USE;
bool kind_cache_knows(const struct kind_cache *c, const char *const *names, size_t count);

/* NULL: not known. Borrowed until the next call of want. */
const struct kind_defaults *kind_cache_find(const struct kind_cache *c, const char *name);

/* Before job_kinds is sent: fills the names of all kinds wanted, at most KIND_CACHE_MAX. */
size_t kind_cache_ask(struct kind_cache *c, const char **ret_names);
void kind_cache_load(struct kind_cache *c, const struct pg_result *rows, int64_t now_us);

#endif
