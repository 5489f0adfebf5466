/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl map: a command for each row of a query, each row completed once
 * (docs/guide/map.md). */
#include "ctl/commands/map/map.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/parse.h"
#include "ctl/commands/enqueue/served.h"
#include "ctl/options/given.h"
#include "model/job.h"
#include "sql/queries.h"

#include <ctype.h>
#include <stdio.h>
#include <unistd.h>

void map_release(struct map **slot)
{
    struct map *m = *slot;
    if (m == NULL) {
        return;
    }
    source_release(&m->source);
    admin_rows_free(m->row);
    json_decref(m->command);
    admin_close(m->admin);
    free(m);
}

static enum status map_new(struct ctl *ctl, const struct ctl_args *args, struct map **ret,
                           struct err *err)
{
    struct map *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    m->ctl = ctl;
    m->args = args;
    *ret = m;
    return STATUS_OK;
}

enum status map_ask(struct map *m, const struct pg_statement *statement, const char *param,
                    struct admin_rows **ret, struct err *err)
{
    const char *const params[] = {m->name, param};
    return admin_query(m->admin, statement, params, ret, err);
}

enum status map_keep_key(char **key, const char *last, struct err *err)
{
    free(*key);
    *key = strdup(last);
    return *key == NULL ? err_fail(err, STATUS_NOMEM, "out of memory") : STATUS_OK;
}

/* ---- options ---- */

/* True if the text begins as a query does: PostgreSQL would only see a syntax error in what writes,
 * since it runs as a subquery. */
static bool begins_as_query(const char *text)
{
    static const char *const words[] = {"SELECT", "WITH", "TABLE", "VALUES", "--", "/*"};
    text += strspn(text, "( \t\r\n");
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (strncasecmp(text, words[i], strlen(words[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Drops a semicolon at the end, which psql needs but a subquery can't have. */
static enum status read_query(struct map *m, struct err *err)
{
    const char *text = ctl_value(m->args, "sql");
    if (text == NULL) {
        return err_fail(err, STATUS_INVALID, "--sql is missing: the query whose rows are mapped");
    }
    size_t len = strlen(text);
    while (len > 0 && (isspace((unsigned char)text[len - 1]) || text[len - 1] == ';')) {
        len--;
    }
    if (len == 0 || len >= sizeof m->query) {
        return err_fail(err, STATUS_INVALID, "--sql: must be a query of 1 to %zu bytes",
                        sizeof m->query - 1);
    }
    if (!begins_as_query(text)) {
        return err_fail(err, STATUS_INVALID,
                        "--sql: '%.40s' is not a query; allowed: SELECT, WITH, TABLE or VALUES, "
                        "which may not write",
                        text);
    }
    (void)snprintf(m->query, sizeof m->query, "%.*s", (int)len, text);
    return STATUS_OK;
}

static enum status read_kind(struct map *m, struct err *err)
{
    const char *kind = ctl_value(m->args, "kind");
    const char *queue = ctl_value(m->args, "queue");
    if ((kind != NULL) == (m->args->word_count > 0)) {
        return err_fail(err, STATUS_INVALID, "map needs either a command after -- or --kind KIND");
    }
    m->queue = queue == NULL ? "default" : queue;
    enum status st = job_queue_check(m->queue, err);
    if (st == STATUS_OK && kind != NULL) {
        st = job_kind_check(kind, err);
        (void)snprintf(m->kind, sizeof m->kind, "%s", kind);
    }
    return st;
}

static enum status check_limits(const struct map *m, struct err *err)
{
    auto_given struct given given = GIVEN(m->args, err);
    const char *rate = ctl_value(m->args, "rate");
    (void)given_number(&given, "concurrency", 1, 1000);
    if (err->status == STATUS_OK && rate != NULL && !verb_rate_is_valid(rate)) {
        return err_fail(err, STATUS_INVALID,
                        "--rate: '%.40s' is not allowed; allowed: 1 to 100000, then /s, /m, /h or "
                        "/d, such as 50/m",
                        rate);
    }
    return err->status;
}

/* Without --batch, derives the name from query, key and command, so that the same call finds its
 * map again. */
static enum status name_it(struct map *m, struct err *err)
{
    const char *name = ctl_value(m->args, "batch");
    autofree char *command = m->command == NULL ? NULL : json_dumps(m->command, JSON_COMPACT);
    autotext struct text all = TEXT_INIT(2 * SOURCE_QUERY_MAX);
    if (name == NULL) {
        const char *kind = m->command == NULL ? m->kind : m->kind + strlen(JOB_COMMAND_PREFIX);
        text_put(&all, "%s\n%s\n%s", m->query, m->source.key, command == NULL ? "" : command);
        enum status st = text_end(&all, err);
        (void)snprintf(m->name, sizeof m->name, "%.48s-%08x", kind,
                       hash_bytes(text_str(&all), strlen(text_str(&all))));
        return st;
    }
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    if (len == 0 || name[len] != '\0' || len > 64 || !isalnum((unsigned char)name[0])) {
        return err_fail(err, STATUS_INVALID,
                        "--batch: '%.80s' is not allowed; allowed: letters, digits, '.', '_' and "
                        "'-', at most 64, the first a letter or digit",
                        name);
    }
    (void)snprintf(m->name, sizeof m->name, "%s", name);
    return STATUS_OK;
}

static enum status check_served(struct map *m, struct err *err)
{
    struct served served = {.count = 0};
    served_note(&served, m->queue, strlen(m->queue), m->kind, strlen(m->kind));
    return served_check(&served, m->admin, false, err);
}

/* Reads the first chunk, so that an error of the running query shows before anything is made. */
static enum status try_chunk(const struct map *m, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    bool is_last = false;
    return source_read(&m->source, NULL, &rows, &is_last, err);
}

/* Makes all checks that can refuse the call, before anything is made. */
static enum status prepare(struct map *m, struct err *err)
{
    enum status st = ctl_session(m->ctl, &m->admin, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = m->kind[0] == '\0' ? map_find_command(m, m->args->words, m->args->word_count, err)
                            : check_served(m, err);
    if (st != STATUS_OK) {
        return st;
    }
    admin_set_timeout(m->admin, MAP_QUERY_US);
    m->source.admin = m->admin;
    m->source.query = m->query;
    m->source.key = ctl_value(m->args, "key");
    st = source_open(&m->source, m->command, ctl_value(m->args, "slow") != NULL, err);
    if (st == STATUS_OK) {
        st = try_chunk(m, err);
    }
    if (st == STATUS_OK) {
        st = name_it(m, err);
    }
    m->into = ctl_value(m->args, "into");
    if (st == STATUS_OK && m->into != NULL) {
        st = map_check_into(m, err);
    }
    return st;
}

/* ---- steps ---- */

static enum status begin(struct map *m, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    autofree char *command = m->command == NULL ? NULL : json_dumps(m->command, JSON_COMPACT);
    const char *const params[] = {m->name,
                                  m->query,
                                  m->source.key,
                                  m->kind,
                                  command,
                                  m->queue,
                                  ctl_value(m->args, "concurrency"),
                                  ctl_value(m->args, "rate"),
                                  m->into};
    enum status st = admin_query(m->admin, &SQL_ADMIN_MAP_BEGIN, params, &rows, err);
    if (st != STATUS_OK) {
        return verb_written(st, err);
    }
    return map_read(m, err);
}

enum status map_read(struct map *m, struct err *err)
{
    admin_rows_free(m->row);
    m->row = NULL;
    enum status st = map_ask(m, &SQL_ADMIN_MAP_READ, NULL, &m->row, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct admin_rows *r = m->row;
    if (admin_row_count(r) == 0) {
        return err_fail(err, STATUS_NOT_FOUND, "map %s not found", m->name);
    }
    const char *last = admin_value(r, 0, admin_column(r, "last_key"));
    m->has_last_key = last != NULL;
    (void)snprintf(m->last_key, sizeof m->last_key, "%s", last == NULL ? "" : last);
    (void)snprintf(m->id, sizeof m->id, "%s", admin_value(r, 0, admin_column(r, "id")));
    m->is_loaded = strcmp(admin_value(r, 0, admin_column(r, "is_loaded")), "t") == 0;
    m->into = admin_value(r, 0, admin_column(r, "into_table"));
    return STATUS_OK;
}

/* True if claimctl waits for the map's end: always on a terminal, in a script only on request. */
static bool is_followed(const struct map *m)
{
    return ctl_value(m->args, "wait") != NULL || m->into != NULL || isatty(STDERR_FILENO) == 1;
}

static enum status run(struct map *m, bool follows, struct err *err)
{
    map_catch_interrupt();
    enum status st = m->is_loaded ? STATUS_OK : map_load(m, err);
    if (st == STATUS_OK && follows) {
        struct err failed = {0};
        st = map_follow(m, &failed);
        bool is_over = st == STATUS_OK || st == STATUS_INTERNAL;
        if (is_over && m->into != NULL && map_interrupted == 0) {
            enum status put = map_put_into(m, err);
            if (put != STATUS_OK) {
                return put;
            }
        }
        if (st != STATUS_OK) {
            return err_fail(err, st, "%s", failed.msg);
        }
    }
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_call_verb(m->ctl, &(struct ctl_args){.word_count = 0}, &VERB_MAP_SHOW,
                         (struct ctl_fixed){"name", m->name}, err);
}

enum status map_run(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_map struct map *m = NULL;
    enum status st = map_new(ctl, args, &m, err);
    if (st == STATUS_OK) {
        st = read_query(m, err);
    }
    if (st == STATUS_OK) {
        st = read_kind(m, err);
    }
    if (st == STATUS_OK) {
        st = check_limits(m, err);
    }
    if (st == STATUS_OK) {
        st = prepare(m, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    if (ctl_value(args, "dry-run") != NULL) {
        return map_print_dry(m, err);
    }
    st = begin(m, err);
    if (st != STATUS_OK) {
        return st;
    }
    return run(m, is_followed(m), err);
}

/* ---- commands for an existing map ---- */

enum status map_open(struct ctl *ctl, const struct ctl_args *args, struct map **ret,
                     struct err *err)
{
    enum status st = map_new(ctl, args, ret, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf((*ret)->name, sizeof(*ret)->name, "%.79s", args->words[0]);
    st = ctl_session(ctl, &(*ret)->admin, err);
    if (st == STATUS_OK) {
        st = map_read(*ret, err);
    }
    return st;
}

/* Loads the rest of the map, if any, then follows it. */
enum status map_attach(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_map struct map *m = NULL;
    enum status st = map_open(ctl, args, &m, err);
    if (st != STATUS_OK) {
        return st;
    }
    admin_set_timeout(m->admin, MAP_QUERY_US);
    if (!m->is_loaded) {
        (void)snprintf(m->query, sizeof m->query, "%s",
                       admin_value(m->row, 0, admin_column(m->row, "query")));
        (void)snprintf(m->source.key_room, sizeof m->source.key_room, "%s",
                       admin_value(m->row, 0, admin_column(m->row, "key")));
        m->source.admin = m->admin;
        m->source.query = m->query;
        m->source.key = m->source.key_room;
        st = source_open(&m->source, NULL, true, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return run(m, true, err);
}

/* Repeats the statement, which handles a thousand jobs in a transaction of its own, until none is
 * left. */
static enum status walk(struct map *m, const struct pg_statement *statement, long long *ret_jobs,
                        long long *ret_left_out, struct err *err)
{
    autofree char *behind = NULL;
    for (;;) {
        auto_admin_rows struct admin_rows *rows = NULL;
        enum status st = map_ask(m, statement, behind, &rows, err);
        if (st != STATUS_OK) {
            return verb_written(st, err);
        }
        const char *last = admin_value(rows, 0, 0);
        *ret_jobs += strtoll(admin_value(rows, 0, 1), NULL, 10);
        if (ret_left_out != NULL) {
            *ret_left_out += strtoll(admin_value(rows, 0, 2), NULL, 10);
        }
        if (last == NULL) {
            return STATUS_OK;
        }
        st = map_keep_key(&behind, last, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
}

static void print_count(const struct map *m, const char *done, long long jobs, long long left_out,
                        const char *why_left_out)
{
    FILE *out = m->ctl->out;
    if (m->ctl->is_json) {
        (void)fprintf(out, "{\"map\": {\"name\": \"%s\", \"%s\": %lld, \"left_out\": %lld}}\n",
                      m->name, done, jobs, left_out);
        return;
    }
    (void)fprintf(out, "map %s: %lld %s\n", m->name, jobs, done);
    if (left_out > 0) {
        (void)fprintf(out, "%lld left out: %s\n", left_out, why_left_out);
    }
}

enum status map_cancel(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_map struct map *m = NULL;
    long long jobs = 0;
    enum status st = map_open(ctl, args, &m, err);
    if (st == STATUS_OK) {
        st = walk(m, &SQL_ADMIN_MAP_CANCEL, &jobs, NULL, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    print_count(m, "cancelled", jobs, 0, "");
    return STATUS_OK;
}

enum status map_retry(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_map struct map *m = NULL;
    long long jobs = 0;
    long long left_out = 0;
    if (ctl_value(args, "failed") == NULL) {
        return err_fail(err, STATUS_INVALID, "which rows? Give --failed");
    }
    enum status st = map_open(ctl, args, &m, err);
    if (st == STATUS_OK) {
        st = walk(m, &SQL_ADMIN_MAP_RETRY, &jobs, &left_out, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    print_count(m, "retried", jobs, left_out,
                "their jobs are gone or were never made; the same map call again makes new ones");
    return STATUS_OK;
}

enum status map_drop(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_map struct map *m = NULL;
    long long rows = 0;
    enum status st = map_open(ctl, args, &m, err);
    for (long long gone = 1; st == STATUS_OK && gone > 0; rows += gone) {
        auto_admin_rows struct admin_rows *answer = NULL;
        st = map_ask(m, &SQL_ADMIN_MAP_DROP, "20000", &answer, err);
        gone = st == STATUS_OK ? strtoll(admin_value(answer, 0, 0), NULL, 10) : 0;
    }
    if (st != STATUS_OK) {
        return verb_written(st, err);
    }
    print_count(m, "dropped", rows, 0, "");
    return STATUS_OK;
}

enum status map_show(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    bool is_failed = ctl_value(args, "failed") != NULL;
    const struct verb *verb = is_failed ? &VERB_MAP_FAILED : &VERB_MAP_SHOW;
    return ctl_call_verb(ctl, args, verb, (struct ctl_fixed){"name", args->words[0]}, err);
}
