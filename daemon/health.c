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

static enum status render_check(const struct health_check *c, struct buf *out, struct err *err)
{
    if (c->is_ok) {
        return buf_printf(out, err, "\"%s\":{\"ok\":true}", c->name);
    }
    return buf_printf(out, err, "\"%s\":{\"ok\":false,\"why\":\"%s\"}", c->name, c->why);
}

enum status health_render(const struct health *h, struct buf *out, struct err *err)
{
    enum status st =
        buf_printf(out, err, "{\"status\":\"%s\",\"checks\":{", health_is_ok(h) ? "ok" : "failing");
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < h->count; i++) {
        st = buf_append_text(out, i == 0 ? "" : ",", err);
        if (st != STATUS_OK) {
            return st;
        }
        st = render_check(&h->checks[i], out, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return buf_append_text(out, "}}\n", err);
}
