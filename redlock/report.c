/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a key was not won, in words and votes. */
#include "base/clock.h"
#include "redlock/client.h"

#include <stdarg.h>
#include <stdio.h>

const char *redlock_vote_text(enum redlock_vote vote)
{
    static const char *const texts[] = {[REDLOCK_VOTE_NONE] = "no answer",
                                        [REDLOCK_VOTE_OK] = "ok",
                                        [REDLOCK_VOTE_REFUSED] = "refused",
                                        [REDLOCK_VOTE_ERROR] = "no vote in time",
                                        [REDLOCK_VOTE_DOWN] = "not connected",
                                        [REDLOCK_VOTE_QUARANTINED] = "in quarantine",
                                        [REDLOCK_VOTE_FORBIDDEN] =
                                            "the user may not use this key: see ACL SETUSER"};
    return (size_t)vote < ARRAY_COUNT(texts) ? texts[vote] : "?";
}

static bool is_failure(enum redlock_vote vote)
{
    return vote == REDLOCK_VOTE_ERROR || vote == REDLOCK_VOTE_DOWN ||
           vote == REDLOCK_VOTE_QUARANTINED || vote == REDLOCK_VOTE_FORBIDDEN;
}

/* Of several keys a node's least favourable vote. */
static enum redlock_vote vote_of(const struct redlock_batch *batch, size_t node)
{
    static const uint8_t ranks[] = {
        [REDLOCK_VOTE_OK] = 0,       [REDLOCK_VOTE_NONE] = 1, [REDLOCK_VOTE_REFUSED] = 2,
        [REDLOCK_VOTE_ERROR] = 3,    [REDLOCK_VOTE_DOWN] = 4, [REDLOCK_VOTE_QUARANTINED] = 5,
        [REDLOCK_VOTE_FORBIDDEN] = 6};
    enum redlock_vote worst = REDLOCK_VOTE_OK;
    for (size_t i = 0; i < redlock_batch_count(batch); i++) {
        enum redlock_vote vote = redlock_batch_vote(batch, i, node);
        worst = ranks[vote] > ranks[worst] ? vote : worst;
    }
    return worst;
}

static void append(struct redlock_report *report, const char *format, ...) PRINTF_LIKE(2, 3);

/* What has no room ends with the last whole word and "...". */
static void append(struct redlock_report *report, const char *format, ...)
{
    static const char end[] = " ...";
    size_t len = strlen(report->message);
    size_t room = sizeof report->message - len;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(report->message + len, room, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n >= room) {
        report->message[sizeof report->message - sizeof end] = '\0';
        char *cut = strrchr(report->message, ' ');
        if (cut != NULL) {
            memcpy(cut, end, sizeof end);
        }
    }
}

static void tell_failures(const struct redlock *c, struct redlock_report *report)
{
    const char *between = ": ";
    for (size_t i = 0; i < report->node_count; i++) {
        const struct node_news *news = &c->news[i];
        bool is_told = report->votes[i] != REDLOCK_VOTE_FORBIDDEN && news->is_any &&
                       news->event != REDLOCK_NODE_UP && news->event != REDLOCK_NODE_VOTING &&
                       news->why[0] != '\0';
        if (!is_failure(report->votes[i])) {
            continue;
        }
        if (is_told) { /* begins with the node's name */
            append(report, "%s%s", between, news->why);
        } else {
            append(report, "%s%s: %s", between, c->node_names[i],
                   redlock_vote_text(report->votes[i]));
        }
        between = "; ";
    }
}

void report_fail(const struct redlock *c, struct redlock_report *report, enum redlock_result result,
                 const char *why)
{
    if (report != NULL) {
        *report = (struct redlock_report){
            .result = result, .holder_ttl_ms = -1, .node_count = c->settings.node_count};
        append(report, "%s%s%s", redlock_result_text(result), why[0] != '\0' ? ": " : "", why);
    }
}

void report_fill(const struct redlock *c, struct redlock_report *report, enum redlock_result result,
                 int tries, const struct redlock_batch *batch)
{
    if (report == NULL) {
        return;
    }
    report_fail(c, report, result, "");
    report->tries = tries;
    if (batch == NULL) {
        return;
    }
    size_t ok = 0;
    for (size_t i = 0; i < report->node_count; i++) {
        report->votes[i] = vote_of(batch, i);
        ok += report->votes[i] == REDLOCK_VOTE_OK;
    }
    for (size_t i = 0; i < redlock_batch_count(batch) && result == REDLOCK_HELD_BY_OTHER; i++) {
        int64_t ttl_us = redlock_batch_holder_ttl_us(batch, i);
        int64_t ttl_ms = ttl_us < 0 ? -1 : (ttl_us + US_PER_MS - 1) / US_PER_MS;
        report->holder_ttl_ms = ttl_ms > report->holder_ttl_ms ? ttl_ms : report->holder_ttl_ms;
    }
    append(report, ", %zu of %zu nodes", ok, report->node_count);
    tell_failures(c, report);
}
