/* SPDX-License-Identifier: Apache-2.0
 *
 * The decisions of one that waits in line (lock.L1–L9). Pure: the caller says what the nodes told.
 *
 * Who waits has a score, the time at which it began to wait, and its tokens carry that score. So
 * all clients can order all owners and waiters, whatever the nodes' lines look like: the lower
 * score comes first, and of equal ones the token that is less. */
#ifndef CLAIMD_REDLOCK_RULES_LINE_RULES_H
#define CLAIMD_REDLOCK_RULES_LINE_RULES_H

#include "redlock/rules/token.h"

/* A token with a score is as long as any other: the client's prefix, a mark that base64url does not
 * have, the score in characters that sort as their digits do, and random characters. */
#define LINE_MARK '~'
#define LINE_SCORE_LEN 9
#define LINE_SCORE_MAX ((INT64_C(1) << 53) - 1) /* what a sorted set of Redis keeps exactly */

/* Overwrites what a drawn token has at these places. */
void line_write_score(char token[REDLOCK_TOKEN_LEN + 1], int64_t score);
/* Of a value. −1: its token has no score, so it is a foreign client's. */
int64_t line_read_score(const char *value, size_t len);

/* Who has the key on a node, as that node said in the round that is decided about. */
enum line_owner {
    LINE_SILENT, /* no answer, or one that doesn't count */
    LINE_FREE,   /* nobody, and we did not get it: the line stays away for a moment */
    LINE_MINE,
    LINE_WAITER, /* one of those with a score; it may hold the lock already */
    LINE_FOREIGN /* a client that knows no line */
};
struct line_view {
    enum line_owner owner;
    uint8_t len; /* of the value of LINE_WAITER */
    char value[VALUE_SIZE];
};

enum line_step {
    LINE_SLEEP,     /* no vote: an offer will come */
    LINE_LOOK,      /* keep the votes, and ask again in a moment */
    LINE_YIELD,     /* give the votes to `to` */
    LINE_GIVE_BACK, /* give them to nobody: a foreign client has the key, or may get it */
    LINE_CONFIRM    /* a quorum */
};
struct line_decision {
    enum line_step step;
    const struct line_view *to; /* one of `views`; of LINE_YIELD only */
};

/* What to do after a round that got answers from `nodes` nodes. Votes go to the one that has a
 * quorum, else to the first in the order above: a total order, so two never yield to each other,
 * and the first one never yields but to a quorum. A foreign owner is outside of that order:
 * `has_kept_long` says that votes have been kept against one for as long as an offer lasts. */
struct line_decision line_decide(const struct line_view *views, size_t nodes,
                                 const char token[REDLOCK_TOKEN_LEN + 1], bool has_kept_long);

/* Asked while waiting: `offered` has a bit for each node that has offered the key since the last
 * round, `kept` for each whose vote was kept. */
bool line_is_to_confirm(unsigned offered, unsigned kept, size_t nodes);

#endif
