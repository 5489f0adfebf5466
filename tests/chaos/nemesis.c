/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/nemesis.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>

#define JITTER_PERCENT 60
#define LULL_EVERY_US (240 * US_PER_S)
#define LULL_US (80 * US_PER_S) /* of these; faults that have begun continue into it */

/* FNV-1a: the same name and seed give the same stream, whatever other faults there are. */
static uint64_t seed_of(uint64_t seed, const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed;
    for (const char *p = name; *p != '\0'; p++) {
        hash = (hash ^ (uint64_t)(unsigned char)*p) * UINT64_C(0x100000001b3);
    }
    return hash;
}

void nemeses_add(struct nemeses *ns, const struct nemesis_def *def, uint64_t seed)
{
    struct nemesis *n = &ns->all[ns->count++];
    *n = (struct nemesis){.def = def};
    rand_seed(&n->rand, seed_of(seed, def->name));
}

bool nemeses_has(const struct nemeses *ns, const char *name)
{
    for (size_t i = 0; i < ns->count; i++) {
        if (strcmp(ns->all[i].def->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void plan(struct world *w, struct nemesis *n, int64_t now_us)
{
    int64_t every_us = n->def->every_ms * US_PER_MS;
    n->next_us = now_us + world_scaled(w, rand_jitter(&n->rand, every_us, JITTER_PERCENT));
}

void nemeses_begin(struct nemeses *ns, struct world *w, int64_t now_us)
{
    ns->begin_us = now_us;
    for (size_t i = 0; i < ns->count; i++) {
        struct nemesis *n = &ns->all[i];
        /* The first strike of a rare fault comes early, whatever the length of the run. */
        int64_t every_us = n->def->every_ms * US_PER_MS;
        n->next_us = now_us + world_scaled(w, rand_below(&n->rand, every_us));
    }
}

static void tell(struct world *w, const struct nemesis *n, const char *ph)
{
    journal_write(&w->nemesis,
                  json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:i}", "ph", ph, "x", n->def->name,
                            "target", n->target, "detail", n->detail, "n", (json_int_t)n->strikes,
                            "struck", (json_int_t)n->struck_us * NS_PER_US, "traits",
                            (int)n->def->traits));
}

static void heal(struct nemeses *ns, struct world *w, struct nemesis *n)
{
    if (n->def->heal != NULL) {
        n->def->heal(w, n);
    }
    n->is_on = false;
    tell(w, n, "ok");
    ns->last_us = clock_boot_us();
}

static void strike(struct nemeses *ns, struct world *w, struct nemesis *n, int64_t now_us)
{
    const struct nemesis_def *d = n->def;
    n->target[0] = '\0';
    n->detail[0] = '\0';
    n->struck_us = clock_boot_us();
    plan(w, n, now_us);
    if (d->strike == NULL || !d->strike(w, n)) {
        return;
    }
    n->strikes++;
    ns->counts[d->count]++;
    tell(w, n, "inv");
    ns->last_us = clock_boot_us();
    n->is_on = true;
    n->heal_us =
        now_us + world_scaled(w, US_PER_MS * nemesis_between(n, d->last_min_ms, d->last_max_ms));
    if (d->last_max_ms == 0) {
        heal(ns, w, n);
    } else if (n->next_us <= n->heal_us) {
        plan(w, n, n->heal_us);
    }
}

/* Now and then only daemons die: how soon their jobs are moved is judged while nothing else hinders
 * it (inv.L2). */
static bool is_lull(const struct nemeses *ns, const struct world *w, int64_t now_us)
{
    int64_t period_us = world_scaled(w, LULL_EVERY_US);
    return (now_us - ns->begin_us) % period_us > period_us - world_scaled(w, LULL_US);
}

void nemeses_tick(struct nemeses *ns, struct world *w, int64_t now_us)
{
    for (size_t i = 0; i < ns->count; i++) {
        struct nemesis *n = &ns->all[i];
        if (n->is_on && now_us >= n->heal_us) {
            heal(ns, w, n);
        } else if (!n->is_on && now_us >= n->next_us) {
            if (ns->has_lulls && is_lull(ns, w, now_us) && n->def->strike != nemesis_kill9) {
                plan(w, n, now_us);
            } else {
                strike(ns, w, n, now_us);
            }
        }
    }
}

void nemeses_end(struct nemeses *ns, struct world *w)
{
    for (size_t i = 0; i < ns->count; i++) {
        if (ns->all[i].is_on) {
            heal(ns, w, &ns->all[i]);
        }
        session_close(&ns->all[i].sessions[0]);
        session_close(&ns->all[i].sessions[1]);
    }
}

void nemesis_target(struct nemesis *n, const char *detail, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(n->target, sizeof n->target, format, args);
    va_end(args);
    (void)snprintf(n->detail, sizeof n->detail, "%s", detail);
}

struct host *nemesis_host(struct world *w, struct nemesis *n, int role)
{
    struct host *fit[WORLD_HOSTS_MAX];
    int64_t count = 0;
    for (size_t i = 0; i < w->host_count; i++) {
        struct host *h = &w->hosts[i];
        if (h->pid > 0 && h->ended_by_us == WORLD_NEVER && (role < 0 || (int)h->role == role)) {
            fit[count++] = h;
        }
    }
    return count > 0 ? fit[rand_below(&n->rand, count)] : NULL;
}

int64_t nemesis_between(struct nemesis *n, int64_t min, int64_t max)
{
    return min + rand_below(&n->rand, max - min + 1);
}
