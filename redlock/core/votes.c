/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes' votes on the keys of one batch. */
#include "base/clock.h"
#include "base/hash.h"
#include "redlock/core/core.h"

#include <assert.h>

static void vote(struct redlock_batch *b, size_t index, size_t node, enum vote vote)
{
    struct key *k = &b->keys[index];
    uint16_t *const nodes[] = {
        [VOTE_OK] = &k->ok_nodes, [VOTE_REFUSED] = &k->refused_nodes, [VOTE_ERROR] = &k->bad_nodes};
    *nodes[vote] |= (uint16_t)(1U << node);
    tally_add(&k->tally, vote);
}

/* A lock of another client that is stored as a hash or the like is in our way all the same. */
bool votes_is_other_type(const struct redis_value *v)
{
    static const char word[] = "WRONGTYPE";
    return v->type == REDIS_ERROR && v->len >= sizeof word - 1 &&
           memcmp(v->text, word, sizeof word - 1) == 0;
}

static void note_owner(struct key *k, const struct redis_value *v)
{
    uint32_t hash = hash_bytes(v->text, v->len);
    k->is_contended = k->is_contended || (k->refused_nodes != 0 && k->owner != hash);
    k->owner = hash;
}

/* Keeps the label of a majority: if most of the refusing nodes name the same label, it is the one
 * that remains. */
static void note_holder(struct redlock_batch *b, size_t index, const struct redis_value *owner)
{
    char label[REDLOCK_LABEL_LEN_MAX + 1];
    if (b->holders == NULL || owner->type != REDIS_STRING || owner->len == 0) {
        return;
    }
    struct holder *h = &b->holders[index];
    value_label(owner->text, owner->len, label);
    if (h->votes == 0) {
        memcpy(h->label, label, sizeof label);
    }
    h->votes += strcmp(h->label, label) == 0 ? 1 : -1;
}

void votes_refuse(struct redlock_batch *b, size_t index, size_t node,
                  const struct redis_value *owner)
{
    note_holder(b, index, owner);
    note_owner(&b->keys[index], owner);
    vote(b, index, node, VOTE_REFUSED);
}

bool votes_take(struct redlock_batch *b, size_t index, size_t node, const struct redis_value *v)
{
    if (v->type == REDIS_NIL || batch_is_own(b, v)) {
        b->keys[index].ok_nodes |= (uint16_t)(1U << node); /* votes_count() counts it (lock.A11) */
    } else if (v->type == REDIS_STRING || votes_is_other_type(v)) {
        votes_refuse(b, index, node, v);
    } else {
        vote(b, index, node, VOTE_ERROR);
        bool is_forbidden = redis_error_class(v) == REDIS_ERROR_KEY;
        b->keys[index].forbidden_nodes |= (uint16_t)((unsigned)is_forbidden << node);
        b->is_forbidden = b->is_forbidden || is_forbidden;
        return is_forbidden; /* a forbidden key says nothing about the node (lock.C8) */
    }
    return true;
}

bool votes_are_forbidden(const struct redlock_batch *b, size_t index)
{
    size_t nodes = b->lock->options.node_count;
    size_t forbidden = (size_t)__builtin_popcount(b->keys[index].forbidden_nodes);
    return forbidden > nodes - b->lock->quorum;
}

void votes_count(struct redlock_batch *b, size_t node, bool is_witnessed)
{
    uint16_t bit = (uint16_t)(1U << node);
    for (size_t i = 0; i < b->count; i++) {
        struct key *k = &b->keys[i];
        if ((k->ok_nodes & bit) == 0) {
            continue;
        }
        if (!is_witnessed) {
            k->ok_nodes &= (uint16_t)~bit;
        }
        vote(b, i, node, is_witnessed ? VOTE_OK : VOTE_ERROR);
    }
}

void votes_silence(struct redlock_batch *b, size_t node, size_t keys_seen)
{
    for (size_t i = keys_seen; i < b->count; i++) {
        vote(b, b->order[i], node, VOTE_ERROR);
    }
}

void votes_take_ttl(struct redlock_batch *b, size_t index, size_t node, const struct redis_value *v)
{
    if (b->free_at_us != NULL && v->type == REDIS_INTEGER && v->integer != -1 &&
        v->integer < INT64_MAX / US_PER_MS / 2) {
        int64_t rest_ms = v->integer > 0 ? v->integer : 0; /* −2: the key is gone by now */
        b->free_at_us[index * b->lock->options.node_count + node] =
            clock_boot_us() + rest_ms * US_PER_MS;
    }
}

const char *redlock_batch_holder(const struct redlock_batch *batch, size_t index)
{
    assert(index < batch->count);
    return batch->holders != NULL ? batch->holders[index].label : "";
}

enum redlock_vote redlock_batch_vote(const struct redlock_batch *batch, size_t index, size_t node)
{
    assert(index < batch->count && node < batch->lock->options.node_count);
    const struct key *k = &batch->keys[index];
    unsigned bit = 1U << node;
    if ((k->ok_nodes & bit) != 0) {
        return (batch->open & bit) == 0 ? REDLOCK_VOTE_OK : REDLOCK_VOTE_NONE;
    }
    if ((k->refused_nodes & bit) != 0) {
        return REDLOCK_VOTE_REFUSED;
    }
    if ((k->forbidden_nodes & bit) != 0) {
        return REDLOCK_VOTE_FORBIDDEN;
    }
    if ((batch->down & bit) != 0) {
        return REDLOCK_VOTE_DOWN;
    }
    if ((batch->quarantined & bit) != 0) {
        return REDLOCK_VOTE_QUARANTINED;
    }
    return (batch->written & k->bad_nodes & bit) != 0 ? REDLOCK_VOTE_ERROR : REDLOCK_VOTE_NONE;
}

/* Returns when this node can give the key to another owner: at once if we have it, since we release
 * it. */
static int64_t node_free_at_us(const struct redlock_batch *b, size_t index, size_t node)
{
    const struct key *k = &b->keys[index];
    if ((k->ok_nodes >> node & 1U) != 0) {
        return 0;
    }
    bool is_refused = (k->refused_nodes >> node & 1U) != 0;
    return is_refused ? b->free_at_us[index * b->lock->options.node_count + node] : INT64_MAX;
}

int64_t redlock_batch_holder_ttl_us(const struct redlock_batch *batch, size_t index)
{
    assert(index < batch->count);
    int64_t sorted_us[REDLOCK_NODES_MAX];
    if (batch->free_at_us == NULL) {
        return -1;
    }
    for (size_t i = 0; i < batch->lock->options.node_count; i++) {
        core_sort_in(sorted_us, i, node_free_at_us(batch, index, i));
    }
    int64_t quorum_at_us = sorted_us[batch->lock->quorum - 1];
    if (quorum_at_us == INT64_MAX) {
        return -1;
    }
    int64_t rest_us = quorum_at_us - clock_boot_us();
    return rest_us > 0 ? rest_us : 0;
}
