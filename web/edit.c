/* SPDX-License-Identifier: Apache-2.0
 *
 * The route that edits a job. */
#include "base/parse.h"
#include "web/jobs.h"

#include <stdio.h>

/* Reads the version from If-Match: "7". */
static bool read_version(const char *header, char ret[16])
{
    int64_t version = 0;
    size_t len = header == NULL ? 0 : strlen(header);
    if (len < 3 || len > 12 || header[0] != '"' || header[len - 1] != '"' ||
        parse_i64(header + 1, len - 2, 0, INT32_MAX, &version, NULL) != STATUS_OK) {
        return false;
    }
    (void)snprintf(ret, 16, "%lld", (long long)version);
    return true;
}

/* Tells a lost race from other conflicts: the version is not the one that was edited. */
static bool is_other_version(struct web *w, const struct web_request *q, const char *expected)
{
    struct err err = {0};
    struct admin *a = NULL;
    struct verb_call call = {.verb = &VERB_JOB_SHOW};
    auto_answer struct answer answer = {.count = 0};
    verb_put(&call, "id", request_in_path(q, "id"));
    if (backends_take(w->backends, &a, &err) != STATUS_OK) {
        return false;
    }
    enum status st = verb_run(&call, a, &answer, &err);
    backends_give(w->backends, a, &err);
    if (st != STATUS_OK || answer.tables[0].row_count == 0) {
        return false;
    }
    const char *found = table_value(&answer.tables[0], 0, "version");
    return found != NULL && strcmp(found, expected) != 0;
}

static void edit(struct web *w, const struct web_request *q, struct verb_call *call,
                 const char *version, struct web_reply *r)
{
    struct err err = {0};
    struct admin *a = NULL;
    auto_answer struct answer answer = {.count = 0};
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    enum status st = backends_take(w->backends, &a, &err);
    if (st == STATUS_OK) {
        st = verb_run(call, a, &answer, &err);
        backends_give(w->backends, a, &err);
    }
    if (st == STATUS_CONFLICT && is_other_version(w, q, version)) {
        reply_error(r, WEB_VERSION, "read it again", "job %s has changed since: %s",
                    request_in_path(q, "id"), err.msg);
        return;
    }
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    if (answer.tables[0].row_count == 0) {
        reply_error(r, WEB_NOT_FOUND, NULL, "job %s not found", request_in_path(q, "id"));
        return;
    }
    const struct table *const tables[] = {&answer.tables[0]};
    tables_put_json(tables, 1, &text);
    reply_json(r, &text);
}

void web_job_edit(struct web *w, const struct web_route *route, struct web_request *q,
                  struct web_reply *r)
{
    char version[16];
    char ids[32];
    int64_t id = 0;
    struct verb_call call;
    struct err err = {0};
    auto_web_texts struct web_texts texts = {.count = 0};
    const char *text = request_in_path(q, "id");
    if (q->heads.if_match == NULL) {
        reply_error(r, WEB_NO_VERSION, "GET the job: its ETag is the version",
                    "If-Match: is needed, with the version that was read");
        return;
    }
    if (!read_version(q->heads.if_match, version)) {
        reply_error(r, WEB_INVALID, NULL, "If-Match: must be a version in quotes, such as \"1\"");
        return;
    }
    enum status st = parse_i64(text, strlen(text), 1, INT64_MAX, &id, &err);
    if (st != STATUS_OK) {
        err_prefix(&err, "id");
    }
    if (st == STATUS_OK) {
        st = web_call(route, route->verb, q, &call, &texts, &err);
    }
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    if (json_object_size(q->json) == 0) {
        reply_error(r, WEB_INVALID, NULL, "body: names nothing to change");
        return;
    }
    (void)snprintf(ids, sizeof ids, "{%lld}", (long long)id);
    verb_put(&call, "ids", ids);
    verb_put(&call, "expect", version);
    verb_put(&call, "all", "f");
    edit(w, q, &call, version, r);
}
