/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports: why a key was not won, as text and votes. */
#include "base/clock.h"
#include "redlock/client/client.h"

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

/* Returns a node's least favourable vote on several keys. */
static enum redlock_vote vote_of(const struct redlock_batch *batch, size_t first, size_t count,
                                 size_t node)
{
    static const uint8_t ranks[] = {
        [REDLOCK_VOTE_OK] = 0,       [REDLOCK_VOTE_NONE] = 1, [REDLOCK_VOTE_REFUSED] = 2,
        [REDLOCK_VOTE_ERROR] = 3,    [REDLOCK_VOTE_DOWN] = 4, [REDLOCK_VOTE_QUARANTINED] = 5,
        [REDLOCK_VOTE_FORBIDDEN] = 6};
    enum redlock_vote worst = REDLOCK_VOTE_OK;
    for (size_t i = first; i < first + count; i++) {
        enum redlock_vote vote = redlock_batch_vote(batch, i, node);
        worst = ranks[vote] > ranks[worst] ? vote : worst;
    }
    return worst;
}

static void append(struct redlock_report *report, const char *format, ...) PRINTF_LIKE(2, 3);

/* Appends to the message. If there is no room, it ends with the last whole word and "...". */
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

static void tell_failures(const struct redlock_client *c, struct redlock_report *report)
{
    const char *between = ": ";
    for (size_t i = 0; i < report->node_count; i++) {
        const struct node_news *news = &c->news[i];
        bool is_told = report->votes[i] != REDLOCK_VOTE_FORBIDDEN && news->is_any &&
                       news->kind != REDLOCK_EVENT_UP && news->kind != REDLOCK_EVENT_VOTING &&
                       news->text[0] != '\0';
        if (!is_failure(report->votes[i])) {
            continue;
        }
        if (is_told) { /* begins with the node's name */
            append(report, "%s%s", between, news->text);
        } else {
            append(report, "%s%s: %s", between, c->node_names[i],
                   redlock_vote_text(report->votes[i]));
        }
        between = "; ";
    }
}

struct redlock_report *report_at(struct redlock_report *reports, size_t index)
{
    size_t stride =
        reports != NULL && reports->size > sizeof *reports ? reports->size : sizeof *reports;
    return reports != NULL ? (struct redlock_report *)(void *)((char *)reports + index * stride)
                           : NULL;
}

/* Removes the name of the library, with which errors begin, and which a report need not repeat. */
static const char *without_name(const char *why)
{
    static const char name[] = "redlock: ";
    return strncmp(why, name, sizeof name - 1) == 0 ? why + sizeof name - 1 : why;
}

static void begin(struct redlock_report *report, enum redlock_result result, size_t node_count,
                  const char *why)
{
    *report = (struct redlock_report){
        .size = report->size, .result = result, .holder_ms = -1, .node_count = node_count};
    append(report, "%s%s%s", redlock_text(result), why[0] != '\0' ? ": " : "", without_name(why));
}

void report_fail(const struct redlock_client *c, struct redlock_report *report,
                 enum redlock_result result, const char *why)
{
    if (report != NULL) {
        begin(report, result, c->settings.node_count, why);
    }
}

enum redlock_result report_status(enum status st, const struct err *err,
                                  struct redlock_report *report)
{
    enum redlock_result result = st == STATUS_OK        ? REDLOCK_OK
                                 : st == STATUS_INVALID ? REDLOCK_INVALID
                                                        : REDLOCK_SYSTEM;
    if (report != NULL) {
        begin(report, result, 0, st != STATUS_OK ? err->msg : "");
    }
    return result;
}

void report_add_released(struct redlock_report *report, const struct redlock_released *released)
{
    if (report != NULL) {
        report->deleted += released->deleted;
        report->missing += released->missing;
        report->stolen += released->stolen;
        report->unknown += released->unknown;
    }
}

static int64_t holder_ms(const struct redlock_batch *batch, size_t index)
{
    int64_t us = redlock_batch_holder_ttl_us(batch, index);
    return us < 0 ? -1 : (us + US_PER_MS - 1) / US_PER_MS;
}

void report_fill(const struct redlock_client *c, struct redlock_report *report,
                 enum redlock_result result, int tries, const struct redlock_batch *batch,
                 size_t first, size_t count)
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
        report->votes[i] = vote_of(batch, first, count, i);
        ok += report->votes[i] == REDLOCK_VOTE_OK;
    }
    for (size_t i = first; i < first + count && result == REDLOCK_HELD; i++) {
        int64_t ms = holder_ms(batch, i);
        if (ms >= report->holder_ms || report->holder[0] == '\0') {
            (void)snprintf(report->holder, sizeof report->holder, "%s",
                           redlock_batch_holder(batch, i));
        }
        report->holder_ms = ms > report->holder_ms ? ms : report->holder_ms;
    }
    append(report, "%s%s, %zu of %zu nodes", report->holder[0] != '\0' ? ": " : "", report->holder,
           ok, report->node_count);
    tell_failures(c, report);
}
