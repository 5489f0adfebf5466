/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs: what operators can ask of PostgreSQL, as data. A verb is a statement of
 * sql/queries/admin_*.sql whose header says more than its types (docs/howto.md, recipe 4):
 *
 *   -- params: name text queue, weight int4 1..100 or none    names, types and forms of $1, $2, …
 *   -- shows: queue text, paused bool wide                     the columns of its result
 *   -- tables: record key = keys, jobs                         what to show, in order, each under
 *   -- then: record queue = queue_limits                       its name in JSON: rows of this or of
 *                                                              another verb; `then`: those of
 * others alone, read after it
 *   -- none: queue {name} not found                            NOT_FOUND when the first has no row
 *   -- says: batch {batch}: {jobs} open jobs                   for people, in place of tables
 *   -- method: POST                                            it changes something
 *   -- preview: {rows} workers will be asked to {what}.        the question before it does, of what
 *                                                              it gives with the parameter dry_run
 *
 * The generated "verbs/list.h" has `const struct verb VERB_QUEUES` of admin_queues.sql. Statuses
 * are those of store/admin.h, and INVALID for a value that has not its parameter's form. */
#ifndef CLAIMD_VERBS_VERB_H
#define CLAIMD_VERBS_VERB_H

#include "verbs/table.h"

#define VERB_PARAMS_MAX 26
#define VERB_TABLES_MAX 6
#define VERB_ROOM 48

enum param_form {
    PARAM_TEXT,
    PARAM_FLAG,     /* "t" or "f"; "" is "t": an option without a value */
    PARAM_QUEUE,    /* the name of one */
    PARAM_KIND,     /* likewise */
    PARAM_NUMBER,   /* min to max */
    PARAM_CHOICE,   /* one of `choices` */
    PARAM_RATE,     /* "50/m" */
    PARAM_DAYS,     /* "7d"; "none" for 0 days, which only some may have: PostgreSQL says so */
    PARAM_DURATION, /* "90s", of 1ms to `most`; as microseconds */
    PARAM_BACKOFF
};

struct verb_param {
    const char *name;
    enum param_form form;
    int64_t min;
    int64_t max;
    const char *choices;  /* "on|off" */
    const char *most;     /* "366d" */
    const char *other;    /* a word that is allowed besides: "none" … */
    bool is_other_passed; /* … which the statement gets as it is, else NULL */
};

struct verb;

struct verb_table {
    const char *name; /* its key in JSON */
    const struct verb *verb;
    bool is_record; /* one row, an object */
};

struct verb {
    const struct pg_statement *statement;
    const struct verb_param *params; /* as many as the statement has */
    size_t param_count;
    const struct table_column *columns;
    size_t column_count;
    const struct verb_table *tables;
    size_t table_count;
    const char *none;    /* NULL: no row is fine */
    const char *says;    /* NULL: its tables */
    const char *preview; /* NULL: nothing is asked */
    const char *method;  /* NULL: it only reads */
};

/* A call: the verb and its parameters' values. Borrows the texts it was given. */
struct verb_call {
    const struct verb *verb;
    const char *params[VERB_PARAMS_MAX];
    char rooms[VERB_PARAMS_MAX][VERB_ROOM]; /* of those that are not passed as they are */
};

/* Sets one parameter; NULL: not given. `label` is what a refusal calls it: "--weight". */
enum status verb_set(struct verb_call *call, const char *name, const char *label, const char *text,
                     struct err *err) MUST_USE;

/* The same without a check, where the verb has a parameter of that name. */
void verb_put(struct verb_call *call, const char *name, const char *text);

/* "50/m": PARAM_RATE. */
bool verb_rate_is_valid(const char *text);

/* What it shows. */
struct answer {
    struct table tables[VERB_TABLES_MAX];
    size_t count;
    char says[200]; /* empty: show the tables */
};

#define auto_answer CLEANUP(answer_release)
void answer_release(struct answer *answer);

/* Runs it. NOT_FOUND: `none` says what. UNKNOWN: the connection was lost while it changed
 * something. */
enum status verb_run(const struct verb_call *call, struct admin *a, struct answer *ret,
                     struct err *err) MUST_USE;
/* The question before it; empty: it concerns one thing at most. */
enum status verb_preview(const struct verb_call *call, struct admin *a, char *ret_text, size_t size,
                         struct err *err) MUST_USE;

/* The rows of one verb, in its columns; `params` are those of its statement. */
enum status verb_fill(const struct verb *verb, struct admin *a, const char *const *params,
                      struct table *ret, struct err *err) MUST_USE;

/* PostgreSQL's clock, in microseconds since 1970. */
enum status verb_now(struct admin *a, int64_t *ret_us, struct err *err) MUST_USE;

/* After a statement that writes: a connection that failed before the answer came leaves the outcome
 * UNKNOWN, and err says so; any other status stays. */
enum status verb_written(enum status st, struct err *err) MUST_USE;

#endif
