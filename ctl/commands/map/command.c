/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the command of worker.commands that a map runs, and shows what it would run for the first
 * rows. */
#include "ctl/commands/map/map.h"
#include "model/job.h"
#include "runner/command_words.h"
#include "sql/queries.h"

#include <stdio.h>

#define DRY_ROWS 3

enum { COMMAND_NAME, COMMAND_TEMPLATE, COMMAND_HOST, COMMAND_IS_HERE };

static json_t *list_of(char *const *words, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < count; i++) {
        if (json_array_append_new(list, json_string(words[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static bool is_here(const struct admin_rows *rows, int row)
{
    return strcmp(admin_value(rows, row, COMMAND_IS_HERE), "t") == 0;
}

static enum status refuse_command(const struct map *m, const struct admin_rows *rows,
                                  struct err *err)
{
    char allowed[ERR_TEXT_MAX] = "";
    size_t at = 0;
    for (int i = 0; i < admin_row_count(rows) && at < sizeof allowed; i++) {
        int n = snprintf(allowed + at, sizeof allowed - at, "%s%s on %s%s: %s", i > 0 ? "; " : "",
                         admin_value(rows, i, COMMAND_NAME), admin_value(rows, i, COMMAND_HOST),
                         is_here(rows, i) ? "" : " (of other queues)",
                         admin_value(rows, i, COMMAND_TEMPLATE));
        at += n > 0 ? (size_t)n : 0;
    }
    return err_fail(err, STATUS_CONFLICT,
                    "no live worker of queue %s allows this command (worker.commands); allowed: %s",
                    m->queue, at == 0 ? "none" : allowed);
}

/* Refuses a name that stands for another command on another worker of the queue. */
static enum status check_others(const struct map *m, const struct admin_rows *rows, int chosen,
                                struct err *err)
{
    const char *name = admin_value(rows, chosen, COMMAND_NAME);
    for (int i = 0; i < admin_row_count(rows); i++) {
        json_auto_t *other = json_loads(admin_value(rows, i, COMMAND_TEMPLATE), 0, NULL);
        if (is_here(rows, i) && strcmp(admin_value(rows, i, COMMAND_NAME), name) == 0 &&
            json_equal(other, m->command) == 0) {
            return err_fail(err, STATUS_CONFLICT, "command %s on %s differs from that on %s: %s",
                            name, admin_value(rows, i, COMMAND_HOST),
                            admin_value(rows, chosen, COMMAND_HOST),
                            admin_value(rows, i, COMMAND_TEMPLATE));
        }
    }
    return STATUS_OK;
}

enum status map_find_command(struct map *m, char *const *words, size_t count, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    m->command = list_of(words, count);
    if (m->command == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    enum status st =
        admin_query(m->admin, &SQL_ADMIN_MAP_COMMANDS, (const char *const[]){m->queue}, &rows, err);
    for (int i = 0; st == STATUS_OK && i < admin_row_count(rows); i++) {
        json_auto_t *template = json_loads(admin_value(rows, i, COMMAND_TEMPLATE), 0, NULL);
        if (is_here(rows, i) && json_equal(template, m->command) != 0) {
            (void)snprintf(m->kind, sizeof m->kind, JOB_COMMAND_PREFIX "%.64s",
                           admin_value(rows, i, COMMAND_NAME));
            return check_others(m, rows, i, err);
        }
    }
    if (st != STATUS_OK) {
        return st;
    }
    return refuse_command(m, rows, err);
}

/* ---- --dry-run ---- */

/* Returns the argv for a row as a JSON array; for a map without a command, the job's args. */
static enum status run_of(const struct map *m, const char *row, json_t **ret, struct err *err)
{
    struct command_words words = COMMAND_WORDS_INIT;
    const char *template[COMMAND_WORDS_MAX + 1] = {NULL};
    json_auto_t *args = json_loads(row, JSON_DECODE_ANY, NULL);
    if (m->command == NULL) {
        *ret = json_incref(args);
        return STATUS_OK;
    }
    for (size_t i = 0; i < json_array_size(m->command) && i < COMMAND_WORDS_MAX; i++) {
        template[i] = json_string_value(json_array_get(m->command, i));
    }
    enum status st = command_words_fill(&words, template, args, err);
    json_t *argv = json_array();
    for (size_t i = 0; st == STATUS_OK && i < words.count; i++) {
        (void)json_array_append_new(argv, json_string(buf_at(&words.bytes) + words.at[i]));
    }
    buf_release(&words.bytes);
    if (st != STATUS_OK) {
        json_decref(argv);
        return st;
    }
    *ret = argv;
    return STATUS_OK;
}

static enum status first_runs(struct map *m, json_t *list, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    bool is_last = false;
    enum status st = source_read(&m->source, NULL, &rows, &is_last, err);
    for (int i = 0; st == STATUS_OK && i < admin_row_count(rows) && i < DRY_ROWS; i++) {
        json_t *one = NULL;
        struct err why = {0};
        const char *key = admin_value(rows, i, SOURCE_KEY);
        st = run_of(m, admin_value(rows, i, SOURCE_ROW), &one, &why);
        if (st != STATUS_OK) {
            return err_fail(err, st, "row %s: %s", key, why.msg);
        }
        (void)json_array_append_new(list, one);
    }
    return st;
}

enum status map_print_dry(struct map *m, struct err *err)
{
    char count[24];
    FILE *out = m->ctl->out;
    json_auto_t *list = json_array();
    enum status st = first_runs(m, list, err);
    if (st == STATUS_OK) {
        st = source_count(&m->source, count, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    if (m->ctl->is_json) {
        autofree char *runs = json_dumps(list, JSON_COMPACT);
        (void)fprintf(
            out, "{\"map\": {\"name\": \"%s\", \"kind\": \"%s\", \"rows\": %s, \"first\": %s}}\n",
            m->name, m->kind, count, runs == NULL ? "[]" : runs);
        return STATUS_OK;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        autofree char *one = json_dumps(json_array_get(list, i), JSON_COMPACT | JSON_ENCODE_ANY);
        (void)fprintf(out, "%s\n", one == NULL ? "" : one);
    }
    (void)fprintf(out, "map %s: %s rows\n", m->name, count);
    return STATUS_OK;
}
