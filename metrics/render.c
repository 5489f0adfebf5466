/* SPDX-License-Identifier: Apache-2.0
 *
 * Renders the text for Prometheus:
 * https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format */
#include "metrics/series.h"

#include <math.h>
#include <stdio.h>

#define NUMBER_TEXT_MAX 32
#define EXACT_MAX 9007199254740992.0 /* 2^53: above it not every integer is a double */

static const char *const type_names[] = {
    [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};

/* An output that keeps its first failure, so that callers need not check every call. */
struct text {
    struct buf *out;
    struct err *err;
    enum status st;
};

static void put(struct text *t, const char *bytes, size_t len)
{
    if (t->st == STATUS_OK) {
        t->st = buf_append(t->out, bytes, len, t->err);
    }
}

static void put_text(struct text *t, const char *text)
{
    put(t, text, strlen(text));
}

static void put_count(struct text *t, uint64_t n)
{
    char digits[NUMBER_TEXT_MAX];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    put(t, digits, (size_t)len);
}

static void put_number(struct text *t, double value)
{
    char digits[NUMBER_TEXT_MAX];
    if (isnan(value)) {
        put_text(t, "NaN");
    } else if (isinf(value)) {
        put_text(t, value > 0 ? "+Inf" : "-Inf");
    } else if (value == floor(value) && fabs(value) < EXACT_MAX) {
        int len = snprintf(digits, sizeof digits, "%lld", (long long)value);
        put(t, digits, (size_t)len);
    } else {
        int len = snprintf(digits, sizeof digits, "%.15g", value);
        put(t, digits, (size_t)len);
    }
}

/* Returns the length in bytes of the UTF-8 character at `text`; 0 if it is invalid, which includes
 * overlong forms and surrogates: Prometheus rejects a whole scrape because of one invalid text. */
static size_t utf8_len(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t len = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (p[0] > 0xF4) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80) {
            return 0; /* the NUL at the end lands here, too */
        }
    }
    bool is_bad = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
                  (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F);
    return is_bad ? 0 : len;
}

static void put_escaped(struct text *t, const char *text)
{
    for (const char *p = text; *p != '\0';) {
        size_t len = utf8_len(p);
        if (*p == '\\' || *p == '"') {
            put(t, "\\", 1);
            put(t, p, 1);
        } else if (*p == '\n') {
            put_text(t, "\\n");
        } else if (len == 0) {
            put(t, "?", 1);
        } else {
            put(t, p, len);
        }
        p += len == 0 ? 1 : len;
    }
}

static void put_label(struct text *t, bool is_first, const char *name, const char *value)
{
    put(t, is_first ? "{" : ",", 1);
    put_text(t, name);
    put_text(t, "=\"");
    put_escaped(t, value);
    put(t, "\"", 1);
}

/* Writes `name_suffix{labels,le="…"} `, without the braces if there are no labels. */
static void put_head(struct text *t, const struct metric *m, const char *suffix, const char *le)
{
    bool is_first = true;
    put_text(t, m->family->name);
    put_text(t, suffix);
    for (size_t i = 0; i < METRIC_LABELS_MAX; i++) {
        if (m->family->labels[i] != NULL) {
            put_label(t, is_first, m->family->labels[i], m->values[i]);
            is_first = false;
        }
    }
    if (le != NULL) {
        put_label(t, is_first, "le", le);
        is_first = false;
    }
    put_text(t, is_first ? " " : "} ");
}

static void put_histogram(struct text *t, const struct metric *m)
{
    const double *bounds = metric_bounds(m->family);
    uint64_t below = 0;
    for (size_t i = 0; i < m->bound_count; i++) {
        char le[NUMBER_TEXT_MAX];
        (void)snprintf(le, sizeof le, "%.15g", bounds[i]);
        below += m->counts[i];
        put_head(t, m, "_bucket", le);
        put_count(t, below);
        put(t, "\n", 1);
    }
    put_head(t, m, "_bucket", "+Inf");
    put_count(t, m->total);
    put(t, "\n", 1);
    put_head(t, m, "_sum", NULL);
    put_number(t, m->number);
    put(t, "\n", 1);
    put_head(t, m, "_count", NULL);
    put_count(t, m->total);
    put(t, "\n", 1);
}

static void put_series(struct text *t, const struct metric *m)
{
    if (m->family->type == METRIC_HISTOGRAM) {
        put_histogram(t, m);
        return;
    }
    put_head(t, m, "", NULL);
    if (m->family->type == METRIC_COUNTER && m->number == 0) {
        put_count(t, m->total);
    } else {
        put_number(t, m->number);
    }
    put(t, "\n", 1);
}

static void put_family(struct text *t, const struct metric_family *family)
{
    put_text(t, "# HELP ");
    put_text(t, family->name);
    put(t, " ", 1);
    put_text(t, family->help); /* one of our constants: nothing to escape */
    put_text(t, "\n# TYPE ");
    put_text(t, family->name);
    put(t, " ", 1);
    put_text(t, type_names[family->type]);
    put(t, "\n", 1);
}

enum status metrics_render(const struct metrics *m, struct buf *out, struct err *err)
{
    struct text t = {.out = out, .err = err, .st = STATUS_OK};
    for (const struct metric_set *set = m == NULL ? NULL : m->first; set != NULL; set = set->next) {
        if (set->first != NULL) {
            put_family(&t, set->family);
        }
        for (const struct metric *s = set->first; s != NULL && t.st == STATUS_OK; s = s->next) {
            put_series(&t, s);
        }
    }
    return t.st;
}
