/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/feed_count.h"

#include "base/clock.h"
#include "model/hint.h"

#define GROUPS_MAX 1024 /* groups counted before one pass */

struct group_count {
    struct feed_count *all;
    size_t group;
    int64_t sum;
    /* stored here because a full pass may find the group's first tenant meanwhile */
    bool wants_first;
    int64_t first_ms;
    int pending;
};

struct feed_count {
    struct feed_count_options options;
    struct group_count groups[GROUPS_MAX];
    int pending;
    bool is_failed;
    bool is_less;
};

static void group_counted(struct feed_count *all, const struct group_count *c)
{
    struct feed *feed = all->options.feed;
    all->is_less = all->is_less || c->sum < feed->groups[c->group].held;
    if (c->wants_first) {
        feed_group_served(feed, c->group, c->first_ms);
    }
    feed_group_counted(feed, c->group, c->sum, clock_boot_us(), all->options.dry_every_us);
}

static void on_counted(void *ctx, enum status st, int64_t value, int64_t first)
{
    struct group_count *c = ctx;
    struct feed_count *all = c->all;
    int64_t first_ms = first >= 0 ? hint_score_ms(first) : -1;
    bool is_first = first_ms >= 0 && (c->first_ms < 0 || first_ms < c->first_ms);
    c->first_ms = is_first ? first_ms : c->first_ms;
    c->sum += value;
    all->is_failed = all->is_failed || st != STATUS_OK;
    if (--c->pending == 0 && !all->is_failed) {
        group_counted(all, c);
    }
    if (--all->pending == 0) {
        all->options.done(all->options.ctx, all->is_failed ? FEED_COUNT_FAILED : FEED_COUNT_DONE);
    }
}

static void count_set(struct group_count *c, const char *kind)
{
    struct feed_count *all = c->all;
    const struct feed *feed = all->options.feed;
    const struct feed_group *g = &feed->groups[c->group];
    const struct hints_range range = {.queue = g->queue,
                                      .kind = kind,
                                      .from = feed->limits.aging_us > 0 ? 0 : g->priority,
                                      .priority = g->priority,
                                      .wants_first = c->wants_first};
    if (hints_count(all->options.hints, &range, on_counted, c, NULL) == STATUS_OK) {
        c->pending++;
        all->pending++;
    } else {
        all->is_failed = true;
    }
}

static void count_kind(void *ctx, const char *kind)
{
    count_set(ctx, kind);
}

enum feed_count_end feed_count_begin(struct feed_count *all)
{
    size_t groups[GROUPS_MAX];
    const struct feed *feed = all->options.feed;
    size_t count = feed_counts_wanted(all->options.feed, groups, GROUPS_MAX);
    all->pending = 0;
    all->is_failed = false;
    all->is_less = false;
    for (size_t i = 0; i < count; i++) {
        const struct feed_group *g = &feed->groups[groups[i]];
        struct group_count *c = &all->groups[i];
        *c = (struct group_count){.all = all,
                                  .group = groups[i],
                                  .wants_first = feed_group_has_tenants(g),
                                  .first_ms = -1};
        count_set(c, NULL);
        feed_served_partial(all->options.served, g->queue, count_kind, c);
    }
    if (all->pending > 0) {
        return FEED_COUNT_DONE;
    }
    return all->is_failed ? FEED_COUNT_FAILED : FEED_COUNT_NONE;
}

bool feed_count_was_less(const struct feed_count *all)
{
    return all->is_less;
}

enum status feed_count_open(const struct feed_count_options *options, struct feed_count **ret,
                            struct err *err)
{
    struct feed_count *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory to count hints");
    }
    c->options = *options;
    *ret = c;
    return STATUS_OK;
}

void feed_count_close(struct feed_count *c)
{
    free(c);
}
