/* SPDX-License-Identifier: Apache-2.0 */
#include "store/jobs/suspects.h"

#include "base/clock.h"

#include <assert.h>

#define ASIDE_FIRST_US (100 * US_PER_MS)
#define ASIDE_MAX_US (60 * US_PER_S)
#define REFUSALS_MAX 3

void suspects_init(struct suspects *s)
{
    *s = (struct suspects){.finish_max = SEGMENT_FINISHES_MAX};
}

void suspects_release(struct suspects *s)
{
    finish_queue_release(&s->aside);
}

bool suspects_is_searching(const struct suspects *s)
{
    return s->finish_max < SEGMENT_FINISHES_MAX;
}

/* False for trouble of the server as a whole: UNAVAILABLE, TIMEOUT, CONFLICT, LIMIT. */
static bool may_be_data(const struct err *err)
{
    return err->status == STATUS_INVALID || err->status == STATUS_INTERNAL;
}

/* Removes the only finish from the segment. */
static struct finish *take_only(struct segment *segment)
{
    assert(segment->finish_count == 1);
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        if (segment->finishes[k].count > 0) {
            segment->finishes[k].count = 0;
            segment->finish_count = 0;
            return segment->finishes[k].items[0];
        }
    }
    assert(false);
    return NULL;
}

static void set_aside(struct suspects *s, struct finish *f, const struct err *err, int64_t now_us)
{
    int64_t next_us = f->wait_us == 0 ? ASIDE_FIRST_US : f->wait_us * 2;
    f->wait_us = next_us < ASIDE_MAX_US ? next_us : ASIDE_MAX_US;
    f->again_us = now_us + f->wait_us;
    if (s->aside.first == NULL || f->again_us < s->aside_until_us) {
        s->aside_until_us = f->again_us;
    }
    finish_queue_push(&s->aside, f);
    s->aside_trouble = *err;
}

/* Blames a finish that was refused alone. Returns true if the others may go on at once. */
static bool blame_one(struct suspects *s, struct finish *f, const struct err *err,
                      struct finish_queue *waiting, int64_t now_us)
{
    bool others_pass = f->is_suspect && f->suspect_since != s->commits;
    f->refusals += !f->is_suspect || others_pass;
    bool is_its_own = err->status == STATUS_INVALID || f->refusals >= REFUSALS_MAX;
    f->is_suspect = true;
    f->suspect_since = s->commits;
    s->finish_max = SEGMENT_FINISHES_MAX;
    if (is_its_own && finish_refuse(f, err->msg, NULL) == STATUS_OK) {
        finish_queue_push_front(waiting, f);
    } else {
        set_aside(s, f, err, now_us);
    }
    return is_its_own || others_pass;
}

bool suspects_blame(struct suspects *s, struct segment *segment, const struct err *err,
                    struct finish_queue *waiting, int64_t now_us)
{
    if (segment->finish_count == 0 || !may_be_data(err)) {
        return false;
    }
    if (segment->finish_count == 1 && segment->claims.first == NULL) {
        return blame_one(s, take_only(segment), err, waiting, now_us);
    }
    s->finish_max = segment->finish_count > 1 ? segment->finish_count / 2 : 1;
    return true;
}

void suspects_committed(struct suspects *s)
{
    s->commits++;
    size_t doubled = s->finish_max * 2;
    s->finish_max = doubled < SEGMENT_FINISHES_MAX ? doubled : SEGMENT_FINISHES_MAX;
}

void suspects_retry(struct suspects *s, struct finish_queue *waiting, int64_t now_us)
{
    if (s->aside.first == NULL || now_us < s->aside_until_us) {
        return;
    }
    struct finish_queue all = s->aside;
    s->aside = (struct finish_queue){.first = NULL};
    s->aside_until_us = INT64_MAX;
    for (struct finish *f = finish_queue_pop(&all); f != NULL; f = finish_queue_pop(&all)) {
        if (f->again_us <= now_us) {
            finish_queue_push(waiting, f);
            continue;
        }
        s->aside_until_us = f->again_us < s->aside_until_us ? f->again_us : s->aside_until_us;
        finish_queue_push(&s->aside, f);
    }
}
