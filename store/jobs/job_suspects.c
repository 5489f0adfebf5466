/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose fault is it? A batch is one transaction, so one finish that PostgreSQL won't take holds up
 * all others of its worker. Bisecting finds it. An SQLSTATE that speaks of data condemns it at
 * once. Any other may be the server's trouble, perhaps one that comes and goes: it condemns only
 * what was refused alone again and again while others were committed in between. Until then, and
 * when it can't be recorded even without its data, it is set aside and tried alone, so that it
 * never comes between the others. */
#include "store/jobs/internal.h"

#include <assert.h>

#define ASIDE_FIRST_US (100 * US_PER_MS)
#define ASIDE_MAX_US (60 * US_PER_S)
#define REFUSALS_MAX 3

/* About the server as a whole: UNAVAILABLE, TIMEOUT, CONFLICT, LIMIT say so. */
static bool may_be_data(const struct err *err)
{
    return err->status == STATUS_INVALID || err->status == STATUS_INTERNAL;
}

/* The batch's only finish leaves it. */
static struct finish *take_only(struct batch *b)
{
    assert(b->finish_count == 1);
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        if (b->finishes[k].count > 0) {
            b->finishes[k].count = 0;
            b->finish_count = 0;
            return b->finishes[k].items[0];
        }
    }
    assert(false);
    return NULL;
}

static void set_aside(struct job_store *s, struct finish *f, const struct err *err)
{
    int64_t next_us = f->wait_us == 0 ? ASIDE_FIRST_US : f->wait_us * 2;
    f->wait_us = next_us < ASIDE_MAX_US ? next_us : ASIDE_MAX_US;
    f->again_us = clock_boot_us() + f->wait_us;
    if (s->aside.first == NULL || f->again_us < s->aside_until_us) {
        s->aside_until_us = f->again_us;
    }
    finish_queue_push(&s->aside, f);
    s->aside_trouble = *err;
    store_arm(s, s->aside_until_us);
}

/* True: others may go on at once. */
static bool blame_one(struct job_store *s, const struct err *err)
{
    struct finish *f = take_only(&s->batch);
    bool others_pass = f->is_suspect && f->suspect_since != s->finish_batches;
    f->refusals += !f->is_suspect || others_pass;
    bool is_its_own = err->status == STATUS_INVALID || f->refusals >= REFUSALS_MAX;
    f->is_suspect = true;
    f->suspect_since = s->finish_batches;
    s->finish_max = BATCH_FINISHES_MAX;
    if (is_its_own && finish_refuse(f, err->msg, NULL) == STATUS_OK) {
        finish_queue_push_front(&s->waiting, f);
    } else {
        set_aside(s, f, err);
    }
    return is_its_own || others_pass;
}

bool store_blame(struct job_store *s, const struct err *err)
{
    struct batch *b = &s->batch;
    if (b->finish_count == 0 || !may_be_data(err)) {
        return false;
    }
    if (b->finish_count == 1 && b->claims.first == NULL) {
        return blame_one(s, err);
    }
    s->finish_max = b->finish_count > 1 ? b->finish_count / 2 : 1;
    return true;
}

void store_retry_aside(struct job_store *s, int64_t now_us)
{
    if (s->aside.first == NULL) {
        return;
    }
    if (now_us < s->aside_until_us) {
        store_arm(s, s->aside_until_us);
        return;
    }
    struct finish_queue all = s->aside;
    s->aside = (struct finish_queue){.first = NULL};
    s->aside_until_us = INT64_MAX;
    for (struct finish *f = finish_queue_pop(&all); f != NULL; f = finish_queue_pop(&all)) {
        if (f->again_us <= now_us) {
            finish_queue_push(&s->waiting, f);
            continue;
        }
        s->aside_until_us = f->again_us < s->aside_until_us ? f->again_us : s->aside_until_us;
        finish_queue_push(&s->aside, f);
    }
}
