/* SPDX-License-Identifier: Apache-2.0
 *
 * The decisions of a client that waits in line (lock.L1–L9). Pure: the caller passes what the nodes
 * answered.
 *
 * A waiter has a score, the time when it began to wait, and its tokens carry that score. So all
 * clients can order all owners and waiters in the same way, whatever the nodes' lines look like:
 * the lower score comes first, and among equal ones the lower token. */
#ifndef CLAIMD_REDLOCK_RULES_LINE_RULES_H
#define CLAIMD_REDLOCK_RULES_LINE_RULES_H

#include "redlock/rules/token.h"

/* A token with a score is as long as any other: the client's prefix, a mark that does not occur in
 * base64url, the score in characters that sort like its digits, and random characters. */
#define LINE_MARK '~'
#define LINE_SCORE_LEN 9
/* the largest range that a sorted set of Redis stores exactly */
#define LINE_SCORE_MAX ((INT64_C(1) << 53) - 1)

/* Writes the mark and the score into a drawn token, in place of its characters there. */
void line_write_score(char token[REDLOCK_TOKEN_LEN + 1], int64_t score);
/* Returns the score of a value; −1: its token has none, so it is a foreign client's. */
int64_t line_read_score(const char *value, size_t len);

/* Who has the key on a node, according to the node's answer in the round being decided. */
enum line_owner {
    LINE_SILENT, /* no answer, or one that doesn't count */
    LINE_FREE,   /* nobody, and we did not get it: the line is suspended for a moment */
    LINE_MINE,
    LINE_WAITER, /* one of those with a score; it may hold the lock already */
    LINE_FOREIGN /* a client that does not use the line */
};
struct line_view {
    enum line_owner owner;
    uint8_t len; /* of `value`, for LINE_WAITER */
    char value[VALUE_SIZE];
};

enum line_step {
    LINE_SLEEP,     /* no vote: wait for an offer */
    LINE_LOOK,      /* keep the votes, and ask again in a moment */
    LINE_YIELD,     /* give the votes to `to` */
    LINE_GIVE_BACK, /* release the votes: a foreign client has the key, or may get it */
    LINE_CONFIRM    /* a quorum */
};
struct line_decision {
    enum line_step step;
    const struct line_view *to; /* one of `views`; only for LINE_YIELD */
};

/* Decides what to do after a round with answers from `nodes` nodes. Votes go to the waiter that has
 * a quorum, otherwise to the first in the order above. This order is total, so two waiters never
 * yield to each other, and the first one yields only to a quorum. A foreign owner is outside of the
 * order: `has_kept_long` says that votes have been kept against one for as long as an offer
 * lasts. */
struct line_decision line_decide(const struct line_view *views, size_t nodes,
                                 const char token[REDLOCK_TOKEN_LEN + 1], bool has_kept_long);

/* Decides while waiting whether to ask now: `offered` has a bit for each node that has offered the
 * key since the last round, `kept` for each node whose vote was kept. */
bool line_is_to_confirm(unsigned offered, unsigned kept, size_t nodes);

#endif
