/* SPDX-License-Identifier: Apache-2.0
 *
 * The work of the job store at the end of each turn of the loop: it sends one segment at a time,
 * and acts on the reply. */
#include "base/bug.h"
#include "base/clock.h"
#include "base/timer.h"
#include "sql/queries.h"
#include "store/jobs/internal.h"

#define LOCKED_AGAIN_US (200 * US_PER_MS)
#define BACKOFF_FIRST_US (50 * US_PER_MS)
#define BACKOFF_MAX_US (2 * US_PER_S)
#define CAREFUL_US (10 * US_PER_S) /* INTERFACES rule 4 */
#define KINDS_FRESH_US (10 * US_PER_S)

/* ---- waiting ---- */

static void on_timer(uv_timer_t *timer)
{
    (void)timer; /* only makes the loop turn: store_flush() follows in this same turn */
}

/* Makes the loop turn at that time. */
static void arm(struct job_store *s, int64_t at_us)
{
    int64_t ms = (at_us - clock_boot_us()) / US_PER_MS + 1;
    uint64_t delay_ms = ms > 0 ? (uint64_t)ms : 0;
    if (!uv_is_active((uv_handle_t *)&s->timer) || uv_timer_get_due_in(&s->timer) > delay_ms) {
        timer_start(&s->timer, on_timer, delay_ms, 0);
    }
}

/* Sends no segment for a while, longer each time. */
static void back_off(struct job_store *s, const struct err *why)
{
    s->trouble = *why;
    int64_t next_us = s->backoff_us == 0 ? BACKOFF_FIRST_US : s->backoff_us * 2;
    s->backoff_us = next_us < BACKOFF_MAX_US ? next_us : BACKOFF_MAX_US;
    s->blocked_until_us = clock_boot_us() + rand_jitter(&s->rand, s->backoff_us, 20);
    arm(s, s->blocked_until_us);
}

void store_keep_locked(struct job_store *s, struct finish *f)
{
    if (s->locked.first == NULL) {
        s->locked_until_us = clock_boot_us() + LOCKED_AGAIN_US;
        arm(s, s->locked_until_us);
    }
    finish_queue_push(&s->locked, f);
}

static void retry_locked(struct job_store *s, int64_t now_us)
{
    if (s->locked.first == NULL) {
        return;
    }
    if (now_us < s->locked_until_us) {
        arm(s, s->locked_until_us);
        return;
    }
    finish_queue_move(&s->waiting, &s->locked);
}

static void claim_within_limits(struct job_store *s, struct claim *c)
{
    c->is_limited = true;
    claim_queue_push(&s->limited, c);
}

void store_claim_limited(struct job_store *s, struct claim *c)
{
    s->outlook.limits_until_us = clock_boot_us() + CLAIM_OUTLOOK_US;
    claim_within_limits(s, c);
}

/* ---- segments ---- */

static void pass_on_finishes(struct job_store *s, struct recheck *r)
{
    struct finish_queue settled = {.first = NULL};
    for (size_t k = 0; k < FINISH_KIND_COUNT; k++) {
        struct finish_list *list = &s->segment.finishes[k];
        for (size_t i = 0; i < list->count; i++) {
            struct finish *f = list->items[i];
            if (f->is_settled) {
                finish_queue_push(&settled, f);
            } else if (r != NULL) {
                recheck_add_finish(r, f);
            } else {
                store_keep_locked(s, f);
            }
        }
        list->count = 0;
    }
    s->segment.finish_count = 0;
    for (struct finish *f = finish_queue_pop(&settled); f != NULL; f = finish_queue_pop(&settled)) {
        store_settle_finish(s, f, f->is_refused ? FINISH_REFUSED : FINISH_ACCEPTED);
    }
}

/* Answers the claims whose ids are all settled, and rechecks the others: at once, or after a claim
 * with limits has left them out as well. */
static void pass_on_claims(struct job_store *s, struct claim_queue *from, struct recheck *r)
{
    struct claim_queue taken = *from;
    *from = (struct claim_queue){.first = NULL};
    for (struct claim *c = claim_queue_pop(&taken); c != NULL; c = claim_queue_pop(&taken)) {
        claim_learn(&s->outlook, c, clock_boot_us());
        if (claim_is_settled(c)) {
            store_answer_claim(s, c);
        } else if (!c->is_limited && clock_boot_us() < s->outlook.limits_until_us) {
            claim_within_limits(s, c);
        } else if (r != NULL) {
            recheck_add_claim(r, c);
        } else {
            claim_refuse_rest(c, CLAIM_NOT_TRIED);
            store_answer_claim(s, c);
        }
    }
}

static void segment_committed(struct job_store *s)
{
    struct recheck *r = recheck_new(s, &s->kinds);
    pass_on_finishes(s, r);
    pass_on_claims(s, &s->segment.claims, r);
    recheck_send(r);
}

static void segment_failed(struct job_store *s, enum status st, const struct err *err)
{
    struct segment *segment = &s->segment;
    if (st == STATUS_UNKNOWN) {
        s->counters.unknown_outcomes++;
        segment_return_finishes(segment, &s->waiting, true);
        segment_return_claims(segment, &s->lost);
        return;
    }
    bool is_locked = strcmp(err->code, "55P03") == 0;
    s->counters.refused_segments++;
    bool is_retried = false;
    if (is_locked && !segment->is_careful) {
        s->counters.locked_repeats++;
        s->careful_until_us = clock_boot_us() + CAREFUL_US;
        is_retried = true;
    } else if (!is_locked && !(SEEDED_BUG(17) && strncmp(err->code, "23", 2) == 0)) {
        is_retried = suspects_blame(&s->suspects, segment, err, &s->waiting, clock_boot_us());
    }
    segment_return_finishes(segment, &s->waiting, false);
    if (is_retried) {
        segment_return_claims(segment,
                              segment->claims.first != NULL && segment->claims.first->is_limited
                                  ? &s->limited
                                  : &s->claims);
        return;
    }
    back_off(s, err);
    store_answer_claims(s, &segment->claims, CLAIM_NOT_TRIED);
}

static void on_segment(void *ctx, enum status st, const struct pg_result *const *results,
                       const struct err *err)
{
    struct job_store *s = ctx;
    if (!store_request_ended(s)) {
        return;
    }
    s->is_in_flight = false;
    if (st != STATUS_OK) {
        segment_failed(s, st, err);
        return;
    }
    s->backoff_us = 0;
    s->trouble.status = STATUS_OK;
    s->counters.commits += s->segment.finish_count > 0 || s->segment.claims.first != NULL;
    if (s->segment.finish_count > 0) {
        suspects_committed(&s->suspects);
    }
    if (s->segment.checks_fence) {
        s->fence_checked_us = s->fence_checking_us;
    }
    segment_settle(&s->segment, &s->kinds, results, clock_boot_us(), &s->fence_known);
    segment_committed(s);
    if (s->on_freed != NULL) {
        segment_tell_freed(&s->segment, results, s->on_freed, s->ctx); /* after their releases */
    }
}

/* While a finish with bad data is searched for, claims are sent in segments of their own. */
static void fill_segment(struct job_store *s, int64_t now_us)
{
    struct segment *segment = &s->segment;
    bool is_limited = s->limited.first != NULL &&
                      !(s->was_limited && (s->claims.first != NULL || s->waiting.first != NULL));
    struct claim_queue *claims = is_limited ? &s->limited : &s->claims;
    bool has_claims = claims->first != NULL;
    bool knows_kinds =
        has_claims && kind_cache_knows(&s->kinds, claims->first->kinds, claims->first->kind_count);
    bool is_searching = suspects_is_searching(&s->suspects);
    bool is_claims_only = is_searching && s->is_claims_turn && has_claims;
    s->was_limited = is_limited;
    segment->has_suspect = false;
    segment->checks_fence = has_claims && s->fence_checked_us != pg_up_since_us(s->pg);
    segment->is_careful = now_us < s->careful_until_us;
    segment->reads_kinds =
        has_claims && (!knows_kinds || now_us - s->kinds.loaded_us > KINDS_FRESH_US);
    if (segment->checks_fence) {
        s->fence_checking_us = pg_up_since_us(s->pg);
        return;
    }
    if (!is_claims_only && !is_limited) {
        segment_take_finishes(segment, &s->waiting, s->suspects.finish_max);
    }
    if (knows_kinds && !segment->has_suspect && (!is_searching || segment->finish_count == 0)) {
        segment_take_claims(segment, claims);
    }
    s->is_claims_turn = !is_claims_only;
}

/* Sends what waits, and answers what can't be sent. */
static void send_segment(struct job_store *s, int64_t now_us)
{
    struct segment *segment = &s->segment;
    fill_segment(s, now_us);
    if (segment->finish_count == 0 && segment->claims.first == NULL && !segment->reads_kinds &&
        !segment->checks_fence) {
        return;
    }
    struct pg_request request = {.step_count = 0};
    struct err err = {.status = STATUS_OK};
    enum status st = segment_build(segment, &s->kinds, s->worker_id, &request, &err);
    if (st == STATUS_OK && request.step_count == 0) {
        /* the claims are all ahead, and all kinds at_most_once: nothing to ask for */
        segment_committed(s);
        return;
    }
    if (st == STATUS_OK) {
        st = store_send(s, &request, on_segment, s, &err);
    }
    s->is_in_flight = st == STATUS_OK;
    if (st != STATUS_OK) {
        segment_return_finishes(segment, &s->waiting, false);
        back_off(s, &err);
        store_answer_claims(s, &segment->claims, CLAIM_NOT_TRIED);
        return;
    }
    for (struct claim *c = segment->claims.first; c != NULL; c = c->next) {
        memcpy(c->worker_id, s->worker_id, sizeof c->worker_id);
    }
    if (segment->claims.first != NULL) {
        s->lost_fence = s->fence_known;
        memcpy(s->lost_worker_id, s->worker_id, sizeof s->worker_id);
    }
}

/* ---- claims whose reply was lost ---- */

static void on_adopted(void *ctx, enum status st, const struct pg_result *const *results,
                       const struct err *err)
{
    struct job_store *s = ctx;
    if (!store_request_ended(s)) {
        return;
    }
    s->is_in_flight = false;
    if (st != STATUS_OK) {
        back_off(s, err);
        return;
    }
    size_t count = segment_places(s->lost.first, s->segment.places, SEGMENT_CLAIMS_MAX);
    segment_settle_claims(s->segment.places, count, &s->kinds, results[0], &s->fence_known);
    struct recheck *r = recheck_new(s, &s->kinds);
    pass_on_claims(s, &s->lost, r);
    recheck_send(r);
}

/* Reads back the claims in `lost`. The old backend is gone by now (pg.h), so what these rows say
 * stays true (ARCHITECTURE §4.11). */
static void read_back(struct job_store *s)
{
    size_t count = segment_places(s->lost.first, s->segment.places, SEGMENT_CLAIMS_MAX);
    int64_t ids[SEGMENT_CLAIMS_MAX];
    for (size_t i = 0; i < count; i++) {
        ids[i] = s->segment.places[i].id;
    }
    struct params p = {.count = 0};
    params_i64_array(&p, ids, count);
    params_uuid(&p, s->lost_worker_id);
    params_i64(&p, s->lost_fence);
    struct err err = {.status = STATUS_OK};
    enum status st = store_send_one(s, &SQL_JOB_ADOPT, &p, on_adopted, s, &err);
    params_release(&p);
    s->is_in_flight = st == STATUS_OK;
    if (st != STATUS_OK) {
        back_off(s, &err);
    }
}

static void refuse_waiting_claims(struct job_store *s)
{
    store_answer_claims(s, &s->claims, CLAIM_NOT_TRIED);
    store_answer_claims(s, &s->limited, CLAIM_NOT_TRIED);
}

/* ---- turns of the loop ---- */

static bool has_work(const struct job_store *s)
{
    return s->waiting.first != NULL || s->locked.first != NULL || s->suspects.aside.first != NULL ||
           s->claims.first != NULL || s->limited.first != NULL || s->lost.first != NULL;
}

bool job_store_is_idle(const struct job_store *s)
{
    return !s->is_in_flight && !has_work(s);
}

/* True if all claims that wait to be sent are ahead of free runners, so that finishes in the same
 * segment delay no job. */
static bool nobody_waits_for_claims(const struct job_store *s)
{
    for (const struct claim *c = s->claims.first; c != NULL; c = c->next) {
        if (c->ahead_from > 0) {
            return false;
        }
    }
    return s->claims.first != NULL;
}

void store_flush(struct job_store *s)
{
    if (s->is_in_flight || (!has_work(s) && s->group_commit.finishes.first == NULL)) {
        return;
    }
    int64_t now_us = clock_boot_us();
    retry_locked(s, now_us);
    suspects_retry(&s->suspects, &s->waiting, now_us);
    int64_t group_us =
        group_commit_pass_on(&s->group_commit, &s->waiting, nobody_waits_for_claims(s), now_us);
    if (group_us != INT64_MAX) {
        arm(s, group_us);
    }
    if (s->suspects.aside.first != NULL) {
        arm(s, s->suspects.aside_until_us);
    }
    if (!pg_is_up(s->pg)) {
        refuse_waiting_claims(s);
    } else if (now_us < s->blocked_until_us) {
        arm(s, s->blocked_until_us);
        refuse_waiting_claims(s);
    } else if (s->lost.first != NULL) {
        read_back(s);
    } else {
        send_segment(s, now_us);
    }
}
