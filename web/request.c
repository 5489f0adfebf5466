/* SPDX-License-Identifier: Apache-2.0 */
#include "web/request.h"

#include "base/parse.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

const struct web_error_row web_errors[WEB_ERRORS] = {
#define X(name, text, status, exit) {(text), (status), (exit)},
    WEB_ERROR_MAP(X)
#undef X
};

/* ---- requests ---- */

const char *request_in_path(const struct web_request *q, const char *name)
{
    size_t i = 0;
    while (i < q->in_path_count && strcmp(q->in_path[i].name, name) != 0) {
        i++;
    }
    assert(i < q->in_path_count);
    return q->in_path[i].value;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c - 'A' + 10;
}

const char *request_decode(struct web_request *q, const char *text, size_t len)
{
    char *out = malloc(len + 1);
    size_t n = 0;
    for (size_t i = 0; out != NULL && i < len; i++) {
        bool is_code = text[i] == '%';
        if (is_code && (i + 2 >= len || !isxdigit((unsigned char)text[i + 1]) ||
                        !isxdigit((unsigned char)text[i + 2]))) {
            free(out);
            return NULL;
        }
        out[n++] = is_code ? (char)(hex(text[i + 1]) * 16 + hex(text[i + 2])) : text[i];
        i += is_code ? 2 : 0;
    }
    if (out == NULL || !utf8_is_clean(out, n)) {
        free(out);
        return NULL;
    }
    out[n] = '\0';
    assert(q->kept_count < ARRAY_COUNT(q->kept));
    q->kept[q->kept_count++] = out;
    return out;
}

void request_release(struct web_request *q)
{
    for (size_t i = 0; i < q->kept_count; i++) {
        free(q->kept[i]);
    }
    q->kept_count = 0;
    buf_release(&q->body);
    json_decref(q->json);
    q->json = NULL;
}

/* ---- replies ---- */

void reply_json(struct web_reply *r, struct text *text)
{
    struct err err = {0};
    if (text_end(text, &err) != STATUS_OK) {
        reply_failure(r, err.status, &err);
        return;
    }
    text_release(&r->text);
    r->text = *text;
    *text = (struct text){.buf = {.max = text->buf.max}};
    r->status = 200;
    r->type = "application/json";
}

static void put_error(struct web_reply *r, enum web_error error, const char *hint,
                      const char *sqlstate, const char *message)
{
    const struct web_error_row *row = &web_errors[error];
    char clean[ERR_TEXT_MAX * 3];
    (void)utf8_clean(message, strlen(message), clean, sizeof clean);
    json_auto_t *root =
        json_pack("{s:{s:s, s:s, s:s?, s:i, s:s?}}", "error", "code", row->code, "message", clean,
                  "hint", hint, "exit", row->exit, "sqlstate", sqlstate);
    autofree char *text = root == NULL ? NULL : json_dumps(root, 0);
    text_release(&r->text);
    r->text = (struct text)TEXT_INIT(WEB_ANSWER_MAX);
    text_put(&r->text, "%s\n", text == NULL ? "{}" : text);
    r->status = row->status;
    r->type = "application/json";
    r->asset = NULL;
    r->is_stream = false;
    r->etag[0] = '\0';
    r->retry_after_s = row->status == 503 ? 5 : row->status == 429 ? 60 : 0;
}

void reply_error(struct web_reply *r, enum web_error error, const char *hint, const char *format,
                 ...)
{
    char message[ERR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    put_error(r, error, hint, NULL, message);
}

static enum web_error error_of(enum status st, const struct err *err)
{
    if (strcmp(err->code, "42501") == 0) { /* insufficient_privilege */
        return WEB_FORBIDDEN;
    }
    if (strcmp(err->code, "55P03") == 0) { /* lock_not_available */
        return WEB_UNAVAILABLE;
    }
    switch (st) {
    case STATUS_INVALID:
    case STATUS_LIMIT:
        return WEB_INVALID;
    case STATUS_NOT_FOUND:
        return WEB_NOT_FOUND;
    case STATUS_CONFLICT:
        return WEB_CONFLICT;
    case STATUS_UNAVAILABLE:
        return WEB_UNAVAILABLE;
    case STATUS_TIMEOUT:
        return WEB_TIMEOUT;
    case STATUS_UNKNOWN:
        return WEB_UNKNOWN;
    case STATUS_OK:
    case STATUS_NOMEM:
    case STATUS_INTERNAL:
        break;
    }
    return WEB_INTERNAL;
}

/* Options are named --queue for claimctl, and queue here. */
void reply_failure(struct web_reply *r, enum status st, const struct err *err)
{
    bool is_option = strncmp(err->msg, "--", 2) == 0;
    put_error(r, error_of(st, err), NULL, err->code[0] != '\0' ? err->code : NULL,
              err->msg + (is_option ? 2 : 0));
}
