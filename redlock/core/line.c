/* SPDX-License-Identifier: Apache-2.0
 *
 * A waiter's place in the lines of the nodes (lock.L1–L9; line_scripts.c keeps the lines
 * themselves). The waiter asks for its key in rounds to all nodes. Between two rounds it sleeps:
 * nodes offer it the key when it is first in line there. Messages carry no authority: only a round
 * with a quorum of votes grants the key. */
#include "base/clock.h"
#include "base/hash.h"
#include "redlock/core/line_scripts.h"
#include "redlock/core/wait.h"

/* ---- places ---- */

static struct redlock_wait **bucket_of(struct waits *waits, const char *token)
{
    return &waits->places[hash_bytes(token, REDLOCK_TOKEN_LEN) % PLACE_BUCKETS];
}

static struct redlock_wait *find(const struct redlock_async *lock, const char *token)
{
    struct redlock_wait *w = lock->waits != NULL ? *bucket_of(lock->waits, token) : NULL;
    while (w != NULL && memcmp(w->place.value, token, REDLOCK_TOKEN_LEN) != 0) {
        w = w->place.next_in_bucket;
    }
    return w;
}

void line_unlink(struct redlock_wait *w)
{
    struct waits *waits = w->lock->waits;
    struct place *p = &w->place;
    *(p->prev != NULL ? &p->prev->place.next : &waits->first_in_line) = p->next;
    *(p->next != NULL ? &p->next->place.prev : &waits->last_in_line) = p->prev;
}

void line_append(struct redlock_wait *w)
{
    struct waits *waits = w->lock->waits;
    struct place *p = &w->place;
    p->next = NULL;
    p->prev = waits->last_in_line;
    *(p->prev != NULL ? &p->prev->place.next : &waits->first_in_line) = w;
    waits->last_in_line = w;
}

static void start_key(struct place *p)
{
    p->asked = NULL;
    p->kept = p->offered = 0;
    p->kept_since_us = p->offered_us = 0;
    p->pause_us = 0;
    p->foreign = 0;
    p->look_us = INT64_MAX;
}

bool line_join(struct redlock_wait *w)
{
    struct place *p = &w->place;
    *p = (struct place){.held = p->held, .views = p->views};
    if (value_draw(w->lock->prefix, w->lock->label, p->value, NULL) != STATUS_OK ||
        !inbox_open(w->lock)) {
        return false;
    }
    line_write_score(p->value, w->score);
    start_key(p);
    struct redlock_wait **bucket = bucket_of(w->lock->waits, p->value);
    p->next_in_bucket = *bucket;
    *bucket = w;
    line_append(w);
    w->lock->waits->in_line++;
    w->is_in_line = true;
    return true;
}

static void forget_asked(struct place *p)
{
    if (p->asked != NULL) {
        batch_unref(TAKE(p->asked));
    }
}

void line_leave(struct redlock_wait *w)
{
    struct place *p = &w->place;
    struct waits *waits = w->lock->waits;
    if (!w->is_in_line) {
        return;
    }
    w->is_in_line = false;
    for (size_t i = 0; i < p->key; i++) {
        redlock_batch_release(p->held[i], 0);
    }
    /* Otherwise the round in flight releases it when it ends. */
    if (!w->is_trying && p->asked != NULL && p->asked->written != 0) {
        release_key_soon(p->asked, 0);
    }
    forget_asked(p);
    struct redlock_wait **link = bucket_of(waits, p->value);
    while (*link != w) {
        link = &(*link)->place.next_in_bucket;
    }
    *link = p->next_in_bucket;
    line_unlink(w);
    if (--waits->in_line == 0) {
        inbox_nobody_waits(w->lock);
    }
}

/* ---- a round ---- */

int line_ask(struct redlock_wait *w, struct redlock_error *ret_error)
{
    struct place *p = &w->place;
    const struct redlock_async_request request = {
        .keys = &w->request.keys[p->key],
        .count = 1,
        .ttl_us = w->request.ttl_us,
        .max_hold_us = w->request.count == 1 ? w->request.max_hold_us : 0,
        .is_not_kept = w->request.count == 1 && w->request.is_not_kept,
        .wants_holder_ttl = w->wants_holder_ttl,
        .done = wait_entered,
        .ctx = w};
    const struct entry entry = {
        .wait = w, .value = p->value, .is_part = w->request.count > 1, .former = p->asked};
    memset(p->views, 0, w->lock->options.node_count * sizeof p->views[0]);
    p->offered = 0;
    p->look_us = INT64_MAX;
    return acquire_enter(w->lock, &request, &entry, ret_error);
}

/* ---- later answers of a node, to yields and refreshes ---- */

void line_told(struct redlock_async *lock, size_t node, const char *token, int64_t ms)
{
    struct redlock_wait *w = find(lock, token);
    if (w == NULL || ms < 0) {
        return;
    }
    struct place *p = &w->place;
    int64_t now_us = clock_boot_us();
    if (ms > 0) {
        int64_t at_us = now_us + ms * US_PER_MS;
        /* remembered because a round in flight may end without a plan of its own */
        line_look_not_later(p, at_us);
        if (!w->is_trying) {
            wait_plan_not_later(w, at_us);
        }
        return;
    }
    if (p->offered == 0) {
        p->offered_us = now_us;
    }
    p->offered |= 1U << node;
    if (w->is_trying) {
        return;
    }
    lock->counters.wakeups += p->offered_us == now_us;
    if (line_is_to_confirm(p->offered, p->kept, lock->options.node_count)) {
        wait_be_due(w);
    } else {
        wait_plan_not_later(w, p->offered_us + line_moment_us(lock));
    }
}

struct yield {
    struct redlock_async *lock;
    size_t node;
    char token[REDLOCK_TOKEN_LEN + 1];
};

/* −1: the key is free there, since the other client does not wait any more. */
static void on_yielded(void *ctx, size_t index, const struct redis_value *v)
{
    const struct yield *y = ctx;
    (void)index;
    if (v->type == REDIS_INTEGER && v->integer == -1) {
        line_told(y->lock, y->node, y->token, line_moment_us(y->lock) / US_PER_MS);
    }
}

static void on_yield_done(void *ctx, enum status st)
{
    struct yield *y = ctx;
    (void)st; /* if it was lost, the next round shows that we still have the vote */
    pool_give(&y->lock->pool, y);
}

static void send_yield(struct redlock_wait *w, size_t node, const struct line_view *to)
{
    struct redlock_async *lock = w->lock;
    const struct redlock_async_key *key = &w->request.keys[w->place.key];
    char score[TTL_TEXT_SIZE];
    char offer[TTL_TEXT_SIZE];
    struct yield *y = pool_take(&lock->pool, sizeof *y);
    if (y == NULL) {
        return;
    }
    *y = (struct yield){.lock = lock, .node = node};
    memcpy(y->token, w->place.value, REDLOCK_TOKEN_LEN);
    core_print_i64(score, w->score);
    line_print_offer(lock, offer);
    const struct redis_arg keys[] = {redis_bytes(key->bytes, key->len)};
    const struct redis_arg args[] = {line_prefix_arg(lock),
                                     redis_bytes(w->place.value, lock->value_len),
                                     redis_word(score),
                                     redis_word(offer),
                                     to != NULL ? redis_bytes(to->value, to->len) : redis_word(""),
                                     redis_word(LINE_SESSION_MS)};
    const struct redis_script_call call = {.script = &script_yield,
                                           .keys = keys,
                                           .key_count = ARRAY_COUNT(keys),
                                           .args = args,
                                           .arg_count = ARRAY_COUNT(args),
                                           .timeout_us = lock->options.node_timeout_us,
                                           .on_reply = on_yielded,
                                           .on_done = on_yield_done,
                                           .ctx = y};
    if (redis_node_call(lock->nodes[node].redis, &call, NULL) != STATUS_OK) {
        pool_give(&lock->pool, y);
    }
}

/* ---- after a round ---- */

static void yield_votes(struct redlock_wait *w, const struct line_view *to)
{
    struct place *p = &w->place;
    for (size_t i = 0; i < w->lock->options.node_count; i++) {
        if (p->views[i].owner == LINE_MINE) {
            send_yield(w, i, to);
        }
    }
}

static unsigned nodes_mine(const struct redlock_wait *w)
{
    unsigned mine = 0;
    for (size_t i = 0; i < w->lock->options.node_count; i++) {
        mine |= (unsigned)(w->place.views[i].owner == LINE_MINE) << i;
    }
    return mine;
}

static void keep_votes(struct redlock_wait *w, int64_t now_us)
{
    struct place *p = &w->place;
    p->kept = nodes_mine(w);
    p->kept_since_us = p->kept_since_us != 0 ? p->kept_since_us : now_us;
    p->pause_us = line_between(2 * p->pause_us, line_moment_us(w->lock), LOOK_MAX_US);
    line_look_not_later(p, now_us + p->pause_us);
}

static void keep_none(struct place *p)
{
    p->kept = 0;
    p->kept_since_us = p->pause_us = 0;
}

static void keep_asked(struct place *p, struct redlock_batch *batch)
{
    batch_ref(batch);
    forget_asked(p);
    p->asked = batch;
}

void line_go_on(struct redlock_wait *w, struct redlock_batch *batch)
{
    struct redlock_async *lock = w->lock;
    struct place *p = &w->place;
    int64_t now_us = clock_boot_us();
    bool has_kept_long = p->kept_since_us != 0 && now_us - p->kept_since_us >= line_offer_us(lock);
    struct line_decision decision =
        line_decide(p->views, lock->options.node_count, p->value, has_kept_long);
    keep_asked(p, batch);
    line_note_contended(lock, batch->keys[0].bytes, batch->keys[0].len, true);
    switch (decision.step) {
    case LINE_YIELD:
    case LINE_GIVE_BACK:
        yield_votes(w, decision.to);
        keep_none(p);
        break;
    case LINE_LOOK:
    case LINE_CONFIRM: /* a quorum that came too late to be relied on (lock.A7) */
        keep_votes(w, now_us);
        break;
    case LINE_SLEEP:
        keep_none(p);
        break;
    }
    /* An offer that arrived during the round may have been sent before it, so two clients that
     * yield to each other in turn could go on forever. Therefore an offer brings the next round at
     * once, but not twice in a row. */
    p->is_hasty = !p->is_hasty && line_is_to_confirm(p->offered, p->kept, lock->options.node_count);
    if (p->is_hasty) {
        wait_be_due(w);
        return;
    }
    if (p->offered != 0) {
        line_look_not_later(p, p->offered_us + line_moment_us(lock));
    }
    wait_plan(w, p->look_us);
}

bool line_granted(struct redlock_wait *w, struct redlock_batch *batch)
{
    struct place *p = &w->place;
    forget_asked(p);
    if (w->request.count == 1) {
        return true;
    }
    p->held[p->key++] = batch;
    start_key(p);
    return p->key == w->request.count;
}

/* ---- several keys ---- */

static bool may_rely_on_all(const struct redlock_wait *w)
{
    int64_t now_us = clock_boot_us();
    for (size_t i = 0; i < w->request.count; i++) {
        const struct redlock_batch *part = w->place.held[i];
        const struct lease *lease = &part->keys[0].lease;
        if (lease->state != REDLOCK_STATE_HELD ||
            lease->deadline_us - now_us < part->min_validity_us) {
            return false;
        }
    }
    return true;
}

/* Moves a part's key and lease into the batch, under the same token. */
static void move_key(struct redlock_batch *b, size_t index, struct redlock_batch *part)
{
    struct key *to = &b->keys[index];
    const struct key *from = &part->keys[0];
    const char *bytes = to->bytes;
    void *user = to->user;
    *to = *from;
    to->bytes = bytes;
    to->user = user;
    to->is_in_round = false;
    if (b->terms.end_us > 0 && to->lease.deadline_us > b->terms.end_us) {
        to->lease.deadline_us = b->terms.end_us; /* lock.E9 */
    }
    b->written |= part->written;
    b->down |= part->down;
    b->quarantined |= part->quarantined;
    b->first_t0_us = part->first_t0_us < b->first_t0_us ? part->first_t0_us : b->first_t0_us;
    int64_t t0_us = from->lease.deadline_us - part->terms.ttl_us + part->terms.drift_us;
    b->t0_us = t0_us < b->t0_us ? t0_us : b->t0_us;
    b->held_count++;
    redlock_batch_drop(part, 0);
}

struct redlock_batch *line_join_leases(struct redlock_wait *w)
{
    struct redlock_batch *b = NULL;
    struct place *p = &w->place;
    if (!may_rely_on_all(w) || batch_new(w->lock, &w->request, &b, NULL) != STATUS_OK) {
        return NULL;
    }
    memcpy(b->value, p->value, sizeof b->value);
    batch_begin(b, clock_boot_us());
    for (size_t i = 0; i < p->key; i++) {
        move_key(b, i, p->held[i]);
    }
    p->key = 0; /* they belong to the batch now */
    keeper_add(b);
    return b;
}
