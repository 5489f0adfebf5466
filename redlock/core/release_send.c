/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends a release to one node: by the server's own compare-and-delete commands if it has them
 * (lock.C9), otherwise by a script. A client that may wait needs the script that hands over to the
 * first in line. */
#include "base/bug.h"
#include "base/clock.h"
#include "redlock/core/line_scripts.h"
#include "redlock/core/record.h"
#include "redlock/core/release.h"
#include "redlock/core/scripts.h"

#define LEAVE_ARGS 4 /* arguments before the values */

static struct redis_arg key_arg(const struct release_item *item)
{
    const struct key *k = release_key(item);
    return redis_bytes(k->bytes, k->len);
}

/* ---- counting (lock.R6) ---- */

enum found { FOUND_OURS, FOUND_MISSING, FOUND_OTHERS };

static void note(struct release *r, size_t node, struct release_item *item, enum found found)
{
    struct redlock_counters *c = &r->lock->counters;
    struct key *k = release_key(item);
    if (((unsigned)item->counted >> node & 1U) != 0) {
        return; /* counted in an earlier try, whose last replies were lost */
    }
    item->counted |= (uint16_t)(1U << node);
    /* regardless of its present holder */
    bool was_stolen = ((unsigned)k->stolen_nodes >> node & 1U) != 0;
    if (was_stolen && found == FOUND_MISSING) {
        found = FOUND_OTHERS;
    }
    if (found != FOUND_OURS) {
        bool is_again = (r->unanswered >> node & 1U) != 0;
        record_not_found(item->batch, item->index, node, found == FOUND_OTHERS, is_again);
    }
    switch (found) {
    case FOUND_OURS:
        c->release_deleted++;
        k->deleted++;
        break;
    case FOUND_MISSING:
        c->release_missing++;
        k->missing++;
        break;
    case FOUND_OTHERS:
        c->stolen += !was_stolen; /* otherwise a round has counted it */
        k->stolen++;
        break;
    }
}

/* True if another owner holds a key that we relied on, on a node that had given it to us: two
 * owners at once. On a node that had not, it is only a contender's failed attempt. */
static bool would_be_safety_event(const struct release *r, size_t node,
                                  const struct release_item *item)
{
    const struct key *k = release_key(item);
    return k->result == REDLOCK_OK && (k->ok_nodes >> node & 1U) != 0 &&
           k->lease.state != REDLOCK_STATE_LOST && r->sent_us < k->lease.deadline_us;
}

/* ---- by script ---- */

/* Converts a number counted from 1, negative for missing keys, to an index; anything else gives an
 * index that is out of bounds. */
static uint64_t item_at(const struct redis_value *number)
{
    if (number->type != REDIS_INTEGER) {
        return UINT64_MAX;
    }
    return number->integer > 0 ? (uint64_t)number->integer - 1 : ~(uint64_t)number->integer;
}

/* Returns the index where the numbers of keys that were not ours begin. */
static size_t others_at(const struct release_part *part)
{
    return part->hands_over ? 2 : 1;
}

/* Checks the form: how many keys were ours and, of these, how many were handed over; then the
 * others. Together they must be all keys. */
static bool is_answer(const struct release_part *part, const struct redis_value *v)
{
    const struct release *r = part->release;
    size_t at = others_at(part);
    bool is_one = v->type == REDIS_ARRAY && v->len >= at && v->len - at <= r->count &&
                  v->items[0]->type == REDIS_INTEGER && v->items[at - 1]->type == REDIS_INTEGER &&
                  v->items[0]->integer == (int64_t)(r->count - (v->len - at));
    for (size_t i = at; is_one && i < v->len; i++) {
        is_one = item_at(v->items[i]) < r->count;
    }
    return is_one;
}

static void note_handed_over(const struct release *r, const struct redis_value *v)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct key *k = release_key(&r->items[i]);
        bool is_contended = v->items[1]->integer > 0 || r->items[i].batch->is_foreign_near;
        line_note_contended(r->lock, k->bytes, k->len, is_contended);
    }
}

static void on_script_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct release_part *part = ctx;
    struct release *r = part->release;
    (void)index;
    if (!is_answer(part, v)) {
        struct node_slot *n = &r->lock->nodes[part->node];
        part->has_failed = true; /* it will be sent again */
        if (!part->hands_over || !line_note_refused(n, v)) {
            node_note_error(n, v);
        }
        return;
    }
    if (part->hands_over) {
        note_handed_over(r, v);
    }
    for (size_t i = others_at(part); i < v->len; i++) { /* the keys that were not ours */
        struct release_item *item = &r->items[item_at(v->items[i])];
        bool is_others = v->items[i]->integer > 0 && would_be_safety_event(r, part->node, item);
        note(r, part->node, item, is_others ? FOUND_OTHERS : FOUND_MISSING);
    }
    for (size_t i = 0; i < r->count; i++) {
        note(r, part->node, &r->items[i], FOUND_OURS); /* except those that are counted already */
    }
}

static void on_script_done(void *ctx, enum status st)
{
    struct release_part *part = ctx;
    release_part_over(part, st == STATUS_OK && !part->has_failed);
}

/* Returns the length of the gap if a quorum of nodes said that the line has had its turns. */
static int gap_ms(const struct release *r)
{
    const struct redlock_batch *b = r->items[0].batch;
    return r->count == 1 && b->gap_nodes >= (int)r->lock->quorum ? b->gap_ms : 0;
}

static bool send_script(struct release *r, size_t node)
{
    struct redlock_async *lock = r->lock;
    struct redis_arg keys[REDLOCK_KEYS_MAX + 1];
    struct redis_arg args[REDLOCK_KEYS_MAX + LEAVE_ARGS];
    char offer[TTL_TEXT_SIZE];
    char gap[TTL_TEXT_SIZE];
    bool hands_over = line_is_usable_on(&lock->nodes[node]);
    size_t key_count = r->count;
    size_t arg_count = 0;
    r->parts[node].hands_over = hands_over;
    if (hands_over) {
        line_print_offer(lock, offer);
        core_print_i64(gap, gap_ms(r));
        args[arg_count++] = line_prefix_arg(lock);
        args[arg_count++] = redis_word(offer);
        args[arg_count++] = redis_word(gap);
        args[arg_count++] = redis_word(node == r->teller ? "1" : "0");
        keys[key_count++] = redis_bytes(lock->any_key, lock->prefix_len + ANY_WORD_LEN);
    }
    size_t value_count = 1; /* one value if it is the same for all */
    for (size_t i = 0; i < r->count; i++) {
        const struct redlock_batch *b = r->items[i].batch;
        keys[i] = key_arg(&r->items[i]);
        args[arg_count + i] = batch_value(b);
        value_count = b == r->items[0].batch ? value_count : r->count;
    }
    const struct redis_script_call call = {.script = hands_over ? &script_leave : &script_release,
                                           .keys = keys,
                                           .key_count = key_count,
                                           .args = args,
                                           .arg_count = arg_count + value_count,
                                           .timeout_us = lock->options.node_timeout_us,
                                           .on_reply = on_script_reply,
                                           .on_done = on_script_done,
                                           .ctx = &r->parts[node]};
    return redis_node_call(lock->nodes[node].redis, &call, NULL) == STATUS_OK;
}

/* ---- by the server's native commands ---- */

static bool send_wire(struct release_part *part, size_t reply_count, int64_t timeout_us,
                      redis_reply_cb *on_reply, redis_done_cb *on_done)
{
    struct redlock_async *lock = part->release->lock;
    const struct redis_request request = {.bytes = buf_at(&lock->wire),
                                          .len = lock->wire.len,
                                          .reply_count = reply_count,
                                          .timeout_us = timeout_us,
                                          .on_reply = on_reply,
                                          .on_done = on_done,
                                          .ctx = part};
    return redis_node_send(lock->nodes[part->node].redis, &request, NULL) == STATUS_OK;
}

static void on_owner(void *ctx, size_t index, const struct redis_value *v)
{
    struct release_part *part = ctx;
    struct release *r = part->release;
    (void)index;
    while (((unsigned)r->items[part->asked_at].unclear >> part->node & 1U) == 0) {
        part->asked_at++;
    }
    struct release_item *item = &r->items[part->asked_at++];
    note(r, part->node, item, v->type == REDIS_STRING ? FOUND_OTHERS : FOUND_MISSING);
}

static void on_owners_done(void *ctx, enum status st)
{
    struct release_part *part = ctx;
    struct release *r = part->release;
    (void)st;
    for (size_t i = 0; i < r->count; i++) {
        /* except those that are counted already */
        note(r, part->node, &r->items[i], FOUND_MISSING);
    }
    release_part_over(part, true);
}

/* Asks for the owners of keys on which we relied and that were no longer ours. This extra round
 * trip is hardly ever needed. */
static bool ask_owners(struct release_part *part)
{
    struct release *r = part->release;
    struct redlock_async *lock = r->lock;
    struct redis_arg get[] = {redis_word("GET"), {0}};
    size_t asked = 0;
    buf_reset(&lock->wire);
    for (size_t i = 0; i < r->count; i++) {
        if (((unsigned)r->items[i].unclear >> part->node & 1U) != 0) {
            get[1] = key_arg(&r->items[i]);
            if (redis_command(&lock->wire, get, ARRAY_COUNT(get), NULL) != STATUS_OK) {
                return false;
            }
            asked++;
        }
    }
    int64_t rest_us = r->sent_us + lock->options.node_timeout_us - clock_boot_us();
    return asked > 0 && send_wire(part, asked, rest_us > US_PER_MS ? rest_us : US_PER_MS, on_owner,
                                  on_owners_done);
}

static void on_native_reply(void *ctx, size_t index, const struct redis_value *v)
{
    struct release_part *part = ctx;
    struct release *r = part->release;
    struct release_item *item = &r->items[index];
    if (v->type == REDIS_INTEGER && v->integer == 1) {
        note(r, part->node, item, FOUND_OURS);
    } else if (v->type == REDIS_INTEGER || votes_is_other_type(v)) {
        if (would_be_safety_event(r, part->node, item)) {
            item->unclear |= (uint16_t)(1U << part->node & ~(unsigned)item->counted);
        } else {
            note(r, part->node, item, FOUND_MISSING);
        }
    } else {
        part->has_failed = true;
        node_note_error(&r->lock->nodes[part->node], v);
    }
}

static void on_native_done(void *ctx, enum status st)
{
    struct release_part *part = ctx;
    if (st != STATUS_OK || part->has_failed) {
        release_part_over(part, false);
    } else if (!ask_owners(part)) {
        on_owners_done(part, STATUS_OK);
    }
}

static bool send_native(struct release *r, size_t node, bool has_delifeq)
{
    struct redlock_async *lock = r->lock;
    struct redis_arg words[4];
    size_t count = 0;
    words[count++] = SEEDED_BUG(4) ? redis_word("DEL")
                     : has_delifeq ? redis_word("DELIFEQ")
                                   : redis_word("DELEX");
    size_t key_at = count++;
    if (!has_delifeq) {
        words[count++] = redis_word("IFEQ");
    }
    size_t value_at = count++;
    buf_reset(&lock->wire);
    for (size_t i = 0; i < r->count; i++) {
        words[key_at] = key_arg(&r->items[i]);
        words[value_at] = batch_value(r->items[i].batch);
        if (redis_command(&lock->wire, words, SEEDED_BUG(4) ? 2 : count, NULL) != STATUS_OK) {
            return false;
        }
    }
    return send_wire(&r->parts[node], r->count, lock->options.node_timeout_us, on_native_reply,
                     on_native_done);
}

bool release_send(struct release *r, size_t node)
{
    const struct redis_server_info *info = redis_node_info(r->lock->nodes[node].redis);
    r->parts[node] = (struct release_part){.release = r, .node = node};
    if (SEEDED_BUG(4)) {
        return send_native(r, node, true);
    }
    if ((info->has_delifeq || info->has_delex) && !line_is_usable_on(&r->lock->nodes[node])) {
        return send_native(r, node, info->has_delifeq);
    }
    return send_script(r, node);
}
