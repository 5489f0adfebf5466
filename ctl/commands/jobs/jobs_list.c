/* SPDX-License-Identifier: Apache-2.0
 *
 * `claimctl jobs list`: searches for rare jobs for at most SEARCH_US, and then prints how to
 * continue the search. */
#include "base/clock.h"
#include "base/parse.h"
#include "ctl/commands/jobs/jobs.h"
#include "ctl/commands/jobs/jobs_walk.h"
#include "ctl/core/table_text.h"

#define LIMIT_MAX 10000
#define LIMIT_STANDARD 50
#define SEARCH_US (10 * US_PER_S)

struct listing {
    struct ctl *ctl;
    const struct ctl_args *args;
    struct walk walk;
};

/* ---- output ---- */

static void put_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:=,@%+-";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        (void)fputs(word, out);
        return;
    }
    (void)fputc('\'', out);
    for (const char *p = word; *p != '\0'; p++) {
        (void)fputs(*p == '\'' ? "'\\'" : "", out);
        (void)fputc(*p, out);
    }
    (void)fputc('\'', out);
}

/* Prints the same command, to continue from where this one ended. */
static void say_next(const struct listing *l)
{
    FILE *out = stderr;
    (void)fprintf(out, "claimctl");
    if (l->ctl->config_from == CTL_CONFIG_OPTION) {
        (void)fprintf(out, " --config ");
        put_word(out, l->ctl->config_path);
    }
    (void)fprintf(out, " jobs list");
    for (size_t i = 0; i < l->args->given_count; i++) {
        if (strcmp(l->args->given[i].name, "after") != 0) {
            (void)fprintf(out, " --%s ", l->args->given[i].name);
            put_word(out, l->args->given[i].value);
        }
    }
    (void)fprintf(out, " --after %lld\n", (long long)walk_after(&l->walk));
}

static enum status print_listing(struct listing *l, struct err *err)
{
    static const struct table_column page_columns[] = {{"next_after", CELL_NUMBER}};
    char next[24];
    const char *const values[] = {l->walk.next > 0 ? next : NULL};
    auto_table struct table page = TABLE("page", page_columns);
    page.is_record = true;
    (void)snprintf(next, sizeof next, "%lld", (long long)walk_after(&l->walk));
    const struct table *const tables[] = {&l->walk.table, &page};
    enum status st = table_add(&page, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = tables_print(tables, l->ctl->is_json ? 2 : 1, l->ctl->is_json, l->ctl->out, err);
    if (st != STATUS_OK) {
        return st;
    }
    bool is_told = l->walk.is_cut || isatty(STDERR_FILENO) == 1;
    if (l->walk.next > 0 && is_told) {
        (void)fflush(l->ctl->out);
        (void)fprintf(stderr, l->walk.is_cut ? "claimctl: stopped after 10 s; there may be more: "
                                             : "next: ");
        say_next(l);
    }
    return STATUS_OK;
}

/* ---- the command ---- */

/* Reads the number of the option, if it was given. */
static void read_number(struct given *g, const char *name, int64_t max, int64_t *ret)
{
    const char *text = given_number(g, name, 1, max);
    *ret = text != NULL ? strtoll(text, NULL, 10) : *ret;
}

/* Checks first what needs no server, so that a wrong option is reported without one. */
static enum status check_options(struct listing *l, int64_t *ret_after, struct err *err)
{
    struct walk *w = &l->walk;
    enum status st = filter_read(&w->filter, l->args, 0, err);
    filter_release(&w->filter);
    if (st != STATUS_OK) {
        return st;
    }
    auto_given struct given given = GIVEN(l->args, err);
    read_number(&given, "limit", LIMIT_MAX, &w->limit);
    read_number(&given, "after", INT64_MAX, ret_after);
    if (err->status != STATUS_OK) {
        return err->status;
    }
    return walk_columns(w, ctl_value(l->args, "columns"), err);
}

static enum status list_jobs(struct listing *l, struct err *err)
{
    struct walk *w = &l->walk;
    auto_admin struct admin *a = NULL;
    int64_t after = INT64_MAX;
    enum status st = check_options(l, &after, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(l->ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    w->admin = a;
    st = verb_now(a, &w->table.now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = filter_read(&w->filter, l->args, w->table.now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = walk_start(w, after, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = walk_on(w, SEARCH_US, err);
    if (st != STATUS_OK) {
        return st;
    }
    return print_listing(l, err);
}

enum status jobs_list(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    struct listing l = {.ctl = ctl, .args = args, .walk = WALK(NULL, LIMIT_STANDARD)};
    enum status st = list_jobs(&l, err);
    walk_release(&l.walk);
    return st;
}
