/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backoff.h"

#include "base/minmax.h"
#include "base/parse.h"
#include "model/job.h"

#include <assert.h>
#include <stdio.h>

static const struct {
    const char *prefix;
    char separator;
    size_t count_min;
    size_t count_max;
} shapes[] = {
    [BACKOFF_EXPONENTIAL] = {"exponential:", ':', 2, 2},
    [BACKOFF_LINEAR] = {"linear:", ':', 2, 2},
    [BACKOFF_FIXED] = {"fixed:", ':', 1, 1},
    [BACKOFF_LIST] = {"list:", ',', 1, BACKOFF_LIST_MAX},
};

/* Reads one duration; unlike elsewhere, a bare number of seconds is not allowed. */
static bool read_duration(const char *text, size_t len, int64_t *ret_us)
{
    char one[BACKOFF_SIZE];
    (void)snprintf(one, sizeof one, "%.*s", (int)len, text);
    bool has_unit = len > 0 && (one[len - 1] < '0' || one[len - 1] > '9');
    return has_unit && parse_duration_us(one, ret_us, NULL) == STATUS_OK &&
           *ret_us <= JOB_DELAY_US_MAX;
}

static bool read_durations(const char *text, size_t len, struct backoff *b)
{
    const char *end = text + len;
    for (;;) {
        const char *stop = memchr(text, shapes[b->shape].separator, (size_t)(end - text));
        size_t size = (size_t)((stop != NULL ? stop : end) - text);
        if (b->count == shapes[b->shape].count_max ||
            !read_duration(text, size, &b->us[b->count])) {
            return false;
        }
        b->count++;
        if (stop == NULL) {
            return b->count >= shapes[b->shape].count_min;
        }
        text = stop + 1;
    }
}

/* Reads "~10%" at the end, or nothing. */
static bool read_jitter(const char *text, struct backoff *b)
{
    int64_t percent = 0;
    size_t len = strlen(text);
    if (len == 0) {
        return true;
    }
    bool is_good = text[len - 1] == '%' && len > 2 &&
                   parse_i64(text + 1, len - 2, 0, 100, &percent, NULL) == STATUS_OK;
    b->jitter_percent = (int)percent;
    return is_good;
}

enum status backoff_parse(const char *text, struct backoff *ret, struct err *err)
{
    struct backoff b = {.count = 0};
    size_t len = strcspn(text, "~");
    bool is_good = false;
    for (size_t i = 0; i < ARRAY_COUNT(shapes) && strlen(text) < BACKOFF_SIZE; i++) {
        size_t prefix = strlen(shapes[i].prefix);
        if (strncmp(text, shapes[i].prefix, prefix) == 0 && len > prefix) {
            b.shape = (enum backoff_shape)i;
            is_good =
                read_durations(text + prefix, len - prefix, &b) && read_jitter(text + len, &b);
        }
    }
    if (!is_good) {
        return err_fail(err, STATUS_INVALID, "backoff '%.40s': must be %s", text, BACKOFF_FORMS);
    }
    *ret = b;
    return STATUS_OK;
}

static int64_t plain_us(const struct backoff *b, int attempt)
{
    switch (b->shape) {
    case BACKOFF_EXPONENTIAL: {
        int64_t delay = b->us[0];
        for (int n = 1; n < attempt && delay > 0 && delay < b->us[1]; n++) {
            delay *= 2;
        }
        return min_i64(delay, b->us[1]);
    }
    case BACKOFF_LINEAR: /* 366 days times 2^31 would exceed an int64_t */
        return b->us[0] > b->us[1] / attempt ? b->us[1] : b->us[0] * attempt;
    case BACKOFF_FIXED:
    case BACKOFF_LIST:
        break;
    }
    return b->us[(size_t)attempt < b->count ? (size_t)attempt - 1 : b->count - 1];
}

int64_t backoff_us(const struct backoff *b, int attempt, int unit)
{
    assert(attempt >= 1 && b->count > 0);
    int64_t delay = plain_us(b, attempt);
    int64_t part = delay / 100 * b->jitter_percent + delay % 100 * b->jitter_percent / 100;
    return min_i64(delay - part + part / 500 * unit + part % 500 * unit / 500, JOB_DELAY_US_MAX);
}
