/* SPDX-License-Identifier: Apache-2.0
 *
 * The API: a table of routes (web/routes.c), each a verb or a function. Who may do what, and what a
 * request must look like, is decided in one place, web_answer(), before a route runs. */
#ifndef CLAIMD_WEB_API_H
#define CLAIMD_WEB_API_H

#include "config/config.h"
#include "verbs/list.h"
#include "web/auth.h"
#include "web/backends.h"
#include "web/events.h"
#include "web/series.h"
#include "web/shared.h"

struct web {
    const struct config *config;
    struct auth *auth;
    struct backends *backends;
    struct shared *shared;
    struct events *events;
    struct series *series;
};

/* Answers a request. Called by the thread of its connection; blocks for as long as PostgreSQL
 * takes, with deadlines. */
void web_answer(struct web *w, struct web_request *q, struct web_reply *r);

/* A parameter in a query or body that no verb declares. */
struct web_field {
    const char *name;
    const char *type; /* of JSON Schema; "json" = any value, "list" = a text or an array of texts */
    const char *what;
};

/* A table of an answer that no verb declares. */
struct web_shape {
    const char *name;
    const struct table_column *columns;
    size_t column_count;
    bool is_record;
    bool is_optional; /* not in every answer */
    bool is_partial;  /* has some of the columns */
};

struct web_route;
typedef enum status web_make(struct web *w, const struct web_route *route, struct text *out,
                             struct err *err);
typedef void web_handler(struct web *w, const struct web_route *route, struct web_request *q,
                         struct web_reply *r);

struct web_route {
    const char *method;
    const char *path; /* below the prefix; {name} = a parameter */
    const char *what; /* for openapi.json */
    enum web_role role;
    const struct verb *verb; /* its parameters and tables, unless `fields` and `shapes` have them */
    struct {
        const char *param;
        const char *value;
    } fixed;               /* a parameter of the verb that the path decides */
    const char *not_asked; /* parameters of the verb that are none of the route: "ids,all" */
    web_handler *run;      /* NULL: runs the verb */
    const struct web_field *fields;
    size_t field_count;
    const struct web_shape *shapes;
    size_t shape_count;
    web_make *make;   /* one answer for all; NULL: each request has its own */
    bool takes_key;   /* an Idempotency-Key */
    bool is_unlisted; /* not JSON in and out: described by hand in openapi.json */
};

extern const struct web_route web_routes[];
extern const size_t web_route_count;
/* Returns the shared route of a verb, which must have one. */
const struct web_route *web_route_of(const struct verb *verb);

/* ---- for the functions of routes ---- */

/* True for names whose values readers don't see, unless web.show_args. */
bool web_is_private(const char *column);
bool web_shows_private(const struct web *w, const struct web_request *q);
/* Removes the private values from a table, if the caller may not see them. */
void web_hide(const struct web *w, const struct web_request *q, struct table *t);

/* Sets the parameters of a verb from the path, and from the query or body. INVALID: there is one
 * that the route does not have, or that has not the right form. `rooms` owns texts. */
struct web_texts {
    char *list[VERB_PARAMS_MAX + 2];
    size_t count;
};
#define auto_web_texts CLEANUP(web_texts_release)
void web_texts_release(struct web_texts *t);
enum status web_call(const struct web_route *route, const struct verb *verb,
                     const struct web_request *q, struct verb_call *ret, struct web_texts *texts,
                     struct err *err) MUST_USE;

/* Runs a call and makes its answer the reply. */
void web_run_call(struct web *w, const struct web_request *q, const struct verb_call *call,
                  struct web_reply *r);

/* Reads the last minute, and adds it to the series. */
enum status web_look_at_minute(struct web *w, struct err *err) MUST_USE;

/* Makes the answer of a route that has one for all: a shared_make. */
shared_make web_make_shared;
web_make web_make_verb, web_make_doctor, web_make_nodes;

/* Appends the values of a JSON array as an array literal of PostgreSQL. */
enum status web_put_array(const char *label, const json_t *array, struct text *out,
                          struct err *err) MUST_USE;

web_handler web_session, web_login, web_logout, web_openapi, web_events;
web_handler web_series, web_queue_show;
web_handler web_jobs_list, web_job_show, web_job_act, web_job_edit, web_enqueue, web_enqueue_many;
web_handler web_bulk, web_audit_list;

/* ---- audit.c ---- */

/* Records an act before it begins. If that fails, the act must not begin. */
enum status audit_begin(struct web *w, const struct web_request *q, int64_t *ret_id,
                        struct err *err) MUST_USE;
void audit_end(struct web *w, int64_t id, unsigned status);
/* Deletes old rows; a failure is logged. */
void audit_trim(struct web *w);

#endif
