/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the results of a map as JSON lines, or writes them to a table of the caller's, with the
 * caller's rights. */
#include "ctl/commands/map/map.h"
#include "sql/queries.h"

#include <stdio.h>

/* ---- a table ---- */

#define TABLE_NAME_MAX 256

struct into {
    char table[TABLE_NAME_MAX]; /* quoted and with its schema, for use in SQL */
    char key_type[TABLE_NAME_MAX];
};

static void name_option(const struct map *m, char ret_what[TABLE_NAME_MAX])
{
    (void)snprintf(ret_what, TABLE_NAME_MAX, "--into %s", m->into);
}

/* Looks the table up by the caller's search_path, and the type of its column `key`. */
static enum status find_table(struct map *m, struct into *ret, struct err *err)
{
    static const unsigned types[] = {PG_TEXT};
    static const struct pg_statement statement = {
        .name = "",
        .sql = "SELECT format('%I.%I', n.nspname, c.relname), format_type(a.atttypid, a.atttypmod)"
               "  FROM pg_catalog.pg_class c"
               "  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
               "  LEFT JOIN pg_catalog.pg_attribute a"
               "         ON a.attrelid = c.oid AND a.attname = 'key' AND NOT a.attisdropped"
               " WHERE c.oid = to_regclass($1)",
        .types = types,
        .type_count = 1};
    auto_admin_rows struct admin_rows *rows = NULL;
    char what[TABLE_NAME_MAX];
    name_option(m, what);
    enum status st = source_ask(m->admin, &statement, &m->into, what, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (admin_row_count(rows) == 0) {
        return err_fail(err, STATUS_INVALID, "--into: there is no table %s", m->into);
    }
    const char *type = admin_value(rows, 0, 1);
    if (type == NULL) {
        return err_fail(err, STATUS_INVALID,
                        "--into %s: it has no column key; needed: key, with a unique index, state "
                        "text, result jsonb, error text, ended_at timestamptz",
                        m->into);
    }
    (void)snprintf(ret->table, sizeof ret->table, "%s", admin_value(rows, 0, 0));
    (void)snprintf(ret->key_type, sizeof ret->key_type, "%s", type);
    return STATUS_OK;
}

/* Writes a statement that copies the next results of the map $1 after the key $2 to the table and
 * returns their last key. Rows of the table that have the newest result are not written again. */
static void put_upsert(struct text *out, const struct into *i)
{
    text_put(out,
             "WITH next AS MATERIALIZED (SELECT d.* FROM claimd.map_done d WHERE d.map_id = $1 AND "
             "($2 IS NULL OR d.key > $2) ORDER BY d.key LIMIT %d), put AS (INSERT INTO %s AS t "
             "(key, state, result, error, ended_at) SELECT n.key::%s, n.state, n.result, n.error, "
             "n.ended_at FROM next n ON CONFLICT (key) DO UPDATE SET state = excluded.state, "
             "result = excluded.result, error = excluded.error, ended_at = excluded.ended_at "
             "WHERE t.ended_at IS DISTINCT FROM excluded.ended_at) SELECT max(n.key) FROM next n",
             SOURCE_CHUNK, i->table, i->key_type);
}

static enum status upsert(struct map *m, const char *sql, const char *behind, bool is_tried,
                          struct admin_rows **ret, struct err *err)
{
    static const unsigned types[] = {PG_INT8, PG_TEXT};
    const struct pg_statement statement = {.name = "", .sql = sql, .types = types, .type_count = 2};
    const char *const params[] = {is_tried ? "0" : m->id, behind};
    struct err why = {0};
    enum status st = admin_query(m->admin, &statement, params, ret, &why);
    if (st != STATUS_OK) {
        char what[TABLE_NAME_MAX];
        name_option(m, what);
        return source_refuse(st, what, &why, err);
    }
    return STATUS_OK;
}

/* Explains the statement, which checks the columns, their types, the unique index and the caller's
 * rights. */
enum status map_check_into(struct map *m, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    autotext struct text sql = TEXT_INIT(8192);
    struct into into;
    enum status st = find_table(m, &into, err);
    if (st != STATUS_OK) {
        return st;
    }
    text_put(&sql, "EXPLAIN ");
    put_upsert(&sql, &into);
    st = text_end(&sql, err);
    if (st != STATUS_OK) {
        return st;
    }
    return upsert(m, text_str(&sql), NULL, true, &rows, err);
}

enum status map_put_into(struct map *m, struct err *err)
{
    autotext struct text sql = TEXT_INIT(8192);
    autofree char *behind = NULL;
    struct into into;
    enum status st = find_table(m, &into, err);
    if (st != STATUS_OK) {
        return st;
    }
    put_upsert(&sql, &into);
    st = text_end(&sql, err);
    while (st == STATUS_OK) {
        auto_admin_rows struct admin_rows *rows = NULL;
        st = upsert(m, text_str(&sql), behind, false, &rows, err);
        const char *last = st == STATUS_OK ? admin_value(rows, 0, 0) : NULL;
        if (last == NULL) {
            break;
        }
        st = map_keep_key(&behind, last, err);
    }
    return st;
}

/* ---- JSON lines ---- */

/* Prints one JSON object per line; with --json, all of them as one document. */
static enum status print_lines(struct map *m, struct err *err)
{
    enum { LINE_KEY, LINE_JSON };
    autofree char *behind = NULL;
    FILE *out = m->ctl->out;
    (void)fputs(m->ctl->is_json ? "{\"results\": [" : "", out);
    for (;;) {
        auto_admin_rows struct admin_rows *rows = NULL;
        enum status st = map_ask(m, &SQL_ADMIN_MAP_RESULTS, behind, &rows, err);
        int count = st == STATUS_OK ? admin_row_count(rows) : 0;
        for (int i = 0; i < count; i++) {
            bool is_next = m->ctl->is_json && (behind != NULL || i > 0);
            (void)fprintf(out, "%s%s%s", is_next ? ",\n" : "", admin_value(rows, i, LINE_JSON),
                          m->ctl->is_json ? "" : "\n");
        }
        if (count == 0) {
            (void)fputs(m->ctl->is_json ? "]}\n" : "", out);
            return st;
        }
        st = map_keep_key(&behind, admin_value(rows, count - 1, LINE_KEY), err);
        if (st != STATUS_OK) {
            return st;
        }
    }
}

enum status map_results(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_map struct map *m = NULL;
    enum status st = map_open(ctl, args, &m, err);
    if (st != STATUS_OK) {
        return st;
    }
    admin_set_timeout(m->admin, MAP_QUERY_US);
    m->into = ctl_value(args, "into");
    return m->into == NULL ? print_lines(m, err) : map_put_into(m, err);
}
