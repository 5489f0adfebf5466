/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes' answers to a round in line: votes, owners, and when to ask again. */
#include "base/clock.h"
#include "base/hash.h"
#include "redlock/core/wait.h"

#define LOOK_LATE_US (5 * US_PER_MS) /* added to the end of what it waits for */
#define LOOK_RANK_MAX 32 /* waiters further behind do not check whether the head is dead */
#define REST_MAX_MS INT64_C(86400000)
#define LINE_REFUSED_US (60 * US_PER_S)
#define GAP_MAX_MS 1000
/* during a gap the first in line checks whether another client has taken the key */
#define GAP_LOOK_US (25 * US_PER_MS)

/* How often to ask while a foreign client owns the key, since its release is not announced: less
 * often the longer it has the key. */
#define POLL_MIN_US (3 * US_PER_MS)
#define POLL_MAX_US (250 * US_PER_MS)

/* Checks the form: {1, canary, gap} or {0, canary, owner, rest, rank}. */
static bool is_answer(const struct redis_value *v)
{
    if (v->type != REDIS_ARRAY || v->len < 3 || v->items[0]->type != REDIS_INTEGER) {
        return false;
    }
    if (v->items[0]->integer == 1) {
        return v->len == 3 && v->items[2]->type == REDIS_INTEGER;
    }
    return v->len == 5 && v->items[2]->type == REDIS_STRING && v->items[3]->type == REDIS_INTEGER &&
           (v->items[4]->type == REDIS_INTEGER || v->items[4]->type == REDIS_NIL);
}

void line_look_not_later(struct place *p, int64_t at_us)
{
    p->look_us = at_us < p->look_us ? at_us : p->look_us;
}

/* Plans the next poll of the first in line, since a foreign owner's release is not announced. */
static void plan_poll(struct redlock_wait *w, const struct redis_value *owner, int64_t now_us)
{
    struct place *p = &w->place;
    uint32_t hash = hash_bytes(owner->text, owner->len);
    if (p->foreign != hash) {
        p->foreign = hash;
        p->foreign_us = now_us;
    }
    int64_t pause_us = line_between((now_us - p->foreign_us) / 4, POLL_MIN_US, POLL_MAX_US);
    line_look_not_later(p, now_us + pause_us / 2 + rand_below(&w->lock->rand, pause_us));
}

/* Plans when to ask again, from the state of the line. `rest_ms`: time until the owner's key ends,
 * or until the line is back. */
static void plan_look(struct redlock_wait *w, const struct redis_value *owner, enum line_owner kind,
                      int64_t rest_ms, int64_t rank)
{
    struct place *p = &w->place;
    int64_t now_us = clock_boot_us();
    /* An offer that is still there in a second round may be that of a dead client, and so may be
     * those before us. */
    bool is_old_offer = p->asked != NULL && rest_ms * US_PER_MS <= line_offer_us(w->lock);
    if (rank == 0 && kind == LINE_FOREIGN) {
        plan_poll(w, owner, now_us);
    } else if (rank == 0 && kind == LINE_FREE) {
        line_look_not_later(p, now_us + GAP_LOOK_US);
    }
    if (rest_ms >= 0 && rest_ms < REST_MAX_MS &&
        (rank == 0 || (is_old_offer && rank < LOOK_RANK_MAX))) {
        line_look_not_later(p, now_us + rest_ms * US_PER_MS + (1 + rank) * LOOK_LATE_US);
    }
}

static enum line_owner kind_of(const struct redis_value *owner)
{
    if (owner->len == 0) {
        return LINE_FREE;
    }
    return line_read_score(owner->text, owner->len) >= 0 ? LINE_WAITER : LINE_FOREIGN;
}

static void take_refusal(struct redlock_batch *b, size_t node, const struct redis_value *v)
{
    struct redlock_wait *w = b->entrant;
    const struct redis_value *owner = v->items[2];
    bool is_ranked = v->items[4]->type == REDIS_INTEGER && v->items[4]->integer >= 0;
    votes_refuse(b, 0, node, owner);
    if (w == NULL) { /* too late for this round */
        return;
    }
    struct line_view *view = &w->place.views[node];
    view->owner = kind_of(owner);
    if (view->owner == LINE_WAITER) {
        memcpy(view->value, owner->text, owner->len);
        view->len = (uint8_t)owner->len;
    }
    votes_take_ttl(b, 0, node, v->items[3]);
    plan_look(w, owner, view->owner, v->items[3]->integer,
              is_ranked ? v->items[4]->integer : LOOK_RANK_MAX);
}

bool line_note_refused(struct node_slot *n, const struct redis_value *v)
{
    enum redis_error_class class = redis_error_class(v);
    if (class != REDIS_ERROR_KEY && class != REDIS_ERROR_CONFIG) {
        return false;
    }
    n->line_refused_until_us = clock_boot_us() + LINE_REFUSED_US;
    node_warn(n, v->text);
    return true;
}

bool line_take_answer(struct redlock_batch *b, size_t node, const struct redis_value *v,
                      bool *ret_is_witnessed)
{
    struct node_slot *n = &b->lock->nodes[node];
    *ret_is_witnessed = false;
    if (votes_is_other_type(v)) {
        votes_refuse(b, 0, node, v);
        if (b->entrant != NULL) {
            b->entrant->place.views[node].owner = LINE_FOREIGN;
            plan_poll(b->entrant, v, clock_boot_us());
        }
        return true;
    }
    if (!is_answer(v)) {
        votes_silence(b, node, 0);
        if (line_note_refused(n, v)) {
            return true;
        }
        node_note_error(n, v);
        return false;
    }
    bool is_alive = canary_is_alive(n, v->items[1]);
    if (v->items[0]->integer != 1) {
        take_refusal(b, node, v);
        return true;
    }
    b->keys[0].ok_nodes |= (uint16_t)(1U << node); /* counted together with the canary */
    if (b->entrant != NULL) {
        b->entrant->place.views[node].owner = is_alive ? LINE_MINE : LINE_SILENT;
        b->entrant->place.offered &= ~(1U << node); /* this vote confirms the offer */
    }
    b->is_foreign_near = b->is_foreign_near || v->items[2]->integer != 0;
    if (v->items[2]->integer > 0) {
        b->gap_nodes++;
        b->gap_ms = (int)line_between(v->items[2]->integer, 0, GAP_MAX_MS);
    }
    *ret_is_witnessed = is_alive;
    return true;
}
