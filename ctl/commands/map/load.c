/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a map in chunks. One transaction adds the jobs of a chunk and stores its last key, so
 * loading can be resumed after any chunk. */
#include "base/clock.h"
#include "ctl/commands/map/map.h"
#include "sql/queries.h"

#include <stdio.h>

#define ARRAY_BYTES_MAX ((size_t)64 << 20) /* keys or rows of a chunk, escaped */
#define FULL_REST_US US_PER_S

/* Writes a column as a PostgreSQL array literal. */
static void put_array(struct text *out, const struct admin_rows *rows, int column)
{
    text_put(out, "{");
    for (int i = 0; i < admin_row_count(rows); i++) {
        const char *value = admin_value(rows, i, column);
        text_put(out, i > 0 ? ",\"" : "\"");
        text_put_escaped(out, value, strlen(value), "\"\\");
        text_put(out, "\"");
    }
    text_put(out, "}");
}

/* While the queue is full (max_open, CL005), tries again every second until Ctrl-C. */
static enum status send_chunk(struct map *m, const char *keys, const char *rows, bool is_last,
                              struct err *err)
{
    const char *const params[] = {m->id, m->has_last_key ? m->last_key : NULL, keys, rows,
                                  is_last ? "t" : "f"};
    for (;;) {
        auto_admin_rows struct admin_rows *answer = NULL;
        struct err why = {0};
        enum status st = admin_query(m->admin, &SQL_ADMIN_MAP_LOAD, params, &answer, &why);
        if (strcmp(why.code, "CL005") == 0 && map_interrupted == 0) {
            ctl_rest(FULL_REST_US);
            continue;
        }
        if (st != STATUS_OK) {
            return err_fail(err, st, "%s", why.msg);
        }
        return STATUS_OK;
    }
}

static enum status load_chunk(struct map *m, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    autotext struct text keys = TEXT_INIT(ARRAY_BYTES_MAX);
    autotext struct text values = TEXT_INIT(ARRAY_BYTES_MAX);
    enum status st =
        source_read(&m->source, m->has_last_key ? m->last_key : NULL, &rows, &m->is_loaded, err);
    if (st != STATUS_OK) {
        return st;
    }
    put_array(&keys, rows, SOURCE_KEY);
    put_array(&values, rows, SOURCE_ROW);
    st = text_end(&keys, err) == STATUS_OK ? text_end(&values, err) : err->status;
    if (st == STATUS_OK) {
        st = send_chunk(m, text_str(&keys), text_str(&values), m->is_loaded, err);
    }
    int count = admin_row_count(rows);
    if (st == STATUS_OK && count > 0) {
        (void)snprintf(m->last_key, sizeof m->last_key, "%s",
                       admin_value(rows, count - 1, SOURCE_KEY));
        m->has_last_key = true;
    }
    return st;
}

enum status map_load(struct map *m, struct err *err)
{
    struct map_progress progress;
    enum status st = STATUS_OK;
    map_progress_start(&progress, m);
    while (st == STATUS_OK && !m->is_loaded && map_interrupted == 0) {
        bool is_over = false;
        st = load_chunk(m, err);
        if (st == STATUS_OK) {
            st = map_progress_show(&progress, m, false, &is_over, err);
        }
    }
    map_progress_end(&progress);
    if (st != STATUS_OK) {
        err_prefix(err, "map %s is loaded up to %s %.80s; to continue: claimctl map attach %s",
                   m->name, m->source.key, m->has_last_key ? m->last_key : "(nothing)", m->name);
        return st;
    }
    return m->is_loaded ? STATUS_OK
                        : err_fail(err, STATUS_INTERNAL,
                                   "map %s is loaded up to %s %.80s and runs; to continue: "
                                   "claimctl map attach %s",
                                   m->name, m->source.key, m->last_key, m->name);
}
