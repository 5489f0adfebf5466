/* SPDX-License-Identifier: Apache-2.0
 *
 * Those of one client that wait for the same keys: one tries for all of them. */
#include "base/clock.h"
#include "base/hash.h"
#include "redlock/wait.h"

#define POLL_MIN_US (250 * US_PER_MS)
#define POLL_MAX_US US_PER_S
#define SLEEP_US (5 * US_PER_S) /* so often where releases are heard of, and nobody knows a ttl */
/* After the first node told of a release; the others follow, or never had the key. */
#define LAST_TO_TELL_US (2 * US_PER_MS + US_PER_MS / 2)
#define DOUBLINGS_MAX 9 /* of that */

/* ---- lines ---- */

static size_t bucket_of(const struct redlock_async_request *r)
{
    return hash_bytes(r->keys[0].bytes, r->keys[0].len) % LINE_BUCKETS;
}

static bool is_same(const struct redlock_async_request *a, const struct redlock_async_request *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (a->keys[i].len != b->keys[i].len ||
            memcmp(a->keys[i].bytes, b->keys[i].bytes, a->keys[i].len) != 0) {
            return false;
        }
    }
    return true;
}

bool line_join(struct redlock_wait *w)
{
    struct waits *waits = w->lock->waits;
    size_t bucket = bucket_of(&w->request);
    struct wait_line *line = waits->lines[bucket];
    while (line != NULL && !is_same(&line->first->request, &w->request)) {
        line = line->next;
    }
    if (line == NULL) {
        line = pool_take(&w->lock->pool, sizeof *line);
        if (line == NULL) {
            return false;
        }
        *line = (struct wait_line){.next = waits->lines[bucket],
                                   .bucket = bucket,
                                   .subscription_count = w->request.count,
                                   .result = REDLOCK_HELD_BY_OTHER};
        waits->lines[bucket] = line;
    }
    w->line = line;
    w->prev_in_line = line->last;
    *(line->last != NULL ? &line->last->next_in_line : &line->first) = w;
    line->last = w;
    return true;
}

static void line_free(struct redlock_async *lock, struct wait_line *line)
{
    struct wait_line **link = &lock->waits->lines[line->bucket];
    while (*link != line) {
        link = &(*link)->next;
    }
    *link = line->next;
    for (size_t i = 0; line->subscriptions != NULL && i < line->subscription_count; i++) {
        wake_unlisten(line->subscriptions[i]);
    }
    pool_give(&lock->pool, line->subscriptions);
    pool_give(&lock->pool, line);
}

void line_leave(struct redlock_wait *w)
{
    struct wait_line *line = TAKE(w->line);
    if (line == NULL) {
        return;
    }
    bool was_first = line->first == w;
    *(w->prev_in_line != NULL ? &w->prev_in_line->next_in_line : &line->first) = w->next_in_line;
    *(w->next_in_line != NULL ? &w->next_in_line->prev_in_line : &line->last) = w->prev_in_line;
    if (line->first == NULL) {
        line_free(w->lock, line);
    } else if (was_first) {
        line->is_asleep = line->is_pausing = false;
        wait_be_due(line->first);
    }
}

static bool line_is_covered(const struct wait_line *line)
{
    bool is_any = false;
    for (size_t i = 0; line->subscriptions != NULL && i < line->subscription_count; i++) {
        if (line->subscriptions[i] != NULL && !wake_is_covered(line->subscriptions[i])) {
            return false;
        }
        is_any = is_any || line->subscriptions[i] != NULL;
    }
    return is_any;
}

void line_starts_try(struct redlock_wait *w)
{
    struct wait_line *line = w->line;
    line->is_asleep = line->is_pausing = false;
    for (size_t i = 0; line->subscriptions != NULL && i < line->subscription_count; i++) {
        if (line->subscriptions[i] != NULL) {
            wake_forget(line->subscriptions[i]);
        }
    }
    line->was_covered = line_is_covered(line);
    w->lock->counters.wakeups += line->is_woken;
    if (!line->is_woken) {
        line->few_in_row = 0;
    }
    line->is_woken = false;
}

/* ---- asleep ---- */

static void plan_not_later(struct redlock_wait *w, int64_t at_us)
{
    if (at_us < w->at_us) {
        wait_plan(w, at_us);
    }
}

static bool is_missing(const struct redlock_wait *w, size_t index)
{
    return w->batch->keys[index].result != REDLOCK_WON;
}

static bool is_refused(const struct redlock_wait *w, size_t index)
{
    return w->batch->keys[index].result == REDLOCK_HELD_BY_OTHER;
}

/* How many nodes have room for the key, as far as we know: those that gave it to us, which goes
 * back, and those that told of its release. A holder's copies are on neither. */
static size_t nodes_free(const struct wait_line *line, size_t index)
{
    const struct wake_subscription *subscription =
        line->subscriptions != NULL ? line->subscriptions[index] : NULL;
    const struct key *k = &line->first->batch->keys[index];
    return subscription != NULL ? (size_t)__builtin_popcount(k->ok_nodes | wake_heard(subscription))
                                : 0;
}

/* Nodes that told of a release of each key that is not ours. */
static bool is_any_heard(const struct wait_line *line)
{
    for (size_t i = 0; i < line->subscription_count; i++) {
        const struct wake_subscription *subscription =
            line->subscriptions != NULL ? line->subscriptions[i] : NULL;
        if (is_missing(line->first, i) && (subscription == NULL || wake_heard(subscription) == 0)) {
            return false;
        }
    }
    return true;
}

static void wake_up(struct wait_line *line)
{
    line->is_woken = true;
    line->few_in_row = 0;
    wait_be_due(line->first);
}

static void wake_asleep(struct wait_line *line, size_t least_free)
{
    struct redlock_wait *w = line->first;
    bool is_covered = line_is_covered(line);
    if (least_free >= w->lock->quorum) {
        wake_up(line);
    } else if (is_covered && !line->was_covered) {
        wait_be_due(w);
    } else if (!line->is_woken && is_any_heard(line)) {
        line->is_woken = true;
        plan_not_later(w, clock_boot_us() + (LAST_TO_TELL_US << line->few_in_row));
        line->few_in_row += line->few_in_row < DOUBLINGS_MAX;
    } else if (!is_covered && line->was_covered) {
        line->was_covered = false;
        plan_not_later(w, clock_boot_us() + POLL_MIN_US);
    }
}

/* Something was heard, or the coverage changed. A split is cut short once, as it may be of a
 * release that was under way; contenders that split again must keep their pauses. */
static void reconsider(void *ctx)
{
    struct wait_line *line = ctx;
    const struct redlock_wait *w = line->first;
    if (!line->is_asleep && !line->is_pausing) {
        return;
    }
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < line->subscription_count; i++) {
        if (is_missing(w, i)) {
            size_t free_nodes = nodes_free(line, i);
            least = free_nodes < least ? free_nodes : least;
        }
    }
    if (line->is_asleep) {
        wake_asleep(line, least);
    } else if (w->failures == 1 && least >= w->lock->quorum) {
        wake_up(line);
    }
}

static void listen_for_refused(struct redlock_wait *w)
{
    struct wait_line *line = w->line;
    if (line->subscriptions == NULL) {
        line->subscriptions = pool_take(&w->lock->pool, line->subscription_count *
                                                            sizeof(struct wake_subscription *));
    }
    for (size_t i = 0; i < line->subscription_count; i++) {
        if (!is_refused(w, i) || (line->subscriptions != NULL && line->subscriptions[i] != NULL)) {
            continue;
        }
        const struct key *k = &w->batch->keys[i];
        line->was_covered = false; /* the try was too early for this one */
        if (line->subscriptions != NULL) {
            line->subscriptions[i] = wake_listen(w->lock, k->bytes, k->len, reconsider, line);
        }
    }
}

/* Until all that was refused is free by itself; −1 = unknown. */
static int64_t longest_ttl_us(const struct redlock_wait *w)
{
    int64_t longest_us = 0;
    for (size_t i = 0; i < w->batch->count; i++) {
        int64_t ttl_us = is_refused(w, i) ? redlock_batch_holder_ttl_us(w->batch, i) : 0;
        if (ttl_us < 0) {
            return -1;
        }
        longest_us = ttl_us > longest_us ? ttl_us : longest_us;
    }
    return longest_us;
}

void line_fall_asleep(struct redlock_wait *w, int64_t now_us)
{
    struct wait_line *line = w->line;
    struct rand *rand = &w->lock->rand;
    const struct retry_terms terms = wait_retry_terms(w);
    listen_for_refused(w);
    w->failures = 0;
    int64_t pause_us = SLEEP_US;
    if (!line->was_covered) {
        pause_us = POLL_MIN_US + rand_below(rand, POLL_MAX_US - POLL_MIN_US);
    }
    int64_t ttl_us = longest_ttl_us(w);
    if (ttl_us >= 0 && (line->was_covered || ttl_us < pause_us)) {
        pause_us = ttl_us + US_PER_MS + rand_below(rand, terms.base_us);
    }
    wait_plan(w, now_us + pause_us);
    line->is_asleep = true;
    reconsider(line);
}

void line_pauses(struct redlock_wait *w)
{
    if (w->line != NULL && w->batch != NULL) {
        w->line->is_pausing = true;
        reconsider(w->line);
    }
}

bool line_may_sleep(const struct redlock_wait *w)
{
    for (size_t i = 0; i < w->batch->count; i++) {
        if (w->batch->keys[i].is_contended) {
            return false;
        }
    }
    return w->line != NULL && w->result == REDLOCK_HELD_BY_OTHER;
}
