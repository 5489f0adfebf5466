/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs: the requests of operators to PostgreSQL, as data. A verb is a statement of
 * sql/queries/admin_*.sql with a header that declares more than its types (docs/howto.md, recipe
 * 4):
 *
 *   -- params: name text queue, weight int4 1..100 or none    names, types and forms of $1, $2, …
 *   -- shows: queue text, paused bool wide                     the columns of its result
 *   -- tables: record key = keys, jobs                         tables to show, in order, each under
 *   -- then: record queue = queue_limits                       its name in JSON: rows of this or of
 *                                                              another verb; `then`: only rows of
 *                                                              others, read after it
 *   -- none: queue {name} not found                            NOT_FOUND if the first has no row
 *   -- says: batch {batch}: {jobs} open jobs                   for people, in place of tables
 *   -- method: POST                                            it changes something
 *   -- preview: {rows} workers will be asked to {what}.        the question to ask first, made from
 *                                                              its result with dry_run
 *
 * The generated "verbs/list.h" has `const struct verb VERB_QUEUES` for admin_queues.sql. Statuses
 * are those of store/admin.h, and INVALID for a value that does not have the form of its
 * parameter. */
#ifndef CLAIMD_VERBS_VERB_H
#define CLAIMD_VERBS_VERB_H

#include "verbs/table.h"

#define VERB_PARAMS_MAX 26
#define VERB_TABLES_MAX 6
#define VERB_ROOM 48

enum param_form {
    PARAM_TEXT,
    PARAM_FLAG,     /* "t" or "f"; "" is "t": an option without a value */
    PARAM_QUEUE,    /* the name of a queue */
    PARAM_KIND,     /* the name of a kind */
    PARAM_NUMBER,   /* from min to max */
    PARAM_CHOICE,   /* one of `choices` */
    PARAM_RATE,     /* "50/m" */
    PARAM_DAYS,     /* "7d"; "none" = 0 days, which PostgreSQL refuses where it is not allowed */
    PARAM_DURATION, /* "90s", from 1ms to `most`; passed as microseconds */
    PARAM_BACKOFF
};

struct verb_param {
    const char *name;
    enum param_form form;
    int64_t min;
    int64_t max;
    const char *choices;  /* "on|off" */
    const char *most;     /* "366d" */
    const char *other;    /* a word that is also allowed: "none" … */
    bool is_other_passed; /* … which is passed to the statement unchanged, else as NULL */
};

struct verb;

struct verb_table {
    const char *name; /* its key in JSON */
    const struct verb *verb;
    bool is_record; /* one row, an object */
};

struct verb {
    const struct pg_statement *statement;
    const struct verb_param *params; /* one per parameter of the statement */
    size_t param_count;
    const struct table_column *columns;
    size_t column_count;
    const struct verb_table *tables;
    size_t table_count;
    const char *none;    /* NULL: no row is not an error */
    const char *says;    /* NULL: show the tables */
    const char *preview; /* NULL: no question is asked */
    const char *method;  /* NULL: it only reads */
};

/* A call: the verb and the values of its parameters. Borrows the strings. */
struct verb_call {
    const struct verb *verb;
    const char *params[VERB_PARAMS_MAX];
    char rooms[VERB_PARAMS_MAX][VERB_ROOM]; /* values that are not passed unchanged */
};

/* Sets one parameter; NULL: not given. A refusal calls it `label`, such as "--weight". */
enum status verb_set(struct verb_call *call, const char *name, const char *label, const char *text,
                     struct err *err) MUST_USE;

/* Sets a parameter without a check, if the verb has one of that name. */
void verb_put(struct verb_call *call, const char *name, const char *text);

/* True if the text has the form of PARAM_RATE: "50/m". */
bool verb_rate_is_valid(const char *text);

/* The result to show. */
struct answer {
    struct table tables[VERB_TABLES_MAX];
    size_t count;
    char says[200]; /* empty: show the tables */
};

#define auto_answer CLEANUP(answer_release)
void answer_release(struct answer *answer);

/* Runs the verb. NOT_FOUND: with the text of `none`. UNKNOWN: the connection was lost while it
 * changed something. */
enum status verb_run(const struct verb_call *call, struct admin *a, struct answer *ret,
                     struct err *err) MUST_USE;
/* Writes the question to ask before the verb runs; empty if it concerns one thing at most. */
enum status verb_preview(const struct verb_call *call, struct admin *a, char *ret_text, size_t size,
                         struct err *err) MUST_USE;

/* Reads the rows of one verb, in its columns; `params` are the parameters of its statement. */
enum status verb_fill(const struct verb *verb, struct admin *a, const char *const *params,
                      struct table *ret, struct err *err) MUST_USE;

/* Returns PostgreSQL's clock, in microseconds since 1970. */
enum status verb_now(struct admin *a, int64_t *ret_us, struct err *err) MUST_USE;

/* Call after a statement that writes. If the connection failed before the answer arrived, the
 * outcome is UNKNOWN, and err says so; any other status is returned unchanged. */
enum status verb_written(enum status st, struct err *err) MUST_USE;

#endif
