/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/map/source.h"

#include "runner/command_words.h"

#include <stdio.h>

#define CHUNK_BYTES ((size_t)16 << 20) /* of all rows; a single one may be longer */
#define ROW_BYTES_MAX 1048576
#define ROW "claimd_row" /* alias of the query, unlikely to be a column's name */

enum { READ_KEY, READ_ROW, READ_N, READ_TOTAL, READ_IS_TWICE };

/* ---- the caller's query ---- */

enum status source_refuse(enum status st, const char *what, const struct err *why, struct err *err)
{
    bool is_its_fault = st == STATUS_INTERNAL || st == STATUS_INVALID;
    return err_fail(err, is_its_fault ? STATUS_INVALID : st, "%s: %s", what, why->msg);
}

enum status source_ask(struct admin *admin, const struct pg_statement *statement,
                       const char *const *params, const char *what, struct admin_rows **ret,
                       struct err *err)
{
    struct err why = {0};
    enum status st = admin_exec(admin, "BEGIN READ ONLY; SET LOCAL search_path TO DEFAULT", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_query(admin, statement, params, ret, &why);
    if (st != STATUS_OK) {
        (void)!admin_exec(admin, "ROLLBACK", NULL);
        return source_refuse(st, what, &why, err);
    }
    st = admin_exec(admin, "COMMIT", err);
    if (st != STATUS_OK) {
        admin_rows_free(*ret);
        *ret = NULL;
    }
    return st;
}

/* Runs the text as a single statement: PostgreSQL refuses a query that contains a second one. */
static enum status ask(const struct source *s, const struct text *sql, const char *param,
                       struct admin_rows **ret, struct err *err)
{
    static const unsigned as_the_key[] = {0};
    enum status st = text_end(sql, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct pg_statement statement = {
        .name = "", .sql = text_str(sql), .types = as_the_key, .type_count = param == NULL ? 0 : 1};
    return source_ask(s->admin, &statement, &param, "--sql", ret, err);
}

static void put_key(struct text *out, const char *key)
{
    text_put(out, "\"");
    for (const char *c = key; *c != '\0'; c++) {
        text_put_bytes(out, "\"\"", *c == '"' ? 1 : 0);
        text_put_bytes(out, c, 1);
    }
    text_put(out, "\"");
}

/* The newline ends a comment in the query's last line. */
static void put_from(struct text *out, const struct source *s)
{
    text_put(out, " FROM (%s\n) AS " ROW, s->query);
}

/* ---- checks ---- */

static bool has_column(const struct admin_rows *rows, const char *name, size_t len)
{
    for (int i = 0; i < admin_column_count(rows); i++) {
        const char *column = admin_column_name(rows, i);
        if (strlen(column) == len && memcmp(column, name, len) == 0) {
            return true;
        }
    }
    return false;
}

static enum status refuse_column(const struct admin_rows *rows, const char *what, const char *name,
                                 size_t len, struct err *err)
{
    char columns[200] = "";
    size_t at = 0;
    for (int i = 0; i < admin_column_count(rows) && at < sizeof columns; i++) {
        int n = snprintf(columns + at, sizeof columns - at, "%s%s", i > 0 ? ", " : "",
                         admin_column_name(rows, i));
        at += n > 0 ? (size_t)n : 0;
    }
    return err_fail(err, STATUS_INVALID, "%s: the query has no column %.*s; it has: %s", what,
                    (int)len, name, columns);
}

static enum status check_word(const struct admin_rows *rows, const char *word, struct err *err)
{
    for (const char *at = word; *at != '\0';) {
        enum command_piece piece = COMMAND_OCTET;
        size_t name = 0;
        size_t size = command_piece(at, &piece, &name);
        bool is_arg = piece == COMMAND_ARG || piece == COMMAND_JSON;
        if (is_arg && !has_column(rows, at + 1, name)) {
            char what[80];
            (void)snprintf(what, sizeof what, "the command's %.*s", (int)(size < 60 ? size : 60),
                           at);
            return refuse_column(rows, what, at + 1, name, err);
        }
        at += size;
    }
    return STATUS_OK;
}

static enum status check_columns(struct source *s, const json_t *command, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    autotext struct text sql = TEXT_INIT(2 * SOURCE_QUERY_MAX);
    text_put(&sql, "SELECT *");
    put_from(&sql, s);
    text_put(&sql, " LIMIT 0");
    enum status st = ask(s, &sql, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (admin_column_count(rows) == 0) {
        return err_fail(err, STATUS_INVALID, "--sql: the query has no columns");
    }
    if (s->key == NULL) {
        (void)snprintf(s->key_room, sizeof s->key_room, "%s", admin_column_name(rows, 0));
        s->key = s->key_room;
    }
    if (!has_column(rows, s->key, strlen(s->key))) {
        return refuse_column(rows, "--key", s->key, strlen(s->key), err);
    }
    for (size_t i = 1; st == STATUS_OK && i < json_array_size(command); i++) {
        st = check_word(rows, json_string_value(json_array_get(command, i)), err);
    }
    return st;
}

static enum status refuse_twice(const struct source *s, const char *key, struct err *err)
{
    return err_fail(err, STATUS_INVALID, "--key: rows have the same %s: %.80s", s->key, key);
}

static enum status check_nulls(const struct source *s, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    autotext struct text sql = TEXT_INIT(2 * SOURCE_QUERY_MAX);
    text_put(&sql, "SELECT EXISTS (SELECT");
    put_from(&sql, s);
    text_put(&sql, " WHERE " ROW ".");
    put_key(&sql, s->key);
    text_put(&sql, " IS NULL)");
    enum status st = ask(s, &sql, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    return strcmp(admin_value(rows, 0, 0), "t") != 0
               ? STATUS_OK
               : err_fail(err, STATUS_INVALID, "--key: rows have NULL as %s", s->key);
}

/* Looks for two rows with the same key for a second, which suffices for a million rows or more.
 * Later ones are found while they are loaded (source_read()). */
static enum status check_twice(const struct source *s, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    autotext struct text sql = TEXT_INIT(2 * SOURCE_QUERY_MAX);
    struct err why = {0};
    text_put(&sql, "SELECT r.key::text FROM (SELECT " ROW ".");
    put_key(&sql, s->key);
    text_put(&sql, " AS key, lead(" ROW ".");
    put_key(&sql, s->key);
    text_put(&sql, ") OVER (ORDER BY " ROW ".");
    put_key(&sql, s->key);
    text_put(&sql, ") AS next");
    put_from(&sql, s);
    text_put(&sql, ") AS r WHERE r.key = r.next LIMIT 1");
    enum status st = admin_exec(s->admin, "SET statement_timeout = '1 s'", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ask(s, &sql, NULL, &rows, &why);
    enum status reset = admin_exec(s->admin, "RESET statement_timeout", err);
    if (reset != STATUS_OK) {
        return reset;
    }
    if (st == STATUS_TIMEOUT) {
        return STATUS_OK;
    }
    return st != STATUS_OK              ? err_fail(err, st, "%s", why.msg)
           : admin_row_count(rows) == 0 ? STATUS_OK
                                        : refuse_twice(s, admin_value(rows, 0, 0), err);
}

/* Refuses a query whose chunks can't be read by an index: each chunk would sort all rows, in
 * quadratic time overall. Sorting is disabled, for the chunks too, because the planner prefers it
 * for few rows, or by old statistics, even if there is an index. */
static enum status check_index(const struct source *s, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    autotext struct text sql = TEXT_INIT(2 * SOURCE_QUERY_MAX);
    text_put(&sql, "EXPLAIN SELECT *");
    put_from(&sql, s);
    text_put(&sql, " ORDER BY " ROW ".");
    put_key(&sql, s->key);
    text_put(&sql, " LIMIT %d", SOURCE_CHUNK);
    enum status st = admin_exec(s->admin, "SET enable_sort = off", err);
    if (st == STATUS_OK) {
        st = ask(s, &sql, NULL, &rows, err);
    }
    for (int i = 0; st == STATUS_OK && i < admin_row_count(rows); i++) {
        const char *line = admin_value(rows, i, 0);
        if (strstr(line, "Sort  (") != NULL) {
            st = err_fail(err, STATUS_INVALID,
                          "--key: no index leads from %s to %s in this query, so each chunk of "
                          "%d rows would sort all of them: make one, choose another key, or say "
                          "--slow",
                          s->key, s->key, SOURCE_CHUNK);
        }
    }
    return st;
}

/* ---- chunks ---- */

/* Writes the statement of a chunk: the first row, and as many more as fit into CHUNK_BYTES. Each
 * row has its number, the number of rows read, and whether the next row has the same key. */
static void put_chunk(struct text *out, const struct source *s, bool is_first)
{
    text_put(out,
             "SELECT c.key, CASE WHEN octet_length(c.row) <= %d THEN c.row ELSE "
             "'\"' || octet_length(c.row) || '\"' END, c.n, c.total, c.is_twice FROM ("
             "SELECT r.*, count(*) OVER () AS total, COALESCE(lead(r.key) OVER w = r.key, false) "
             "AS is_twice, sum(LEAST(octet_length(r.row), %d)) OVER w AS size FROM ("
             "SELECT " ROW ".",
             ROW_BYTES_MAX, ROW_BYTES_MAX);
    put_key(out, s->key);
    text_put(out,
             "::text AS key, to_jsonb(" ROW ")::text AS row, row_number() OVER (ORDER BY " ROW ".");
    put_key(out, s->key);
    text_put(out, ") AS n");
    put_from(out, s);
    if (!is_first) {
        text_put(out, " WHERE " ROW ".");
        put_key(out, s->key);
        text_put(out, " > $1");
    }
    text_put(out, " ORDER BY " ROW ".");
    put_key(out, s->key);
    text_put(out,
             " LIMIT %d) AS r WINDOW w AS (ORDER BY r.n)) AS c WHERE c.n <= %d AND (c.size <= %zu "
             "OR c.n = 1) ORDER BY c.n",
             SOURCE_CHUNK + 1, SOURCE_CHUNK, CHUNK_BYTES);
}

enum status source_open(struct source *s, const json_t *command, bool is_slow, struct err *err)
{
    s->first = (struct text)TEXT_INIT(4 * SOURCE_QUERY_MAX);
    s->next = (struct text)TEXT_INIT(4 * SOURCE_QUERY_MAX);
    enum status st = check_columns(s, command, err);
    if (st == STATUS_OK && !is_slow) {
        st = check_index(s, err);
    }
    if (st == STATUS_OK) {
        st = check_nulls(s, err);
    }
    if (st == STATUS_OK) {
        st = check_twice(s, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    put_chunk(&s->first, s, true);
    put_chunk(&s->next, s, false);
    st = text_end(&s->first, err);
    if (st != STATUS_OK) {
        return st;
    }
    return text_end(&s->next, err);
}

void source_release(struct source *s)
{
    text_release(&s->first);
    text_release(&s->next);
}

enum status source_count(const struct source *s, char ret_count[24], struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    autotext struct text sql = TEXT_INIT(2 * SOURCE_QUERY_MAX);
    text_put(&sql, "SELECT count(*)");
    put_from(&sql, s);
    enum status st = ask(s, &sql, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(ret_count, 24, "%s", admin_value(rows, 0, 0));
    return STATUS_OK;
}

enum status source_read(const struct source *s, const char *behind, struct admin_rows **ret,
                        bool *ret_is_last, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = ask(s, behind == NULL ? &s->first : &s->next, behind, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    int count = admin_row_count(rows);
    for (int i = 0; i < count; i++) {
        if (strcmp(admin_value(rows, i, READ_IS_TWICE), "t") == 0) {
            return refuse_twice(s, admin_value(rows, i, READ_KEY), err);
        }
    }
    *ret_is_last = count == 0 || strcmp(admin_value(rows, count - 1, READ_N),
                                        admin_value(rows, count - 1, READ_TOTAL)) == 0;
    *ret = TAKE(rows);
    return STATUS_OK;
}
