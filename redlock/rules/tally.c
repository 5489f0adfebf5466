/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/rules/tally.h"

#include <assert.h>

void tally_add(struct tally *t, enum vote vote)
{
    assert(t->ok + t->refused + t->error < t->nodes);
    switch (vote) {
    case VOTE_OK:
        t->ok++;
        break;
    case VOTE_REFUSED:
        t->refused++;
        break;
    case VOTE_ERROR:
        t->error++;
        break;
    }
}

void tally_take_back(struct tally *t)
{
    assert(t->ok > 0);
    t->ok--;
    t->error++;
}

bool tally_verdict(const struct tally *t, int64_t validity_us, int64_t min_validity_us,
                   enum redlock_result *ret_verdict)
{
    size_t quorum = tally_quorum(t->nodes);
    size_t blocking = t->nodes - quorum + 1; /* this many can prevent a quorum */
    if (t->ok >= quorum) {
        bool is_in_time = validity_us > 0 && validity_us >= min_validity_us;
        *ret_verdict = is_in_time ? REDLOCK_OK : REDLOCK_LOST;
        return true;
    }
    if ((size_t)t->refused + t->error < blocking) {
        return false;
    }
    if (t->refused >= blocking) {
        *ret_verdict = REDLOCK_HELD;
    } else if (t->error >= blocking) {
        *ret_verdict = REDLOCK_NO_QUORUM;
    } else {
        *ret_verdict = REDLOCK_SPLIT;
    }
    return true;
}

enum extend_verdict extend_tally_verdict(const struct extend_tally *t)
{
    size_t quorum = tally_quorum(t->nodes);
    if (t->confirmed >= quorum) {
        return EXTEND_DONE;
    }
    if (t->denied >= t->nodes - quorum + 1) {
        return EXTEND_DENIED;
    }
    return t->confirmed + t->denied + t->error < t->nodes ? EXTEND_OPEN : EXTEND_UNSURE;
}
