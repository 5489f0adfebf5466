/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/health.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

void health_add(struct health *h, const char *name, bool is_ok, const char *format, ...)
{
    va_list args;
    assert(h->count < HEALTH_CHECKS_MAX);
    struct health_check *c = &h->checks[h->count++];
    *c = (struct health_check){.name = name, .is_ok = is_ok};
    va_start(args, format);
    if (!is_ok) {
        (void)vsnprintf(c->why, sizeof c->why, format, args);
    }
    va_end(args);
    assert(strpbrk(c->why, "\"\\\n") == NULL);
}

bool health_is_ok(const struct health *h)
{
    for (size_t i = 0; i < h->count; i++) {
        if (!h->checks[i].is_ok) {
            return false;
        }
    }
    return true;
}

enum status health_render(const struct health *h, struct buf *out, struct err *err)
{
    enum status st =
        buf_printf(out, err, "{\"status\":\"%s\",\"checks\":{", health_is_ok(h) ? "ok" : "failing");
    for (size_t i = 0; i < h->count && st == STATUS_OK; i++) {
        const struct health_check *c = &h->checks[i];
        st = buf_printf(out, err, "%s\"%s\":{\"ok\":%s", i == 0 ? "" : ",", c->name,
                        c->is_ok ? "true" : "false");
        if (st == STATUS_OK && !c->is_ok) {
            st = buf_printf(out, err, ",\"why\":\"%s\"", c->why);
        }
        if (st == STATUS_OK) {
            st = buf_append_text(out, "}", err);
        }
    }
    return st == STATUS_OK ? buf_append_text(out, "}}\n", err) : st;
}
