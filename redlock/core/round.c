/* SPDX-License-Identifier: Apache-2.0
 *
 * One extension round: ≤ 128 keys of any batches, one script per node, all nodes at once (lock.W3).
 * Each reply updates the keys' votes; a round that has its quorum also restores the key on nodes
 * that have lost it (lock.E6). */
#include "base/bug.h"
#include "base/clock.h"
#include "redlock/core/core.h"
#include "redlock/core/record.h"
#include "redlock/core/scripts.h"

struct member {
    struct redlock_batch *batch;
    uint16_t index;
    uint16_t confirmed; /* bits per node */
    uint16_t denied;    /* the key is missing, or another owner has it */
    uint16_t failed;
    uint16_t missing; /* nodes on which the key is missing, to be healed */
    bool is_settled;
    bool is_confirmed; /* by a quorum, in this round */
};

struct round_part { /* the context of one node's request */
    struct round *round;
    size_t node;
    bool is_witnessed; /* the canary was still there (lock.N9) */
};

struct round {
    struct round *prev; /* list of all rounds in flight */
    struct round *next;
    struct redlock_async *lock;
    struct extend_call *call; /* the call that asked for it; NULL = the keeper */
    int64_t t0_us;
    size_t outstanding;
    size_t count;
    uint16_t missing; /* nodes on which some member is missing */
    struct round_part parts[REDLOCK_NODES_MAX];
    struct member members[EXTEND_KEYS_MAX];
};

static uint16_t bit(size_t node)
{
    return (uint16_t)(1U << node);
}

static uint8_t bits(uint16_t mask)
{
    return (uint8_t)__builtin_popcount(mask);
}

struct round *round_new(struct redlock_async *lock, int64_t t0_us, struct extend_call *call)
{
    struct round *round = pool_take(&lock->pool, sizeof *round);
    if (round == NULL) {
        return NULL;
    }
    round->lock = lock;
    round->t0_us = t0_us;
    round->call = call;
    round->next = lock->rounds;
    if (round->next != NULL) {
        round->next->prev = round;
    }
    lock->rounds = round;
    return round;
}

static void round_free(struct round *round)
{
    if (round->prev != NULL) {
        round->prev->next = round->next;
    } else {
        round->lock->rounds = round->next;
    }
    if (round->next != NULL) {
        round->next->prev = round->prev;
    }
    pool_give(&round->lock->pool, round);
}

bool round_add(struct round *round, struct redlock_batch *b, size_t index)
{
    batch_ref(b);
    round->members[round->count++] = (struct member){.batch = b, .index = (uint16_t)index};
    return round->count == EXTEND_KEYS_MAX;
}

/* ---- healing (lock.E6) ---- */

struct healed {
    struct redlock_batch *batch;
    size_t index;
};

struct heal { /* the context of one request with SETs to one node */
    struct redlock_async *lock;
    size_t node;
    size_t count;
    struct healed keys[];
};

static void on_heal_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct heal *heal = ctx;
    (void)index;
    /* the copy counts from the next round on */
    heal->lock->counters.healed += v->type == REDIS_STATUS;
    node_note_error(&heal->lock->nodes[heal->node], v);
}

static void on_heal_done(void *ctx, enum status st)
{
    struct heal *heal = ctx;
    (void)st; /* the next round shows the result */
    for (size_t i = 0; i < heal->count; i++) {
        batch_unref(heal->keys[i].batch);
    }
    free(heal);
}

/* W6: nothing is written for a key that is being released. */
static bool is_healable(const struct member *m, size_t node)
{
    const struct key *k = &m->batch->keys[m->index];
    return m->is_confirmed && (m->missing & bit(node)) != 0 && k->stage == KEY_HELD &&
           k->lease.state != REDLOCK_STATE_LOST;
}

static enum status put_set(struct buf *wire, struct redlock_batch *b, const struct key *k)
{
    batch_set_ttl(b, clock_boot_us());
    const struct redis_arg words[] = {redis_word("SET"), redis_bytes(k->bytes, k->len),
                                      batch_value(b),    redis_word("NX"),
                                      redis_word("PX"),  redis_word(b->ttl_ms)};
    return redis_command(wire, words, ARRAY_COUNT(words), NULL);
}

static void heal_send(struct heal *heal)
{
    struct redlock_async *lock = heal->lock;
    const struct redis_request request = {.bytes = buf_at(&lock->wire),
                                          .len = lock->wire.len,
                                          .reply_count = heal->count,
                                          .timeout_us = lock->options.node_timeout_us,
                                          .on_reply = on_heal_reply,
                                          .on_done = on_heal_done,
                                          .ctx = heal};
    if (heal->count == 0 ||
        redis_node_send(lock->nodes[heal->node].redis, &request, NULL) != STATUS_OK) {
        free(heal); /* the node has no copy until the next round */
        return;
    }
    for (size_t i = 0; i < heal->count; i++) {
        batch_ref(heal->keys[i].batch);
        heal->keys[i].batch->written |= 1U << heal->node; /* a release must reach this node, too */
    }
}

static size_t count_healable(const struct round *round, size_t node)
{
    size_t count = 0;
    for (size_t i = 0; i < round->count; i++) {
        count += is_healable(&round->members[i], node);
    }
    return count;
}

static void heal_node(struct round *round, size_t node)
{
    struct redlock_async *lock = round->lock;
    size_t count = count_healable(round, node);
    struct heal *heal = count == 0 ? NULL : calloc(1, sizeof *heal + count * sizeof heal->keys[0]);
    if (heal == NULL) {
        return;
    }
    *heal = (struct heal){.lock = lock, .node = node};
    buf_reset(&lock->wire);
    for (size_t i = 0; i < round->count; i++) {
        struct member *m = &round->members[i];
        size_t before = lock->wire.len;
        if (!is_healable(m, node)) {
            continue;
        }
        if (put_set(&lock->wire, m->batch, &m->batch->keys[m->index]) != STATUS_OK) {
            lock->wire.len = before;
            break;
        }
        m->missing &= (uint16_t)~bit(node);
        heal->keys[heal->count++] = (struct healed){.batch = m->batch, .index = m->index};
    }
    heal_send(heal);
}

static void heal_nodes(struct round *round)
{
    const struct core_hooks *hooks = &round->lock->hooks;
    if (round->missing != 0 && hooks->before_renewal != NULL) {
        hooks->before_renewal(hooks->ctx);
    }
    for (size_t i = 0; i < round->lock->options.node_count; i++) {
        if ((round->missing & bit(i)) != 0) {
            heal_node(round, i);
        }
    }
}

/* ---- votes and verdicts ---- */

/* Notes a theft: a node that had given us the key has another owner, although our lease has not
 * ended (lock.R6). */
static void note_theft(struct member *m, size_t node)
{
    struct key *k = &m->batch->keys[m->index];
    if (k->stage == KEY_HELD && (k->ok_nodes & bit(node)) != 0 &&
        k->lease.state != REDLOCK_STATE_LOST && clock_boot_us() < k->lease.deadline_us) {
        k->stolen_nodes |= bit(node);
        m->batch->lock->counters.stolen++;
    }
}

static void member_vote(struct member *m, size_t node, bool is_ours, bool is_missing)
{
    struct key *k = &m->batch->keys[m->index];
    if (is_ours) {
        m->confirmed |= bit(node);
        k->ok_nodes |= bit(node);
    } else {
        if (!is_missing) {
            note_theft(m, node);
        }
        m->denied |= bit(node);
        k->ok_nodes &= (uint16_t)~bit(node);
        m->missing |= is_missing ? bit(node) : 0;
    }
}

static struct extend_tally tally_of(const struct member *m)
{
    return (struct extend_tally){.nodes = (uint8_t)m->batch->lock->options.node_count,
                                 .confirmed = bits(m->confirmed),
                                 .denied = bits(m->denied),
                                 .error = bits(m->failed)};
}

static void settle_decided(struct round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        struct member *m = &round->members[i];
        const struct extend_tally tally = tally_of(m);
        enum extend_verdict verdict = m->is_settled ? EXTEND_OPEN : extend_tally_verdict(&tally);
        if (verdict == EXTEND_OPEN) {
            continue;
        }
        m->is_settled = true;
        m->is_confirmed = verdict == EXTEND_DONE;
        keeper_settle(m->batch, m->index, &tally, round->t0_us, TAKE(round->call));
        record_extended(m->batch, m->index, verdict, m->confirmed, m->denied, m->failed);
    }
}

static void on_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct round_part *part = ctx;
    struct round *round = part->round;
    (void)index;
    struct node_slot *n = &round->lock->nodes[part->node];
    if (v->type != REDIS_ARRAY || v->len != round->count + 1) {
        node_note_error(n, v);
        return; /* any error: this node's part has failed, the keeper goes on (lock.W5) */
    }
    if (!canary_is_alive(n, v->items[round->count])) {
        return;
    }
    for (size_t i = 0; i < round->count; i++) {
        const struct redis_value *item = v->items[i];
        bool is_ours = item->type == REDIS_INTEGER && item->integer == 1;
        bool is_missing = item->type == REDIS_INTEGER && item->integer == -1;
        member_vote(&round->members[i], part->node, is_ours, is_missing);
        round->missing |= is_missing ? bit(part->node) : 0;
    }
}

/* SET … IFEQ … GET replies with the former value, so one command distinguishes ours, another's and
 * missing. */
static void on_native_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct round_part *part = ctx;
    struct round *round = part->round;
    if (index == 0) { /* the canary; no other command of ours runs between it and the keys */
        part->is_witnessed = canary_take(&round->lock->nodes[part->node], v);
        return;
    }
    struct member *m = &round->members[index - 1];
    bool is_missing = v->type == REDIS_NIL;
    if (!part->is_witnessed) {
        return;
    }
    if (SEEDED_BUG(10)) {
        member_vote(m, part->node, v->type == REDIS_STATUS, false);
        return;
    }
    if (!is_missing && v->type != REDIS_STRING && !votes_is_other_type(v)) {
        node_note_error(&round->lock->nodes[part->node], v);
        return;
    }
    member_vote(m, part->node, batch_is_own(m->batch, v), is_missing);
    round->missing |= is_missing ? bit(part->node) : 0;
}

/* Counts a failure for all members on which the node gave no answer. */
static void count_failure(struct round *round, size_t node)
{
    for (size_t i = 0; i < round->count; i++) {
        struct member *m = &round->members[i];
        m->failed |= (uint16_t)(bit(node) & ~(m->confirmed | m->denied));
    }
}

static void round_over(struct round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        batch_unref(round->members[i].batch);
    }
    round_free(round);
}

static void on_done(void *ctx, enum status st)
{
    struct round_part *part = ctx;
    struct round *round = part->round;
    (void)st;
    count_failure(round, part->node);
    settle_decided(round);
    heal_nodes(round);
    if (--round->outstanding == 0) {
        round_over(round);
    }
}

/* Turns the node's confirmations into failures: the server may have forgotten them since
 * (lock.N2). */
void rounds_drop_votes(struct redlock_async *lock, size_t node)
{
    for (struct round *round = lock->rounds; round != NULL; round = round->next) {
        for (size_t i = 0; i < round->count; i++) {
            struct member *m = &round->members[i];
            if (!m->is_settled && (m->confirmed & bit(node)) != 0) {
                m->confirmed &= (uint16_t)~bit(node);
                m->failed |= bit(node);
            }
        }
    }
}

/* ---- sending ---- */

static bool send_script(struct round *round, size_t node, const struct redis_script_call *base)
{
    struct redis_script_call call = *base;
    call.ctx = &round->parts[node];
    return redis_node_call(round->lock->nodes[node].redis, &call, NULL) == STATUS_OK;
}

/* E1, C9: for a server with native compare-and-set. */
static bool send_native(struct round *round, size_t node, const struct redis_script_call *base)
{
    struct redlock_async *lock = round->lock;
    buf_reset(&lock->wire);
    if (canary_put(lock, NULL) != STATUS_OK) {
        return false;
    }
    for (size_t i = 0; i < round->count; i++) {
        const struct redis_arg value = base->args[2 * i];
        const struct redis_arg ttl_ms = base->args[2 * i + 1];
        const struct redis_arg words[] = {redis_word("SET"),
                                          base->keys[i],
                                          value,
                                          redis_word("PX"),
                                          ttl_ms,
                                          redis_word("IFEQ"),
                                          value,
                                          redis_word("GET")};
        size_t count = SEEDED_BUG(10) ? 5 : ARRAY_COUNT(words);
        if (redis_command(&lock->wire, words, count, NULL) != STATUS_OK) {
            return false;
        }
    }
    const struct redis_request request = {.bytes = buf_at(&lock->wire),
                                          .len = lock->wire.len,
                                          .reply_count = round->count + 1,
                                          .timeout_us = base->timeout_us,
                                          .on_reply = on_native_reply,
                                          .on_done = base->on_done,
                                          .ctx = &round->parts[node]};
    return redis_node_send(lock->nodes[node].redis, &request, NULL) == STATUS_OK;
}

static void send_to(struct round *round, size_t node, const struct redis_script_call *call)
{
    struct redis_node *redis = round->lock->nodes[node].redis;
    bool is_native = redis_node_info(redis)->has_set_ifeq || SEEDED_BUG(10);
    round->parts[node] = (struct round_part){.round = round, .node = node};
    if (is_native ? send_native(round, node, call) : send_script(round, node, call)) {
        round->outstanding++;
    } else {
        count_failure(round, node);
    }
}

/* Sends the round to all nodes, even those in quarantine: a key of ours that such a node still
 * holds is a valid vote. */
void round_send(struct round *round)
{
    struct redlock_async *lock = round->lock;
    clocks_ask(lock, round->t0_us);
    struct redis_arg keys[EXTEND_KEYS_MAX + 1];
    struct redis_arg args[2 * EXTEND_KEYS_MAX];
    for (size_t i = 0; i < round->count; i++) {
        const struct member *m = &round->members[i];
        const struct key *k = &m->batch->keys[m->index];
        record_extend(m->batch, m->index);
        batch_set_ttl(m->batch, round->t0_us);
        keys[i] = (struct redis_arg){.bytes = k->bytes, .len = k->len};
        args[2 * i] = batch_value(m->batch);
        args[2 * i + 1] =
            (struct redis_arg){.bytes = m->batch->ttl_ms, .len = strlen(m->batch->ttl_ms)};
    }
    keys[round->count] = canary_arg(lock);
    const struct redis_script_call call = {.script = &script_extend,
                                           .keys = keys,
                                           .key_count = round->count + 1,
                                           .args = args,
                                           .arg_count = 2 * round->count,
                                           .timeout_us = lock->options.node_timeout_us,
                                           .on_reply = on_reply,
                                           .on_done = on_done};
    for (size_t i = 0; i < lock->options.node_count; i++) {
        send_to(round, i, &call);
    }
    if (round->outstanding == 0) { /* every node is down */
        core_soon(lock);
    }
}

void rounds_settle(struct redlock_async *lock)
{
    struct round *round = lock->rounds;
    while (round != NULL) {
        if (round->outstanding > 0) {
            round = round->next;
            continue;
        }
        settle_decided(round);
        round_over(round);
        round = lock->rounds; /* the callbacks may have begun other rounds */
    }
}
