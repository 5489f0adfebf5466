/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that are the same for all: of verbs without parameters, of doctor, and of the lock
 * nodes. */
#include "ctl/commands/doctor/doctor.h"
#include "sql/queries.h"
#include "web/api.h"

enum status web_make_doctor(struct web *w, const struct web_route *route, struct text *out,
                            struct err *err)
{
    struct report report = REPORT;
    const struct table *const tables[] = {&report.table};
    (void)route;
    report.is_frequent = true;
    doctor_servers(&report, w->config);
    tables_put_json(tables, 1, out);
    table_release(&report.table);
    return report.is_full ? err_fail(err, STATUS_NOMEM, "out of memory: lines are missing")
                          : STATUS_OK;
}

static enum status read_t_max(struct web *w, int64_t *ret_us, struct err *err)
{
    struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = backends_take(w->backends, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_query(a, &SQL_ADMIN_LOCK_NODES, NULL, &rows, err);
    backends_give(w->backends, a, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret_us = doctor_number(rows, 0, 2);
    return STATUS_OK;
}

/* Without PostgreSQL, the nodes are judged by the lease of the configuration. */
enum status web_make_nodes(struct web *w, const struct web_route *route, struct text *out,
                           struct err *err)
{
    int64_t t_max_us = 0;
    struct err why = {0};
    auto_table struct table t = TABLE("lock_nodes", lock_node_columns);
    const struct table *const tables[] = {&t};
    (void)route;
    (void)!read_t_max(w, &t_max_us, &why);
    enum status st = doctor_lock_nodes(&t, w->config, t_max_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    tables_put_json(tables, 1, out);
    return text_end(out, err);
}

static enum status make_verb(struct web *w, const struct verb *verb, struct text *out,
                             struct err *err)
{
    struct admin *a = NULL;
    const struct verb_call call = {.verb = verb};
    auto_answer struct answer answer = {.count = 0};
    const struct table *tables[VERB_TABLES_MAX];
    enum status st = backends_take(w->backends, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verb_run(&call, a, &answer, err);
    backends_give(w->backends, a, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < answer.count; i++) {
        tables[i] = &answer.tables[i];
    }
    tables_put_json(tables, answer.count, out);
    return text_end(out, err);
}

enum status web_make_verb(struct web *w, const struct web_route *route, struct text *out,
                          struct err *err)
{
    enum status st = make_verb(w, route->verb, out, err);
    if (st == STATUS_UNAVAILABLE) { /* the session may have ended while it was idle */
        *err = (struct err){0};
        st = make_verb(w, route->verb, out, err);
    }
    return st;
}

enum status web_make_shared(void *ctx, const void *key, struct text *out, struct err *err)
{
    const struct web_route *route = key;
    return route->make(ctx, route, out, err);
}
