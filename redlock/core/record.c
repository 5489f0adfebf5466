/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/core/record.h"

#define NS_PER_US INT64_C(1000)
#define VOTES_SIZE (2 * REDLOCK_NODES_MAX + 2)

/* Formats votes as in docs/reliability.md: 1 ours, 0 refused or gone, 2 abstained, failed or not
 * asked. */
static void votes_text(size_t nodes, unsigned yes, unsigned no, char ret_text[VOTES_SIZE])
{
    size_t len = 0;
    for (size_t i = 0; i < nodes; i++) {
        ret_text[len++] = i == 0 ? '[' : ',';
        ret_text[len++] = (yes >> i & 1U) != 0 ? '1' : (no >> i & 1U) != 0 ? '0' : '2';
    }
    ret_text[len++] = ']';
    ret_text[len] = '\0';
}

#define KEY_FIELDS(b, k) \
    RECORD_BYTES("key", (k)->bytes, (k)->len), RECORD_BYTES("val", (b)->value, (b)->lock->value_len)

void record_acquire(const struct redlock_batch *b)
{
    for (size_t i = 0; recorder_is_on() && i < b->count; i++) {
        record("lock", "inv", KEY_FIELDS(b, &b->keys[i]),
               RECORD_I64("ttl", b->terms.ttl_us * NS_PER_US),
               RECORD_I64("drift", b->terms.drift_us * NS_PER_US));
    }
}

void record_acquired(const struct redlock_batch *b, size_t index)
{
    const struct key *k = &b->keys[index];
    char votes[VOTES_SIZE];
    if (!recorder_is_on()) {
        return;
    }
    votes_text(b->lock->options.node_count, k->ok_nodes, k->refused_nodes, votes);
    if (k->result == REDLOCK_OK) {
        record("lock", "ok", KEY_FIELDS(b, k), RECORD_JSON("votes", votes),
               RECORD_I64("until", k->lease.deadline_us * NS_PER_US));
    } else {
        record("lock", "fail", KEY_FIELDS(b, k), RECORD_JSON("votes", votes),
               RECORD_I64("why", k->result));
    }
}

void record_extend(const struct redlock_batch *b, size_t index)
{
    record("extend", "inv", KEY_FIELDS(b, &b->keys[index]),
           RECORD_I64("ttl", b->terms.ttl_us * NS_PER_US),
           RECORD_I64("drift", b->terms.drift_us * NS_PER_US));
}

void record_extended(const struct redlock_batch *b, size_t index, enum extend_verdict verdict,
                     unsigned confirmed, unsigned denied, unsigned failed)
{
    static const char *const phases[] = {[EXTEND_OPEN] = "info",
                                         [EXTEND_DONE] = "ok",
                                         [EXTEND_DENIED] = "fail",
                                         [EXTEND_UNSURE] = "info"};
    const struct key *k = &b->keys[index];
    char votes[VOTES_SIZE];
    if (!recorder_is_on()) {
        return;
    }
    votes_text(b->lock->options.node_count, confirmed, denied & ~failed, votes);
    record("extend", phases[verdict], KEY_FIELDS(b, k), RECORD_JSON("votes", votes),
           RECORD_I64("held", k->stage == KEY_HELD && k->lease.state != REDLOCK_STATE_LOST),
           RECORD_I64("until", k->lease.deadline_us * NS_PER_US));
}

void record_release(const struct redlock_batch *b, size_t index)
{
    record("unlock", "inv", KEY_FIELDS(b, &b->keys[index]));
}

void record_not_found(const struct redlock_batch *b, size_t index, size_t node, bool is_others,
                      bool is_again)
{
    const struct key *k = &b->keys[index];
    if (k->result == REDLOCK_OK && (k->ok_nodes >> node & 1U) != 0) {
        record("unlock", "fail", KEY_FIELDS(b, k), RECORD_I64("node", node),
               RECORD_TEXT("found", is_others ? "others" : "nothing"),
               RECORD_I64("again", is_again));
    }
}
