/* SPDX-License-Identifier: Apache-2.0
 *
 * Who asks and what may be done: session, login, logout. */
#include "base/build.h"
#include "base/clock.h"
#include "base/log.h"
#include "ctl/core/human.h"
#include "web/api.h"

static void put_session(struct web *w, const struct web_route *route, const struct web_request *q,
                        struct web_reply *r)
{
    static const char *const roles[] = {"none", "reader", "operator"}; /* enum web_role */
    static const char *const bys[] = {"none", "open", "token", "cookie", "proxy"}; /* enum web_by */
    const struct config *c = w->config;
    const struct web_caller *caller = &q->caller;
    struct err err = {0};
    char now[HUMAN_TIME_MAX];
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    auto_table struct table t = {.name = "session", .is_record = true};
    human_iso(clock_wall_us(), now);
    const char *const values[] = {c->web.is_operating ? "operate" : "read",
                                  roles[caller->role],
                                  caller->who[0] != '\0' ? caller->who : NULL,
                                  auth_has_tokens(w->auth) ? "t" : "f",
                                  bys[caller->by],
                                  web_shows_private(w, q) ? "t" : "f",
                                  c->web.is_operating && caller->role == WEB_OPERATOR ? "t" : "f",
                                  c->web.cluster_name,
                                  c->web.cluster_colour,
                                  CLAIMD_BUILD,
                                  now};
    t.columns = route->shapes[0].columns;
    t.column_count = route->shapes[0].column_count;
    const struct table *const tables[] = {&t};
    enum status st = table_add(&t, values, &err);
    if (st != STATUS_OK) {
        reply_failure(r, st, &err);
        return;
    }
    tables_put_json(tables, 1, &text);
    reply_json(r, &text);
}

void web_session(struct web *w, const struct web_route *route, struct web_request *q,
                 struct web_reply *r)
{
    put_session(w, route, q, r);
}

void web_login(struct web *w, const struct web_route *route, struct web_request *q,
               struct web_reply *r)
{
    struct err err = {0};
    const char *token = json_string_value(json_object_get(q->json, "token"));
    if (token == NULL || json_object_size(q->json) != 1) {
        reply_error(r, WEB_INVALID, NULL, "body: must be {\"token\": TEXT}");
        return;
    }
    enum status st = auth_login(w->auth, q, token, &q->caller, r->cookie, &err);
    if (st != STATUS_OK) {
        log_warn("login_refused", LOG_TEXT("address", q->caller.address), LOG_TEXT("err", err.msg),
                 LOG_TEXT("action", "none"));
        reply_error(r,
                    st == STATUS_NOT_FOUND ? WEB_UNAUTHORIZED
                    : st == STATUS_LIMIT   ? WEB_TOO_MANY
                                           : WEB_INTERNAL,
                    NULL, "%s", err.msg);
        return;
    }
    log_info("login", LOG_TEXT("who", q->caller.who), LOG_TEXT("address", q->caller.address));
    put_session(w, route, q, r);
}

void web_logout(struct web *w, const struct web_route *route, struct web_request *q,
                struct web_reply *r)
{
    auth_logout(w->auth, q, r->cookie);
    q->heads.cookie = NULL;
    auth_find(w->auth, q, &q->caller);
    put_session(w, route, q, r);
}
