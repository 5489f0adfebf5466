/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/rules/line_rules.h"

#include "redlock/rules/tally.h"

#include <string.h>

#define MARK_AT REDLOCK_PREFIX_LEN
#define SCORE_AT (MARK_AT + 1)
#define DIGIT_BITS 6

static const char digits[] = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

void line_write_score(char token[REDLOCK_TOKEN_LEN + 1], int64_t score)
{
    token[MARK_AT] = LINE_MARK;
    for (size_t i = LINE_SCORE_LEN; i > 0; i--) {
        token[SCORE_AT + i - 1] = digits[score & 63];
        score >>= DIGIT_BITS;
    }
}

int64_t line_read_score(const char *value, size_t len)
{
    int64_t score = 0;
    if (!value_has_form(value, len) || value[MARK_AT] != LINE_MARK) {
        return -1;
    }
    for (size_t i = 0; i < LINE_SCORE_LEN; i++) {
        const char *digit = memchr(digits, value[SCORE_AT + i], sizeof digits - 1);
        if (digit == NULL) {
            return -1;
        }
        score = score << DIGIT_BITS | (digit - digits);
    }
    return score <= LINE_SCORE_MAX ? score : -1;
}

static bool is_before(const char *a, const char *b)
{
    int64_t score_a = line_read_score(a, REDLOCK_TOKEN_LEN);
    int64_t score_b = line_read_score(b, REDLOCK_TOKEN_LEN);
    return score_a != score_b ? score_a < score_b : memcmp(a, b, REDLOCK_TOKEN_LEN) < 0;
}

static bool is_same_owner(const struct line_view *a, const struct line_view *b)
{
    return a->owner == b->owner && (a->owner != LINE_WAITER ||
                                    (a->len == b->len && memcmp(a->value, b->value, a->len) == 0));
}

static size_t count_same(const struct line_view *views, size_t nodes, const struct line_view *as)
{
    size_t count = 0;
    for (size_t i = 0; i < nodes; i++) {
        count += is_same_owner(&views[i], as);
    }
    return count;
}

struct line_decision line_decide(const struct line_view *views, size_t nodes,
                                 const char token[REDLOCK_TOKEN_LEN + 1], bool has_kept_long)
{
    size_t quorum = tally_quorum(nodes);
    const struct line_view mine = {.owner = LINE_MINE};
    size_t votes = count_same(views, nodes, &mine);
    bool is_any_foreign = false;
    const struct line_view *first = NULL;
    if (votes == 0 || votes >= quorum) {
        return (struct line_decision){.step = votes == 0 ? LINE_SLEEP : LINE_CONFIRM};
    }
    for (size_t i = 0; i < nodes; i++) {
        const struct line_view *v = &views[i];
        bool has_quorum = count_same(views, nodes, v) >= quorum;
        if (v->owner == LINE_FOREIGN) {
            is_any_foreign = true;
            if (has_quorum) {
                return (struct line_decision){.step = LINE_GIVE_BACK};
            }
        } else if (v->owner == LINE_WAITER) {
            if (has_quorum) {
                return (struct line_decision){.step = LINE_YIELD, .to = v};
            }
            first = is_before(v->value, first != NULL ? first->value : token) ? v : first;
        }
    }
    if (first != NULL) {
        return (struct line_decision){.step = LINE_YIELD, .to = first};
    }
    return (struct line_decision){.step =
                                      is_any_foreign && has_kept_long ? LINE_GIVE_BACK : LINE_LOOK};
}

bool line_is_to_confirm(unsigned offered, unsigned kept, size_t nodes)
{
    return (size_t)__builtin_popcount(offered | kept) >= tally_quorum(nodes);
}
