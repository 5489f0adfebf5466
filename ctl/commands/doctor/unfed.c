/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/doctor/unfed.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "ctl/core/ctl.h"
#include "sql/queries.h"

#include <stdio.h>

#define LOOK_EVERY_US (250 * US_PER_MS)
#define MARGIN_US (5 * US_PER_S)
#define IDS_BYTES_MAX 4096

static int64_t number(const char *text)
{
    int64_t value = 0;
    enum status st = text == NULL
                         ? STATUS_INVALID
                         : parse_i64(text, strlen(text), INT64_MIN, INT64_MAX, &value, NULL);
    return st == STATUS_OK ? value : 0;
}

static enum status suspects(struct admin *a, const struct checks *checks, struct unfed *ret,
                            struct err *err)
{
    enum { JOB = 2 };
    const struct check *check = checks_find(checks, "unfed");
    if (check == NULL) {
        return err_fail(err, STATUS_INTERNAL, "no check 'unfed'");
    }
    const struct pg_statement statement = {.name = check->name, .sql = check->sql};
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &statement, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (int i = 0; i < admin_row_count(rows) && i < HINT_LOOKUP_MAX; i++) {
        ret->list[ret->count++] = (struct hint_lookup){.id = number(admin_value(rows, i, JOB))};
    }
    return STATUS_OK;
}

/* Keeps only the jobs that still wait to be fed. */
static enum status ask_database(struct admin *a, struct unfed *u, struct err *err)
{
    enum { ID, QUEUE, KIND, PRIORITY };
    autobuf struct buf ids = BUF_INIT(IDS_BYTES_MAX);
    auto_admin_rows struct admin_rows *rows = NULL;
    for (size_t i = 0; i < u->count; i++) {
        enum status st =
            buf_printf(&ids, err, "%s%lld", i == 0 ? "{" : ",", (long long)u->list[i].id);
        if (st != STATUS_OK) {
            return st;
        }
    }
    enum status st = buf_append_text(&ids, "}", err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *const params[] = {buf_at(&ids)};
    st = admin_query(a, &SQL_ADMIN_UNFED, params, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    u->count = 0;
    for (int i = 0; i < admin_row_count(rows) && i < HINT_LOOKUP_MAX; i++) {
        struct hint_lookup *job = &u->list[u->count++];
        *job = (struct hint_lookup){.id = number(admin_value(rows, i, ID)),
                                    .priority = (int)number(admin_value(rows, i, PRIORITY))};
        (void)snprintf(job->queue, sizeof job->queue, "%s", admin_value(rows, i, QUEUE));
        (void)snprintf(job->kind, sizeof job->kind, "%s", admin_value(rows, i, KIND));
    }
    return STATUS_OK;
}

static void drop_hinted(struct unfed *u)
{
    size_t kept = 0;
    for (size_t i = 0; i < u->count; i++) {
        if (!u->list[i].has_hint) {
            u->list[kept++] = u->list[i];
        }
    }
    u->count = kept;
}

/* Keeps only the jobs that still wait to be fed and have no hint. */
static enum status drop_fed(const struct config *config, struct admin *a, struct unfed *u,
                            struct err *err)
{
    enum status st = ask_database(a, u, err);
    if (st != STATUS_OK || u->count == 0) {
        return st;
    }
    st = hint_lookup(config, u->list, u->count, err);
    if (st != STATUS_OK) {
        return st;
    }
    drop_hinted(u);
    return STATUS_OK;
}

enum status unfed_find(const struct config *config, struct admin *a, const struct checks *checks,
                       struct unfed *ret, struct err *err)
{
    int64_t end_us = clock_boot_us() + config->scheduler.full_pass_us +
                     (int64_t)(MARGIN_US * config->time_scale);
    ret->count = 0;
    enum status st = suspects(a, checks, ret, err);
    if (st != STATUS_OK) {
        return st;
    }
    while (ret->count > 0) {
        st = drop_fed(config, a, ret, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (ret->count == 0 || clock_boot_us() >= end_us) {
            break;
        }
        ctl_rest(LOOK_EVERY_US);
    }
    return STATUS_OK;
}

bool unfed_is_starved(const struct config *config, const struct hint_lookup *job)
{
    return 2 * job->others >= config->scheduler.look_ahead;
}
