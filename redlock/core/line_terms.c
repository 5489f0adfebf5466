/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of all lines of a client: whether it may join lines, scores, how long an offer and a
 * moment are; and the keys that others wanted a moment ago. */
#include "base/clock.h"
#include "base/hash.h"
#include "redlock/core/wait.h"

#define LOOK_MIN_US (2 * US_PER_MS)

/* An offer lasts as long as this many of the slowest rounds, within bounds (lock.L2). */
#define OFFER_ROUNDS 20
#define OFFER_MIN_US (100 * US_PER_MS)
#define OFFER_MAX_US US_PER_S

#define HOT_US (10 * US_PER_S)

bool line_is_usable_on(const struct node_slot *n)
{
    return !n->lock->options.no_line && clock_boot_us() >= n->line_refused_until_us;
}

bool line_is_usable(const struct redlock_async *lock)
{
    size_t count = 0;
    for (size_t i = 0; i < lock->options.node_count; i++) {
        count += line_is_usable_on(&lock->nodes[i]);
    }
    return count >= lock->quorum;
}

/* ---- scores and tokens ---- */

/* Returns the median of the nodes' clocks, which all clients share; a step of one node's clock does
 * not move it. */
static int64_t shared_clock_us(const struct redlock_async *lock)
{
    int64_t sorted_us[REDLOCK_NODES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < lock->options.node_count; i++) {
        int64_t offset_us = lock->nodes[i].clock_offset_us;
        if (offset_us != INT64_MIN) {
            core_sort_in(sorted_us, count++, offset_us);
        }
    }
    return clock_wall_us() + (count > 0 ? sorted_us[count / 2] : 0);
}

/* The time of arrival, but higher than that of each earlier waiter of this client. */
int64_t line_draw_score(struct redlock_async *lock)
{
    int64_t now_us = shared_clock_us(lock);
    lock->last_score = now_us > lock->last_score ? now_us : lock->last_score + 1;
    if (lock->last_score > LINE_SCORE_MAX) { /* some clock is centuries ahead */
        lock->last_score = LINE_SCORE_MAX;
    }
    return lock->last_score;
}

/* ---- durations ---- */

int64_t line_between(int64_t us, int64_t min_us, int64_t max_us)
{
    return us < min_us ? min_us : us > max_us ? max_us : us;
}

int64_t line_moment_us(const struct redlock_async *lock)
{
    return line_between(2 * retry_p99_us(lock->counters.latency), LOOK_MIN_US, LOOK_MAX_US);
}

int64_t line_offer_us(const struct redlock_async *lock)
{
    return line_between(OFFER_ROUNDS * retry_p99_us(lock->counters.latency), OFFER_MIN_US,
                        OFFER_MAX_US);
}

struct redis_arg line_prefix_arg(const struct redlock_async *lock)
{
    return redis_bytes(lock->any_key, lock->prefix_len);
}

void line_print_offer(const struct redlock_async *lock, char ret_text[TTL_TEXT_SIZE])
{
    core_print_i64(ret_text, line_offer_us(lock) / US_PER_MS);
}

/* ---- keys that others wanted a moment ago ---- */

static struct hot_key *hot_slot(struct redlock_async *lock, const char *key, size_t len,
                                uint32_t *ret_hash)
{
    *ret_hash = hash_bytes(key, len);
    return &lock->hot_keys[*ret_hash % HOT_KEYS];
}

void line_note_contended(struct redlock_async *lock, const char *key, size_t len, bool is_contended)
{
    uint32_t hash = 0;
    struct hot_key *hot = hot_slot(lock, key, len, &hash);
    if (is_contended) {
        *hot = (struct hot_key){.hash = hash, .until_us = clock_boot_us() + HOT_US};
    } else if (hot->hash == hash) {
        hot->until_us = 0;
    }
}

bool line_is_hot(const struct redlock_wait *w)
{
    uint32_t hash = 0;
    const struct redlock_async_key *key = &w->request.keys[0];
    const struct hot_key *hot = hot_slot(w->lock, key->bytes, key->len, &hash);
    return w->request.count == 1 && hot->hash == hash && clock_boot_us() < hot->until_us;
}
