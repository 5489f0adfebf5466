/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns the votes of N nodes into a verdict, for one key. Pure. */
#ifndef CLAIMD_REDLOCK_RULES_TALLY_H
#define CLAIMD_REDLOCK_RULES_TALLY_H

#include "base/bug.h"
#include "base/err.h"
#include "redlock/redlock.h"

static inline size_t tally_quorum(size_t nodes)
{
    return nodes / 2 + (SEEDED_BUG(9) ? 0 : 1);
}

/* The answers to SET NX so far; nodes beyond ok + refused + error have not answered yet. */
struct tally {
    uint8_t nodes;
    uint8_t ok;
    uint8_t refused;
    uint8_t error; /* error reply, timeout, connection lost, known to be down, may not vote */
};

enum vote { VOTE_OK, VOTE_REFUSED, VOTE_ERROR };
void tally_add(struct tally *t, enum vote vote);
void tally_take_back(struct tally *t); /* an OK has become an error (lock.N2) */

/* Returns true once no further answer can turn the verdict into OK or away from it (lock.A9).
 * `validity_us` is the time left of the lease: a quorum with less than `min_validity_us` came too
 * late (lock.A7). */
bool tally_verdict(const struct tally *t, int64_t validity_us, int64_t min_validity_us,
                   enum redlock_result *ret_verdict);

/* The answers to one extension round. */
struct extend_tally {
    uint8_t nodes;
    uint8_t confirmed;
    uint8_t denied; /* the key is missing, or another owner has it */
    uint8_t error;
};

enum extend_verdict {
    EXTEND_OPEN,   /* wait for more answers */
    EXTEND_DONE,   /* a quorum confirmed in this round (lock.E2) */
    EXTEND_DENIED, /* no quorum can hold it any more (lock.E3) */
    EXTEND_UNSURE  /* all have answered or failed, and neither is certain (lock.E5) */
};

enum extend_verdict extend_tally_verdict(const struct extend_tally *t);

#endif
