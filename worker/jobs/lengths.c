/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs/lengths.h"

#include "base/bug.h"
#include "base/clock.h"

#include <assert.h>
#include <string.h>

#define LENGTHS_MAX 4096
#define SHORT_US (20 * US_PER_MS)
#define FETCH_WEIGHT 64
#define FETCHES 3 /* a hand-back takes about two */
#define KNOWN_RUNS 8
#define ALL_PPM 1000000
#define LONG_PPM_MAX (ALL_PPM / 20) /* the 95th percentile is short */
#define LONG_WEIGHT 64
#define RECENT_US (60 * US_PER_S)
#define LOOK_US (5 * US_PER_MS)

void lengths_release(struct lengths *l)
{
    struct run_length *length;
    struct run_length *next;
    HASH_ITER(hh, l->by_name, length, next)
    {
        HASH_DEL(l->by_name, length);
        free(length);
    }
}

int64_t lengths_max_us(const struct lengths *l)
{
    return FETCHES * l->fetch_us > SHORT_US ? FETCHES * l->fetch_us : SHORT_US;
}

static void name_of(char ret_name[2 * (JOB_NAME_MAX + 1)], const char *queue, const char *kind)
{
    memset(ret_name, 0, 2 * (JOB_NAME_MAX + 1));
    (void)strncpy(ret_name, queue, JOB_NAME_MAX);
    (void)strncpy(ret_name + JOB_NAME_MAX + 1, kind, JOB_NAME_MAX);
}

const char *lengths_queue(const struct run_length *length)
{
    return length->name;
}

const char *lengths_kind(const struct run_length *length)
{
    return length->name + JOB_NAME_MAX + 1;
}

static struct run_length *find(const struct lengths *l, const char *queue, const char *kind)
{
    char name[2 * (JOB_NAME_MAX + 1)];
    struct run_length *length = NULL;
    name_of(name, queue, kind);
    HASH_FIND(hh, l->by_name, name, sizeof name, length);
    return length;
}

const struct run_length *lengths_find(const struct lengths *l, const char *queue, const char *kind)
{
    return find(l, queue, kind);
}

static struct run_length *add(struct lengths *l, size_t queue_place, const char *queue,
                              const char *kind)
{
    struct run_length *length =
        HASH_COUNT(l->by_name) < LENGTHS_MAX ? calloc(1, sizeof *length) : NULL;
    if (length != NULL) {
        name_of(length->name, queue, kind);
        length->queue = queue_place;
        HASH_ADD(hh, l->by_name, name, sizeof length->name, length);
    }
    return length;
}

struct run_length *lengths_claimed(struct lengths *l, size_t queue_place, const char *queue,
                                   const char *kind, int64_t now_us)
{
    struct run_length *length = find(l, queue, kind);
    assert(queue_place < CONFIG_QUEUES_MAX);
    if (length == NULL) {
        length = add(l, queue_place, queue, kind);
    }
    if (length == NULL) {
        l->may_ahead[queue_place] = false; /* until look() runs again */
        return NULL;
    }
    if (now_us - length->claimed_us > RECENT_US) {
        l->looked_us = 0;
    }
    length->claimed_us = now_us;
    return length;
}

/* The first fetches are averaged with equal weight, since the first runs are judged by this value
 * and that verdict lasts long. */
void lengths_fetched(struct lengths *l, int64_t took_us)
{
    l->fetches += l->fetches < FETCH_WEIGHT ? 1 : 0;
    l->fetch_us += (took_us - l->fetch_us) / (int64_t)l->fetches;
}

void lengths_ran(struct lengths *l, struct run_length *length, int64_t ran_us, int64_t now_us)
{
    int64_t is_long_ppm = ran_us > lengths_max_us(l) ? ALL_PPM : 0;
    length->runs++;
    length->long_ppm += (is_long_ppm - length->long_ppm) /
                        (length->runs < LONG_WEIGHT ? (int64_t)length->runs : LONG_WEIGHT);
    run_stats_add(&length->stats, ran_us, now_us);
}

void lengths_handed_back(struct lengths *l, struct run_length *length, int64_t now_us)
{
    if (length->runs >= KNOWN_RUNS) {
        length->barred_until_us = now_us + RECENT_US;
    }
    l->looked_us = 0;
}

bool lengths_is_short(const struct run_length *length, int64_t now_us)
{
    return SEEDED_BUG(21) ||
           (length != NULL && length->runs >= KNOWN_RUNS && length->long_ppm <= LONG_PPM_MAX &&
            now_us >= length->barred_until_us);
}

static void look(struct lengths *l, int64_t now_us)
{
    if (l->looked_us > 0 && now_us - l->looked_us < LOOK_US) {
        return;
    }
    memset(l->may_ahead, true, sizeof l->may_ahead);
    l->looked_us = now_us;
    for (const struct run_length *e = l->by_name; e != NULL; e = e->hh.next) {
        if (now_us - e->claimed_us <= RECENT_US && !lengths_is_short(e, now_us)) {
            l->may_ahead[e->queue] = false;
        }
    }
}

bool lengths_may_ahead(struct lengths *l, size_t queue_place, int64_t now_us)
{
    look(l, now_us);
    return l->may_ahead[queue_place];
}

enum lengths_ahead lengths_ahead(struct lengths *l, size_t queue_count, int64_t now_us)
{
    size_t count = 0;
    look(l, now_us);
    for (size_t i = 0; i < queue_count; i++) {
        count += l->may_ahead[i];
    }
    return count == 0 ? LENGTHS_NONE : count < queue_count ? LENGTHS_SOME : LENGTHS_ALL;
}
