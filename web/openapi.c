/* SPDX-License-Identifier: Apache-2.0
 *
 * openapi.json, made from the table of routes and from the verbs that it names. */
#include "base/build.h"
#include "web/api.h"

#include <ctype.h>
#include <stdio.h>

#define NAME_MAX_LEN 96

static json_t *typed(const char *type)
{
    return json_pack("{s:s}", "type", type);
}

static json_t *nullable(const char *type)
{
    return json_pack("{s:[s,s]}", "type", type, "null");
}

/* ---- answers ---- */

static json_t *schema_of_cell(int type)
{
    switch (type & CELL_TYPE_MASK) {
    case CELL_BOOL:
        return nullable("boolean");
    case CELL_JSON:
        return json_object();
    case CELL_NUMBER:
    case CELL_SECONDS:
    case CELL_COUNT:
        return nullable("number");
    default:
        return nullable("string");
    }
}

static json_t *schema_of_row(const struct table_column *columns, size_t count, bool is_partial)
{
    json_t *properties = json_object();
    json_t *required = json_array();
    for (size_t i = 0; i < count; i++) {
        (void)json_object_set_new(properties, columns[i].name, schema_of_cell(columns[i].type));
        if (!is_partial) {
            (void)json_array_append_new(required, json_string(columns[i].name));
        }
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required",
                     required, "additionalProperties", 0);
}

static void add_table(json_t *properties, json_t *required, const struct web_shape *t)
{
    json_t *row = schema_of_row(t->columns, t->column_count, t->is_partial);
    json_t *schema = t->is_record ? row : json_pack("{s:s, s:o}", "type", "array", "items", row);
    (void)json_object_set_new(properties, t->name, schema);
    if (!t->is_optional) {
        (void)json_array_append_new(required, json_string(t->name));
    }
}

static json_t *schema_of_answer(const struct web_route *route)
{
    json_t *properties = json_object();
    json_t *required = json_array();
    const struct verb *verb = route->verb;
    bool is_of_verb = verb != NULL && (route->shape_count == 0 || verb == &VERB_AUDIT);
    for (size_t i = 0; is_of_verb && i < verb->table_count; i++) {
        const struct verb_table *t = &verb->tables[i];
        const struct web_shape shape = {
            t->name, t->verb->columns, t->verb->column_count, t->is_record, false, false};
        add_table(properties, required, &shape);
    }
    for (size_t i = 0; i < route->shape_count; i++) {
        add_table(properties, required, &route->shapes[i]);
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required",
                     required, "additionalProperties", 0);
}

static void add_error(json_t *responses, unsigned status)
{
    char code[8];
    (void)snprintf(code, sizeof code, "%u", status);
    (void)json_object_set_new(responses, code,
                              json_pack("{s:s}", "$ref", "#/components/responses/error"));
}

static json_t *responses_of(const struct web_route *route)
{
    static const unsigned of_all[] = {400, 404, 405, 421, 500, 503, 504};
    static const unsigned of_writes[] = {403, 413, 415};
    static const unsigned of_acts[] = {409};
    static const unsigned of_edits[] = {412, 428};
    json_t *responses = json_object();
    const char *type =
        strstr(route->path, "/events") != NULL ? "text/event-stream" : "application/json";
    json_t *schema = route->is_unlisted ? json_object() : schema_of_answer(route);
    (void)json_object_set_new(
        responses, "200",
        json_pack("{s:s, s:{s:{s:o}}}", "description", "done", "content", type, "schema", schema));
    bool is_write = strcmp(route->method, "GET") != 0;
    for (size_t i = 0; i < ARRAY_COUNT(of_all); i++) {
        add_error(responses, of_all[i]);
    }
    for (size_t i = 0; is_write && i < ARRAY_COUNT(of_writes); i++) {
        add_error(responses, of_writes[i]);
    }
    for (size_t i = 0; is_write && route->role != WEB_NOBODY && i < ARRAY_COUNT(of_acts); i++) {
        add_error(responses, of_acts[i]);
    }
    for (size_t i = 0; route->run == web_job_edit && i < ARRAY_COUNT(of_edits); i++) {
        add_error(responses, of_edits[i]);
    }
    if (route->takes_key) {
        add_error(responses, 422);
    }
    if (route->role != WEB_NOBODY || route->run == web_login) {
        add_error(responses, 401);
    }
    if (route->role == WEB_OPERATOR || route->run == web_jobs_list) {
        add_error(responses, 403);
    }
    if (route->run == web_login) {
        add_error(responses, 429);
    }
    return responses;
}

/* ---- parameters ---- */

static json_t *schema_of_field(const struct web_field *f, bool is_query)
{
    if (strcmp(f->type, "list") == 0) {
        return json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "string");
    }
    (void)is_query;
    return typed(f->type);
}

static json_t *schema_of_param(const struct verb *verb, size_t i)
{
    const struct verb_param *p = &verb->params[i];
    unsigned type = verb->statement->types[i];
    if (strcmp(p->name, "args") == 0 || strcmp(p->name, "metadata") == 0) {
        return json_object();
    }
    if (type == PG_TEXT_ARRAY || type == PG_INT8_ARRAY) {
        return json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type",
                         type == PG_TEXT_ARRAY ? "string" : "integer");
    }
    if (type == PG_BOOL) {
        return typed("boolean");
    }
    if (type == PG_INT4 || type == PG_INT8) {
        return p->other != NULL ? json_pack("{s:[s,s]}", "type", "integer", "string")
                                : typed("integer");
    }
    return p->form == PARAM_NUMBER ? json_pack("{s:[s,s]}", "type", "integer", "string")
                                   : typed("string");
}

static bool is_in_path(const struct web_route *route, const char *name)
{
    char text[NAME_MAX_LEN];
    (void)snprintf(text, sizeof text, "{%s}", name);
    return strstr(route->path, text) != NULL;
}

static bool is_asked(const struct web_route *route, const char *name)
{
    const char *hidden = route->not_asked == NULL ? "" : route->not_asked;
    const char *at = strstr(hidden, name);
    size_t len = strlen(name);
    bool is_hidden =
        at != NULL && (at == hidden || at[-1] == ',') && (at[len] == ',' || at[len] == '\0');
    bool is_fixed = route->fixed.param != NULL && strcmp(route->fixed.param, name) == 0;
    return !is_hidden && !is_fixed && !is_in_path(route, name);
}

static void add_path_params(json_t *list, const struct web_route *route)
{
    for (const char *at = strchr(route->path, '{'); at != NULL; at = strchr(at + 1, '{')) {
        char name[NAME_MAX_LEN];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 1, "}"), at + 1);
        bool is_id = strcmp(name, "id") == 0 || strcmp(name, "batch") == 0;
        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:o}", "name", name, "in",
                                                    "path", "required", 1, "schema",
                                                    typed(is_id ? "integer" : "string")));
    }
}

static void add_query_params(json_t *list, const struct web_route *route)
{
    for (size_t i = 0; i < route->field_count; i++) {
        const struct web_field *f = &route->fields[i];
        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o}", "name", f->name, "in",
                                                    "query", "description", f->what, "schema",
                                                    schema_of_field(f, true)));
    }
    for (size_t i = 0; route->verb != NULL && i < route->verb->param_count; i++) {
        const char *name = route->verb->params[i].name;
        if (is_asked(route, name)) {
            (void)json_array_append_new(list,
                                        json_pack("{s:s, s:s, s:o}", "name", name, "in", "query",
                                                  "schema", schema_of_param(route->verb, i)));
        }
    }
}

static json_t *body_of(const struct web_route *route)
{
    json_t *properties = json_object();
    for (size_t i = 0; i < route->field_count; i++) {
        const struct web_field *f = &route->fields[i];
        json_t *schema = schema_of_field(f, false);
        (void)json_object_set_new(schema, "description", json_string(f->what));
        (void)json_object_set_new(properties, f->name, schema);
    }
    for (size_t i = 0; route->verb != NULL && i < route->verb->param_count; i++) {
        const char *name = route->verb->params[i].name;
        if (is_asked(route, name)) {
            (void)json_object_set_new(properties, name, schema_of_param(route->verb, i));
        }
    }
    return json_pack("{s:{s:{s:{s:s, s:o, s:b}}}}", "content", "application/json", "schema", "type",
                     "object", "properties", properties, "additionalProperties", 0);
}

/* ---- operations ---- */

static void put_id(const struct web_route *route, char ret[NAME_MAX_LEN])
{
    size_t n = 0;
    char all[NAME_MAX_LEN];
    (void)snprintf(all, sizeof all, "%s%s", route->method, route->path + strlen("/api/v1"));
    for (const char *c = all; *c != '\0' && n + 1 < NAME_MAX_LEN; c++) {
        if (isalnum((unsigned char)*c)) {
            ret[n++] = (char)tolower((unsigned char)*c);
        } else if (n > 0 && ret[n - 1] != '_' && c[1] != '\0') {
            ret[n++] = '_';
        }
    }
    ret[n] = '\0';
}

static void add_key_param(json_t *list)
{
    (void)json_array_append_new(
        list, json_pack("{s:s, s:s, s:s, s:{s:s, s:s}}", "name", "Idempotency-Key", "in", "header",
                        "description",
                        "makes a repetition harmless: for a day, the same request of the same "
                        "caller gets the answer of the first one, with Idempotency-Replayed: true",
                        "schema", "type", "string", "pattern", "^[!-~]{1,200}$"));
}

static json_t *operation_of(const struct web_route *route)
{
    static const char *const roles[] = {"none", "reader", "operator"}; /* enum web_role */
    char id[NAME_MAX_LEN];
    json_t *params = json_array();
    bool is_read = strcmp(route->method, "GET") == 0;
    put_id(route, id);
    add_path_params(params, route);
    if (is_read) {
        add_query_params(params, route);
    }
    if (route->run == web_job_edit) {
        (void)json_array_append_new(params,
                                    json_pack("{s:s, s:s, s:b, s:o}", "name", "If-Match", "in",
                                              "header", "required", 1, "schema", typed("string")));
    }
    if (route->takes_key) {
        add_key_param(params);
    }
    json_t *operation =
        json_pack("{s:s, s:s, s:s, s:o, s:o}", "operationId", id, "summary", route->what, "x-role",
                  roles[route->role], "parameters", params, "responses", responses_of(route));
    if (!is_read) {
        (void)json_object_set_new(operation, "requestBody", body_of(route));
    }
    if (route->role == WEB_NOBODY) {
        (void)json_object_set_new(operation, "security", json_array());
    }
    return operation;
}

static json_t *paths(void)
{
    json_t *all = json_object();
    for (size_t i = 0; i < web_route_count; i++) {
        const struct web_route *route = &web_routes[i];
        char method[16];
        size_t n = 0;
        for (; route->method[n] != '\0' && n + 1 < sizeof method; n++) {
            method[n] = (char)tolower((unsigned char)route->method[n]);
        }
        method[n] = '\0';
        json_t *path = json_object_get(all, route->path);
        if (path == NULL) {
            path = json_object();
            (void)json_object_set_new(all, route->path, path);
        }
        (void)json_object_set_new(path, method, operation_of(route));
    }
    return all;
}

static json_t *components(void)
{
    json_t *codes = json_array();
    for (size_t i = 0; i < WEB_ERRORS; i++) {
        (void)json_array_append_new(codes, json_string(web_errors[i].code));
    }
    json_t *error =
        json_pack("{s:s, s:[s,s,s,s,s], s:b, s:{s:{s:o}, s:o, s:o, s:o, s:o}}", "type", "object",
                  "required", "code", "message", "hint", "exit", "sqlstate", "additionalProperties",
                  0, "properties", "code", "enum", codes, "message", typed("string"), "hint",
                  nullable("string"), "exit", typed("integer"), "sqlstate", nullable("string"));
    json_t *schema = json_pack("{s:s, s:[s], s:b, s:{s:o}}", "type", "object", "required", "error",
                               "additionalProperties", 0, "properties", "error", error);
    return json_pack("{s:{s:o}, s:{s:{s:s, s:{s:{s:{s:s}}}}}, s:{s:{s:s, s:s}, s:{s:s, s:s, s:s}}}",
                     "schemas", "error", schema, "responses", "error", "description",
                     "it was not done; exit is the exit code of claimctl for the same failure",
                     "content", "application/json", "schema", "$ref", "#/components/schemas/error",
                     "securitySchemes", "token", "type", "http", "scheme", "bearer", "session",
                     "type", "apiKey", "in", "cookie", "name", "claimd_session");
}

void web_openapi(struct web *w, const struct web_route *route, struct web_request *q,
                 struct web_reply *r)
{
    const char *prefix = w->config->web.path_prefix;
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    (void)route;
    (void)q;
    json_auto_t *root =
        json_pack("{s:s, s:{s:s, s:s, s:s}, s:[{s:s}], s:[{s:[]}, {s:[]}], s:o, s:o}", "openapi",
                  "3.1.0", "info", "title", "claimd", "version", CLAIMD_BUILD, "description",
                  "The verbs of claimctl by HTTP. Times are in UTC.", "servers", "url",
                  prefix[0] == '\0' ? "/" : prefix, "security", "token", "session", "paths",
                  paths(), "components", components());
    autofree char *json = root == NULL ? NULL : json_dumps(root, JSON_INDENT(1));
    if (json == NULL) {
        reply_error(r, WEB_INTERNAL, NULL, "out of memory");
        return;
    }
    text_put(&text, "%s\n", json);
    reply_json(r, &text);
}
