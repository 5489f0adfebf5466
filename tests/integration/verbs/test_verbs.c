/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs: the header of each matches its statement in PostgreSQL, and bad values are refused before
 * the server is asked. */
#include "base/text.h"
#include "support/pg_fixture.h"
#include "verbs/list.h"

#include <libpq-fe.h>

static PGconn *conn;

static void setup(void)
{
    world_setup();
    conn = PQconnectdb(world.conninfo);
    ck_assert_int_eq(PQstatus(conn), CONNECTION_OK);
}

static void teardown(void)
{
    PQfinish(conn);
    world_teardown();
}

/* Returns the server's description of a prepared statement; the caller clears it. */
static PGresult *describe(const struct pg_statement *s)
{
    PGresult *r = PQprepare(conn, "p", s->sql, s->type_count, s->types);
    ck_assert_msg(PQresultStatus(r) == PGRES_COMMAND_OK, "%s: %s", s->name, PQerrorMessage(conn));
    PQclear(r);
    r = PQdescribePrepared(conn, "p");
    ck_assert_msg(PQresultStatus(r) == PGRES_COMMAND_OK, "%s: %s", s->name, PQerrorMessage(conn));
    PQclear(PQexec(conn, "DEALLOCATE p"));
    return r;
}

START_TEST(each_header_names_the_columns_of_its_statement)
{
    for (const struct verb *const *at = verb_list; *at != NULL; at++) {
        const struct verb *v = *at;
        PGresult *r = describe(v->statement);
        ck_assert_msg(PQnparams(r) == (int)v->param_count,
                      "%s: %d parameters, the header names %zu", v->statement->name, PQnparams(r),
                      v->param_count);
        for (size_t i = 0; i < v->column_count; i++) {
            ck_assert_msg(PQfnumber(r, v->columns[i].name) >= 0, "%s: gives no column %s",
                          v->statement->name, v->columns[i].name);
        }
        ck_assert_msg(v->column_count == 0 || PQnfields(r) == (int)v->column_count,
                      "%s: %d columns, the header names %zu", v->statement->name, PQnfields(r),
                      v->column_count);
        PQclear(r);
    }
}
END_TEST

/* The type of a column decides how it is shown: numbers and JSON go into JSON without quotes. */
START_TEST(each_header_gives_its_columns_a_form_that_fits)
{
    for (const struct verb *const *at = verb_list; *at != NULL; at++) {
        const struct verb *v = *at;
        PGresult *r = describe(v->statement);
        for (size_t i = 0; i < v->column_count; i++) {
            int type = v->columns[i].type & CELL_TYPE_MASK;
            unsigned oid = PQftype(r, PQfnumber(r, v->columns[i].name));
            bool is_text = oid == PG_TEXT || oid == 1043 || oid == PG_UUID;
            bool fits = type == CELL_BOOL   ? oid == PG_BOOL
                        : type == CELL_JSON ? oid == PG_JSONB || oid == 114
                        : type == CELL_NUMBER || type == CELL_SECONDS
                            ? !is_text && oid != PG_BOOL && oid != PG_JSONB
                            : is_text || type == CELL_COUNT;
            ck_assert_msg(fits, "%s: column %s has the type %u", v->statement->name,
                          v->columns[i].name, oid);
        }
        PQclear(r);
    }
}
END_TEST

/* EXPLAIN checks the rights on tables and functions, and runs nothing. */
START_TEST(each_statement_is_granted_to_operators)
{
    static const char *const nulls[VERB_PARAMS_MAX];
    PQclear(PQexec(conn, "SET ROLE claimd_admin"));
    for (const struct verb *const *at = verb_list; *at != NULL; at++) {
        const struct pg_statement *s = (*at)->statement;
        autotext struct text sql = TEXT_INIT(1 << 20);
        text_put(&sql, "EXPLAIN %s", s->sql);
        PGresult *r =
            PQexecParams(conn, text_str(&sql), s->type_count, s->types, nulls, NULL, NULL, 0);
        ck_assert_msg(PQresultStatus(r) == PGRES_TUPLES_OK, "%s: %s", s->name,
                      PQerrorMessage(conn));
        PQclear(r);
    }
}
END_TEST

static const struct {
    const struct verb *verb;
    const char *param;
    const char *text;
    const char *value; /* value of the parameter; NULL: NULL */
    const char *says;  /* a part of the refusal; NULL: none */
} values[] = {
    {&VERB_QUEUE_WEIGHT, "weight", "100", "100", NULL},
    {&VERB_QUEUE_WEIGHT, "weight", "none", NULL, NULL},
    {&VERB_QUEUE_WEIGHT, "weight", "101", NULL, "--weight '101': must be 1 to 100, or none"},
    {&VERB_QUEUE_WEIGHT, "weight", "", NULL, "must be 1 to 100"},
    {&VERB_QUEUE_WEIGHT, "name", "Bad", NULL, "queue"},
    {&VERB_QUEUE_LIMIT, "running", "none", "none", NULL},
    {&VERB_QUEUE_LIMIT, "rate", "50/m", "50/m", NULL},
    {&VERB_QUEUE_LIMIT, "rate", "50/w", NULL, "1 to 100000, then /s, /m, /h or /d, or none"},
    {&VERB_QUEUE_RETAIN, "keep", "7d", "7 days", NULL},
    {&VERB_QUEUE_RETAIN, "keep", "default", "default", NULL},
    {&VERB_QUEUE_RETAIN, "keep", "3651d", NULL, "must be whole days, 1d to 3650d, or default"},
    {&VERB_QUEUE_RETAIN, "state", "open", NULL, "must be completed, discarded or cancelled"},
    {&VERB_KIND_SET, "timeout", "90s", "90000000 microseconds", NULL},
    {&VERB_KIND_SET, "timeout", "367d", NULL, "is not allowed; allowed: 1ms to 366d, or default"},
    {&VERB_KIND_SET, "backoff", "fixed:30s", "fixed:30s", NULL},
    {&VERB_KIND_SET, "backoff", "soon", NULL, "allowed: default, or"},
    {&VERB_WORKERS, "all", "", "t", NULL},
    {&VERB_BATCHES, "batch", "0", NULL, "must be 1 to"},
};

START_TEST(a_value_has_its_parameters_form_or_is_refused)
{
    struct verb_call call = {.verb = values[_i].verb};
    struct err err = {0};
    char label[32];
    (void)snprintf(label, sizeof label, "--%s", values[_i].param);
    enum status st = verb_set(&call, values[_i].param, label, values[_i].text, &err);
    if (values[_i].says != NULL) {
        ck_assert_int_eq(st, STATUS_INVALID);
        ck_assert_msg(strstr(err.msg, values[_i].says) != NULL, "%s", err.msg);
        return;
    }
    size_t place = 0;
    while (strcmp(call.verb->params[place].name, values[_i].param) != 0) {
        place++;
    }
    ck_assert_int_eq(st, STATUS_OK);
    ck_assert_pstr_eq(call.params[place], values[_i].value);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verbs");
    TCase *server = tcase_create("server");
    TCase *pure = tcase_create("pure");
    tcase_add_checked_fixture(server, setup, teardown);
    tcase_add_test(server, each_header_names_the_columns_of_its_statement);
    tcase_add_test(server, each_header_gives_its_columns_a_form_that_fits);
    tcase_add_test(server, each_statement_is_granted_to_operators);
    tcase_add_loop_test(pure, a_value_has_its_parameters_form_or_is_refused, 0,
                        (int)ARRAY_COUNT(values));
    suite_add_tcase(suite, server);
    suite_add_tcase(suite, pure);
    return world_run(suite);
}
