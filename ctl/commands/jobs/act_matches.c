/* SPDX-License-Identifier: Apache-2.0
 *
 * Acts on all jobs that a filter chooses. First their ids are collected; then they are changed in
 * groups, the oldest first, each group in one transaction. A group that is refused is halved until
 * the job that causes the refusal is alone. If the cause is a full queue, the other jobs of this
 * queue are not tried. Completed groups stay: after an interruption, the same command finds only
 * the rest. */
#include "base/clock.h"
#include "base/parse.h"
#include "ctl/commands/jobs/act.h"
#include "ctl/commands/jobs/jobs_walk.h"
#include "ctl/commands/jobs/matches.h"
#include "ctl/core/agree.h"
#include "ctl/core/progress.h"
#include "ctl/options/id_list.h"
#include "sql/errors.h"

#include <signal.h>

#define GROUP_MAX 1000
#define CHUNK 10000        /* rows read at a time; also what --dry-run shows as JSON */
#define SHOWN_AS_TEXT 20   /* by --dry-run */
#define FAILURES_SHOWN 100 /* the others are counted */

struct bulk {
    struct ctl *ctl;
    const struct ctl_args *args;
    const struct act *act;
    struct admin *admin;
    struct walk walk;
    int64_t limit;
    struct matches found;
    int64_t done;
    int64_t failed;
    enum status worst;
    struct err last;       /* a failure of one job, or the one that ended everything */
    bool is_interrupted;   /* by a signal */
    struct table shown;    /* some of the matching jobs */
    struct table failures; /* some of the refused jobs */
    struct progress progress;
};

static const struct table_column failure_columns[] = {{"id", CELL_NUMBER},
                                                      {"error", CELL_TEXT | CELL_PROSE}};

static int64_t count_of(const struct bulk *b)
{
    return matches_count(&b->found);
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* While ids are collected and groups run, signals are blocked until the present group is over. */
static void hold_signals(bool is_held)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(is_held ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static bool is_signalled(void)
{
    sigset_t set;
    (void)sigpending(&set);
    return sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1;
}

/* ---- choosing ---- */

/* Finds a state in a list by strstr(): names of states have no commas, and none is a part of
 * another. */
static enum status check_states(const struct bulk *b, struct err *err)
{
    for (size_t i = 0; i < b->args->given_count; i++) {
        const char *list =
            strcmp(b->args->given[i].name, "state") == 0 ? b->args->given[i].value : "";
        for (const char *at = list; at[0] != '\0'; at += strspn(at, ",")) {
            char state[16];
            size_t len = strcspn(at, ",");
            (void)snprintf(state, sizeof state, "%.*s", (int)len, at);
            if (strstr(b->act->allowed, state) == NULL) {
                return err_fail(err, STATUS_INVALID, "--state: only %s jobs can be %s; allowed: %s",
                                b->act->which, b->act->past, b->act->allowed);
            }
            at += len;
        }
    }
    return STATUS_OK;
}

static enum status read_filter(struct bulk *b, int64_t now_us, struct err *err)
{
    struct filter *f = &b->walk.filter;
    filter_release(f);
    enum status st = filter_read(f, b->args, now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (ctl_value(b->args, "state") == NULL) {
        return filter_states(f, b->act->states);
    }
    return check_states(b, err);
}

static enum status read_limit(struct bulk *b, struct err *err)
{
    auto_given struct given given = GIVEN(b->args, err);
    const char *text = given_number(&given, "limit", 1, MATCHES_MAX);
    b->limit = text != NULL ? strtoll(text, NULL, 10) : MATCHES_MAX;
    return err->status;
}

static enum status keep_ids(struct bulk *b, const struct table *found, struct err *err)
{
    enum status st = STATUS_OK;
    for (size_t row = 0; st == STATUS_OK && row < found->row_count; row++) {
        int64_t id = strtoll(table_value(found, row, "id"), NULL, 10);
        st = matches_add(&b->found, id, table_value(found, row, "queue"), err);
    }
    return st;
}

static enum status collect(struct bulk *b, struct err *err)
{
    struct walk *w = &b->walk;
    enum status st = walk_start(w, INT64_MAX, err);
    while (st == STATUS_OK && w->next > 0 && count_of(b) < b->limit && !is_signalled()) {
        int64_t left = b->limit - count_of(b);
        bool is_first = count_of(b) == 0;
        w->limit = left < CHUNK ? left : CHUNK;
        st = walk_on(w, US_PER_S, err); /* then checks for a signal */
        struct table found = walk_take(w);
        if (st == STATUS_OK) {
            st = keep_ids(b, &found, err);
        }
        if (is_first) {
            b->shown = found;
        } else {
            table_release(&found);
        }
    }
    b->is_interrupted = is_signalled();
    return st;
}

/* ---- asking ---- */

static enum status agree(const struct bulk *b)
{
    char question[64];
    (void)snprintf(question, sizeof question, "%lld job%s will be %s.", (long long)count_of(b),
                   plural(count_of(b)), b->act->past);
    return ctl_agree(b->ctl, b->args, question);
}

/* ---- acting ---- */

/* Appends the ids except jobs of full queues; appends nothing if none is left. */
static enum status put_ids(const struct bulk *b, int64_t from, int64_t count, struct text *out,
                           struct err *err)
{
    for (int64_t i = from; i < from + count; i++) {
        if (matches_full(&b->found, i) == NULL) {
            id_list_add(out, matches_id(&b->found, i));
        }
    }
    if (out->buf.len > 0) {
        id_list_end(out);
    }
    return text_end(out, err);
}

static enum status do_group(struct bulk *b, int64_t from, int64_t count, struct err *err)
{
    autotext struct text list = TEXT_INIT((size_t)GROUP_MAX * 24);
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = put_ids(b, from, count, &list, err);
    if (st != STATUS_OK || list.buf.len == 0) {
        return st;
    }
    const char *params[1 + ACT_PARAMETERS_MAX];
    act_parameters(b->act, text_str(&list), params);
    return verb_written(admin_query(b->admin, b->act->many, params, &rows, err), err);
}

static enum status note_failure(struct bulk *b, int64_t id, const struct err *why, struct err *err)
{
    char text[24];
    const char *const values[] = {text, why->msg};
    (void)snprintf(text, sizeof text, "%lld", (long long)id);
    b->failed++;
    b->worst = act_worse(why->status, b->worst);
    b->last = *why;
    return b->failures.row_count < FAILURES_SHOWN ? table_add(&b->failures, values, err)
                                                  : STATUS_OK;
}

/* Counts a group as done, except the jobs that it left out, which have failed. */
static enum status note_group(struct bulk *b, int64_t from, int64_t count, struct err *err)
{
    enum status st = STATUS_OK;
    for (int64_t i = from; st == STATUS_OK && i < from + count; i++) {
        const struct err *full = matches_full(&b->found, i);
        b->done += full == NULL ? 1 : 0;
        st = full == NULL ? STATUS_OK : note_failure(b, matches_id(&b->found, i), full, err);
    }
    return st;
}

/* Runs the next group; *size is the size to try next. A failure that does not concern a single job
 * ends everything. */
static enum status do_next(struct bulk *b, int64_t *size, struct err *err)
{
    struct err why = {0};
    int64_t from = b->done + b->failed;
    int64_t left = count_of(b) - from;
    int64_t count = *size < left ? *size : left;
    enum status st = do_group(b, from, count, &why);
    if (st == STATUS_OK) {
        *size = 2 * count < GROUP_MAX ? 2 * count : GROUP_MAX;
        return note_group(b, from, count, err);
    }
    if (act_is_end(&why)) {
        return err_fail(err, st, "%s", why.msg);
    }
    *size = count / 2;
    if (count > 1) {
        return STATUS_OK;
    }
    *size = 1;
    if (strcmp(why.code, SQLSTATE_QUEUE_FULL) == 0) {
        matches_note_full(&b->found, from, &why);
    }
    return note_failure(b, matches_id(&b->found, from), &why, err);
}

static enum status do_first(struct bulk *b, struct err *err)
{
    auto_answer struct answer answer = {.count = 0};
    return b->act->first == NULL ? STATUS_OK : verb_run(b->act->first, b->admin, &answer, err);
}

/* Acts on all jobs that matched. */
static enum status do_all(struct bulk *b, struct err *err)
{
    int64_t size = GROUP_MAX;
    /* Ends the wait for the lock of one row soon, so that the other jobs of its group are not held
     * up. */
    enum status st = admin_exec(b->admin, "SET lock_timeout = '200ms'", err);
    progress_start(&b->progress, b->act->past, count_of(b), ctl_value(b->args, "quiet") != NULL);
    while (st == STATUS_OK && b->done + b->failed < count_of(b)) {
        b->is_interrupted = is_signalled();
        if (b->is_interrupted) {
            break;
        }
        st = do_next(b, &size, err);
        progress_note(&b->progress, b->done, b->done + b->failed);
    }
    progress_end(&b->progress);
    return st;
}

/* ---- output ---- */

static enum status say(struct bulk *b, struct table *rows, bool is_dry_run, struct err *err)
{
    static const struct table_column columns[] = {{"matched", CELL_NUMBER},
                                                  {"done", CELL_NUMBER},
                                                  {"failed", CELL_NUMBER},
                                                  {"is_dry_run", CELL_BOOL}};
    char numbers[3][24];
    const char *const values[] = {numbers[0], numbers[1], numbers[2], is_dry_run ? "t" : "f"};
    auto_table struct table summary = TABLE("summary", columns);
    const struct table *const tables[] = {rows, &summary};
    summary.is_record = true;
    (void)snprintf(numbers[0], sizeof numbers[0], "%lld", (long long)count_of(b));
    (void)snprintf(numbers[1], sizeof numbers[1], "%lld", (long long)b->done);
    (void)snprintf(numbers[2], sizeof numbers[2], "%lld", (long long)b->failed);
    enum status st = table_add(&summary, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, b->ctl->is_json ? 2 : 1, b->ctl->is_json, b->ctl->out, err);
}

static enum status say_matches(struct bulk *b, struct err *err)
{
    struct table shown = b->shown; /* borrows the cells; perhaps shorter */
    bool is_short = !b->ctl->is_json && shown.row_count > SHOWN_AS_TEXT;
    shown.name = "jobs";
    shown.row_count = is_short ? SHOWN_AS_TEXT : shown.row_count;
    enum status st = say(b, &shown, true, err);
    if (st == STATUS_OK && !b->ctl->is_json) {
        (void)fprintf(b->ctl->out, "%lld job%s would be %s%s\n", (long long)count_of(b),
                      plural(count_of(b)), b->act->past, is_short ? "; above: the newest" : "");
    }
    return st;
}

static enum status say_done(struct bulk *b, enum status ended, struct err *err)
{
    struct err why = {0};
    bool is_text = !b->ctl->is_json;
    enum status st =
        is_text && b->failures.row_count == 0 ? STATUS_OK : say(b, &b->failures, false, &why);
    if (st == STATUS_OK && is_text) {
        (void)fprintf(b->ctl->out, "%lld job%s %s\n", (long long)b->done, plural(b->done),
                      b->act->past);
    }
    if (ended != STATUS_OK) {
        err_prefix(err, "%lld of %lld jobs %s, then", (long long)b->done, (long long)count_of(b),
                   b->act->past);
        return ended;
    }
    if (b->is_interrupted) {
        return err_fail(err, STATUS_INTERNAL,
                        "interrupted: %lld of %lld jobs %s; the same command continues",
                        (long long)b->done, (long long)count_of(b), b->act->past);
    }
    if (b->failed == 1) {
        return err_fail(err, b->worst, "%s", b->last.msg);
    }
    if (b->failed > 1) {
        return err_fail(err, b->worst, "%lld of %lld jobs were not %s", (long long)b->failed,
                        (long long)count_of(b), b->act->past);
    }
    return st;
}

/* ---- the command ---- */

static enum status check(struct bulk *b, struct err *err)
{
    enum status st = read_limit(b, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = walk_columns(&b->walk, "id,kind,queue,state,error", err);
    if (st != STATUS_OK) {
        return st;
    }
    return read_filter(b, 0, err);
}

static enum status find(struct bulk *b, struct err *err)
{
    int64_t now_us = 0;
    enum status st = verb_now(b->admin, &now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_filter(b, now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    hold_signals(true);
    st = collect(b, err);
    if (b->is_interrupted) {
        st = err_fail(err, STATUS_INTERNAL, "interrupted: nothing was done");
    }
    hold_signals(st != STATUS_OK); /* while it asks, a pending signal may end the program */
    return st;
}

static enum status run(struct bulk *b, struct err *err)
{
    auto_admin struct admin *a = NULL;
    enum status st = check(b, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(b->ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    b->admin = a;
    b->walk.admin = a;
    st = find(b, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (ctl_value(b->args, "dry-run") != NULL) {
        return say_matches(b, err);
    }
    st = count_of(b) > 0 ? agree(b) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    st = do_first(b, err);
    if (st != STATUS_OK) {
        return st;
    }
    hold_signals(true);
    st = do_all(b, err);
    return say_done(b, st, err);
}

enum status act_on_matches(struct ctl *ctl, const struct ctl_args *args, const struct act *act,
                           struct err *err)
{
    struct bulk b = {.ctl = ctl,
                     .args = args,
                     .act = act,
                     .walk = WALK(NULL, CHUNK),
                     .failures = TABLE("failed", failure_columns)};
    matches_init(&b.found);
    enum status st = run(&b, err);
    walk_release(&b.walk);
    matches_release(&b.found);
    table_release(&b.shown);
    table_release(&b.failures);
    return st;
}
