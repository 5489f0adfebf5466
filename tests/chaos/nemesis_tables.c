/* SPDX-License-Identifier: Apache-2.0
 *
 * All faults of the chaos kit by name, and the choice of them. */
#include "chaos/nemesis.h"

#include <stdio.h>

#define MS_PER_S 1000.0

static const struct {
    const struct nemesis_def *defs;
    const size_t *count;
} tables[] = {{nemesis_process_defs, &nemesis_process_count},
              {nemesis_redis_defs, &nemesis_redis_count},
              {nemesis_pg_defs, &nemesis_pg_count},
              {nemesis_net_defs, &nemesis_net_count},
              {nemesis_failover_defs, &nemesis_failover_count},
              {nemesis_file_defs, &nemesis_file_count}};

static bool is_name(const char *name, size_t len)
{
    for (size_t t = 0; t < ARRAY_COUNT(tables); t++) {
        for (size_t i = 0; i < *tables[t].count; i++) {
            const char *known = tables[t].defs[i].name;
            if (strlen(known) == len && memcmp(known, name, len) == 0) {
                return true;
            }
        }
    }
    return false;
}

enum nemesis_count nemesis_counts_as(const char *name)
{
    for (size_t t = 0; t < ARRAY_COUNT(tables); t++) {
        for (size_t i = 0; i < *tables[t].count; i++) {
            if (strcmp(tables[t].defs[i].name, name) == 0) {
                return tables[t].defs[i].count;
            }
        }
    }
    return COUNT_OTHER;
}

enum status nemeses_init(struct nemeses *ns, const struct options *options, struct err *err)
{
    *ns = (struct nemeses){.has_lulls = true};
    static const char hint[] = "--list names the faults";
    enum status st = options_check_names(options, is_name, hint, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t t = 0; t < ARRAY_COUNT(tables); t++) {
        for (size_t i = 0; i < *tables[t].count; i++) {
            const struct nemesis_def *def = &tables[t].defs[i];
            if (options_want(options, def->name)) {
                nemeses_add(ns, def, options->seed);
            }
        }
    }
    return STATUS_OK;
}

void nemeses_thin(struct nemeses *ns, uint64_t seed, int percent)
{
    struct rand r;
    size_t count = 0;
    rand_seed(&r, seed);
    for (size_t i = 0; i < ns->count; i++) {
        if (rand_below(&r, 100) < percent) {
            ns->all[count++] = ns->all[i];
        }
    }
    ns->count = count;
}

static void list_one(const struct nemesis_def *d)
{
    char last[32] = "";
    if (d->last_max_ms > 0) {
        (void)snprintf(last, sizeof last, "%g-%g s", (double)d->last_min_ms / MS_PER_S,
                       (double)d->last_max_ms / MS_PER_S);
    }
    (void)printf("%-16s %5g s %10s  %s\n", d->name, (double)d->every_ms / MS_PER_S, last, d->what);
}

void nemeses_list(void)
{
    for (size_t t = 0; t < ARRAY_COUNT(tables); t++) {
        for (size_t i = 0; i < *tables[t].count; i++) {
            const struct nemesis_def *d = &tables[t].defs[i];
            list_one(d);
        }
    }
}
