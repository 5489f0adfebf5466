/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/enqueue/served.h"

#include "base/text.h"
#include "sql/queries.h"

#include <assert.h>
#include <stdio.h>

#define LIST_BYTES_MAX ((size_t)SERVED_MAX * 70)

static bool is_same(const char *text, const char *name, size_t len)
{
    return strlen(text) == len && memcmp(text, name, len) == 0;
}

void served_note(struct served *s, const char *queue, size_t queue_len, const char *kind,
                 size_t kind_len)
{
    assert(queue_len < sizeof s->pairs[0].queue && kind_len < sizeof s->pairs[0].kind);
    for (size_t i = s->count; i > 0; i--) { /* usually the same as the last one */
        if (is_same(s->pairs[i - 1].kind, kind, kind_len) &&
            is_same(s->pairs[i - 1].queue, queue, queue_len)) {
            return;
        }
    }
    if (s->count == SERVED_MAX) {
        s->left_out++;
        return;
    }
    (void)snprintf(s->pairs[s->count].queue, sizeof s->pairs[0].queue, "%.*s", (int)queue_len,
                   queue);
    (void)snprintf(s->pairs[s->count].kind, sizeof s->pairs[0].kind, "%.*s", (int)kind_len, kind);
    s->count++;
}

enum status served_check(const struct served *s, struct admin *a, bool is_strict, struct err *err)
{
    autotext struct text queues = TEXT_INIT(LIST_BYTES_MAX);
    autotext struct text kinds = TEXT_INIT(LIST_BYTES_MAX);
    auto_admin_rows struct admin_rows *rows = NULL;
    if (s->count == 0) {
        return STATUS_OK;
    }
    for (size_t i = 0; i < s->count; i++) { /* names need no escapes in an array literal */
        text_put(&queues, "%s%s", i == 0 ? "{" : ",", s->pairs[i].queue);
        text_put(&kinds, "%s%s", i == 0 ? "{" : ",", s->pairs[i].kind);
    }
    text_put(&queues, "}");
    text_put(&kinds, "}");
    enum status st = text_end(&queues, err) == STATUS_OK ? text_end(&kinds, err) : err->status;
    if (st != STATUS_OK) {
        return st;
    }
    const char *const params[] = {text_str(&queues), text_str(&kinds)};
    st = admin_query(a, &SQL_ADMIN_SERVED, params, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (is_strict && admin_row_count(rows) > 0) {
        return err_fail(err, STATUS_CONFLICT, "%s", admin_value(rows, 0, 0));
    }
    for (int i = 0; i < admin_row_count(rows); i++) {
        (void)fprintf(stderr, "claimctl: warning: %s; the jobs wait until one does\n",
                      admin_value(rows, i, 0));
    }
    return STATUS_OK;
}
