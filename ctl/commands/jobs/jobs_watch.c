/* SPDX-License-Identifier: Apache-2.0
 *
 * `claimctl jobs watch`: polls jobs that have not ended, and prints each change. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "ctl/commands/jobs/jobs.h"
#include "ctl/commands/jobs/jobs_walk.h"
#include "ctl/core/table_text.h"
#include "ctl/options/id_list.h"
#include "sql/queries.h"

#include <jansson.h>

#define FOLLOWED_MAX 1000
#define SEARCH_US (10 * US_PER_S) /* for matching jobs */
#define EVERY_STANDARD_US (500 * US_PER_MS)
#define LIST_BYTES_MAX ((size_t)64 << 10)
#define STATE_MAX 16

struct followed {
    int64_t id;
    char state[STATE_MAX]; /* "" = not read yet */
    int64_t attempt;
    bool has_ended;
};

struct watch {
    const struct ctl *ctl;
    struct admin *admin;
    struct followed jobs[FOLLOWED_MAX];
    size_t count;
    size_t open; /* jobs that have not ended */
    size_t discarded;
    bool is_first; /* first round: a job without a row never existed */
};

enum { ID, KIND, STATE, ATTEMPT, HOST, ERROR, AT };

/* ---- choosing ---- */

static enum status add_job(struct watch *w, const char *text, struct err *err)
{
    int64_t id = 0;
    enum status st = parse_i64(text, strlen(text), 1, INT64_MAX, &id, err);
    for (size_t i = 0; st == STATUS_OK && i < w->count; i++) {
        if (w->jobs[i].id == id) {
            return STATUS_OK; /* named twice */
        }
    }
    if (st != STATUS_OK) {
        return st;
    }
    w->jobs[w->count++] = (struct followed){.id = id};
    w->open++;
    return STATUS_OK;
}

/* Finds matching jobs, as walks do; only open ones, unless states are given. */
static enum status find(struct walk *walk, const struct ctl_args *args, struct err *err)
{
    int64_t now_us = 0;
    enum status st = walk_columns(walk, "id", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_now(walk->admin, &now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = filter_read(&walk->filter, args, now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    walk->filter.is_finished = walk->filter.is_finished && ctl_value(args, "state") != NULL;
    st = walk_start(walk, INT64_MAX, err);
    if (st != STATUS_OK) {
        return st;
    }
    return walk_on(walk, SEARCH_US, err);
}

static enum status choose(struct watch *w, const struct ctl_args *args, struct err *err)
{
    struct walk walk = WALK(w->admin, FOLLOWED_MAX);
    enum status st = STATUS_OK;
    for (size_t i = 0; st == STATUS_OK && i < args->word_count; i++) {
        st = add_job(w, args->words[i], err);
    }
    if (st != STATUS_OK || args->word_count > 0) {
        return st;
    }
    st = find(&walk, args, err);
    size_t count = walk.table.row_count;
    for (size_t i = 0; st == STATUS_OK && i < count; i++) { /* the oldest first */
        st = add_job(w, table_cell(&walk.table, walk.is_rising ? i : count - 1 - i, 0), err);
    }
    walk_release(&walk);
    return st;
}

/* ---- one change ---- */

static bool is_final(const char *state)
{
    return strcmp(state, "completed") == 0 || strcmp(state, "cancelled") == 0 ||
           strcmp(state, "discarded") == 0 || strcmp(state, "gone") == 0;
}

static enum status say_json(FILE *out, const struct admin_rows *rows, int row, const char *before,
                            struct err *err)
{
    json_auto_t *line =
        json_pack("{s:s, s:I, s:s, s:s?, s:s, s:I, s:s?, s:s?}", "at", admin_value(rows, row, AT),
                  "id", (json_int_t)strtoll(admin_value(rows, row, ID), NULL, 10), "kind",
                  admin_value(rows, row, KIND), "before", before[0] != '\0' ? before : NULL,
                  "state", admin_value(rows, row, STATE), "attempt",
                  (json_int_t)strtoll(admin_value(rows, row, ATTEMPT), NULL, 10), "host",
                  admin_value(rows, row, HOST), "error", admin_value(rows, row, ERROR));
    if (line == NULL || json_dumpf(line, out, JSON_COMPACT) != 0) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    (void)fputc('\n', out);
    return STATUS_OK;
}

/* Prints the first line of an error, without control characters, which a terminal might obey. */
static void put_error(FILE *out, const char *error)
{
    size_t len = strcspn(error, "\n");
    (void)fputs(": ", out);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)error[i];
        (void)fputc(c < ' ' || c == 0x7f ? '?' : c, out);
    }
}

static void say_text(FILE *out, const struct admin_rows *rows, int row, const char *before)
{
    const char *state = admin_value(rows, row, STATE);
    const char *error = admin_value(rows, row, ERROR);
    const char *host = admin_value(rows, row, HOST);
    const char *attempt = admin_value(rows, row, ATTEMPT);
    (void)fprintf(out, "%s job %s %s: %s%s%s", admin_value(rows, row, AT),
                  admin_value(rows, row, ID), admin_value(rows, row, KIND), before,
                  before[0] != '\0' ? " → " : "", state);
    if (strcmp(attempt, "0") != 0) {
        (void)fprintf(out, ", attempt %s%s%s", attempt, host != NULL ? " on " : "",
                      host != NULL ? host : "");
    }
    if (error != NULL && strcmp(state, "running") != 0) {
        put_error(out, error);
    }
    (void)fputc('\n', out);
}

static enum status take(struct watch *w, struct followed *job, const struct admin_rows *rows,
                        int row, struct err *err)
{
    const char *state = admin_value(rows, row, STATE);
    int64_t attempt = strtoll(admin_value(rows, row, ATTEMPT), NULL, 10);
    if (strcmp(job->state, state) == 0 && job->attempt == attempt) {
        return STATUS_OK;
    }
    enum status st = STATUS_OK;
    if (w->ctl->is_json) {
        st = say_json(w->ctl->out, rows, row, job->state, err);
    } else {
        say_text(w->ctl->out, rows, row, job->state);
    }
    (void)snprintf(job->state, sizeof job->state, "%s", state);
    job->attempt = attempt;
    job->has_ended = is_final(state);
    w->open -= job->has_ended;
    w->discarded += strcmp(state, "discarded") == 0;
    return st;
}

/* ---- one round ---- */

static enum status ask(struct watch *w, struct admin_rows **ret, struct err *err)
{
    autotext struct text list = TEXT_INIT(LIST_BYTES_MAX);
    for (size_t i = 0; i < w->count; i++) {
        if (!w->jobs[i].has_ended) {
            id_list_add(&list, w->jobs[i].id);
        }
    }
    id_list_end(&list);
    enum status st = text_end(&list, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *const params[] = {text_str(&list)};
    return admin_query(w->admin, &SQL_ADMIN_JOBS_WATCH, params, ret, err);
}

static int row_of(const struct admin_rows *rows, int64_t id)
{
    for (int row = 0; row < admin_row_count(rows); row++) {
        if (strtoll(admin_value(rows, row, ID), NULL, 10) == id) {
            return row;
        }
    }
    return -1;
}

static enum status refresh(struct watch *w, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = ask(w, &rows, err);
    for (size_t i = 0; st == STATUS_OK && i < w->count; i++) {
        struct followed *job = &w->jobs[i];
        int row = job->has_ended ? -1 : row_of(rows, job->id);
        if (row >= 0) {
            st = take(w, job, rows, row, err);
        } else if (!job->has_ended) {
            /* The day of the history was dropped between the end of the job and this read, or the
             * job never existed. */
            st = w->is_first
                     ? err_fail(err, STATUS_NOT_FOUND, "job %lld not found", (long long)job->id)
                     : STATUS_OK;
            job->has_ended = true;
            w->open--;
        }
    }
    w->is_first = false;
    if (st != STATUS_OK) {
        return st;
    }
    if (fflush(w->ctl->out) != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "cannot write");
    }
    return STATUS_OK;
}

static enum status check_choice(const struct ctl_args *args, struct err *err)
{
    struct filter filter;
    size_t filters = args->given_count - (ctl_value(args, "every") != NULL);
    if (args->word_count > 0 && filters > 0) {
        return err_fail(err, STATUS_INVALID, "give either ids or options that choose jobs");
    }
    for (size_t i = 0; i < args->word_count; i++) {
        enum status st = jobs_check_id(args->words[i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    enum status st = filter_read(&filter, args, 0, err);
    filter_release(&filter);
    return st;
}

enum status jobs_watch(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_admin struct admin *a = NULL;
    autofree struct watch *w = calloc(1, sizeof *w);
    int64_t every_us = 0;
    enum status st = w == NULL ? err_fail(err, STATUS_NOMEM, "out of memory") : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    st = check_choice(args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_interval(args, "every", EVERY_STANDARD_US, &every_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    w->ctl = ctl;
    w->admin = a;
    w->is_first = true;
    st = choose(w, args, err);
    if (st == STATUS_OK && w->count == 0) {
        (void)fprintf(stderr, "claimctl: no open job matches these options\n");
    }
    while (st == STATUS_OK && w->open > 0) {
        if (!w->is_first) {
            ctl_rest(every_us);
        }
        st = refresh(w, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    if (w->discarded > 0) {
        return err_fail(err, STATUS_INTERNAL, "%zu of %zu jobs discarded", w->discarded, w->count);
    }
    return STATUS_OK;
}
