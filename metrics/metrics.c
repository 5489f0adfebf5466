/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics/metrics.h"

#include "base/clock.h"
#include "base/hash.h"
#include "metrics/series.h"

#include <assert.h>

#define OTHERS_MAX 16 /* series whose first label is "other", above METRICS_SERIES_MAX */

static const char other[] = "other";

const double metric_seconds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                 0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10,
                                 30,     60,      300,    1800,  3600,   0};

enum status metrics_open(struct metrics **ret, struct err *err)
{
    *ret = calloc(1, sizeof **ret);
    return *ret == NULL ? err_fail(err, STATUS_NOMEM, "no memory for the metrics") : STATUS_OK;
}

static void series_free(struct metric *m)
{
    for (size_t i = 0; i < METRIC_LABELS_MAX; i++) {
        free(m->values[i]);
    }
    free(m);
}

static void set_empty(struct metric_set *set)
{
    while (set->first != NULL) {
        struct metric *m = set->first;
        set->first = m->next;
        series_free(m);
    }
    *set = (struct metric_set){.family = set->family, .next = set->next};
}

void metrics_close(struct metrics *m)
{
    if (m == NULL) {
        return;
    }
    while (m->first != NULL) {
        struct metric_set *set = m->first;
        m->first = set->next;
        set_empty(set);
        free(set);
    }
    free(m);
}

/* ---- families and their series ---- */

static struct metric_set *set_find(const struct metrics *m, const struct metric_family *family)
{
    struct metric_set *set = m->first;
    while (set != NULL && set->family != family) {
        set = set->next;
    }
    return set;
}

static struct metric_set *set_make(struct metrics *m, const struct metric_family *family)
{
    for (const struct metric_set *set = m->first; set != NULL; set = set->next) {
        assert(strcmp(set->family->name, family->name) != 0);
    }
    struct metric_set *set = calloc(1, sizeof *set);
    if (set == NULL) {
        return NULL;
    }
    set->family = family;
    *(m->last == NULL ? &m->first : &m->last->next) = set;
    m->last = set;
    return set;
}

const double *metric_bounds(const struct metric_family *family)
{
    return family->bounds == NULL ? metric_seconds : family->bounds;
}

static size_t bound_count(const struct metric_family *family)
{
    size_t n = 0;
    while (family->type == METRIC_HISTOGRAM && metric_bounds(family)[n] > 0) {
        n++;
    }
    return n;
}

static size_t bucket_of(const char *const *values)
{
    uint32_t hash = 0;
    for (size_t i = 0; i < METRIC_LABELS_MAX; i++) {
        hash = hash * 31 + hash_bytes(values[i], strnlen(values[i], METRIC_VALUE_MAX));
    }
    return hash % METRIC_BUCKETS;
}

static bool has_values(const struct metric *m, const char *const *values)
{
    for (size_t i = 0; i < METRIC_LABELS_MAX; i++) {
        if (strncmp(m->values[i], values[i], METRIC_VALUE_MAX) != 0) {
            return false;
        }
    }
    return true;
}

static struct metric *series_find(const struct metric_set *set, const char *const *values)
{
    struct metric *m = set->by_hash[bucket_of(values)];
    while (m != NULL && !has_values(m, values)) {
        m = m->same_hash;
    }
    return m;
}

static struct metric *series_make(struct metric_set *set, const char *const *values)
{
    size_t bounds = bound_count(set->family);
    struct metric *m = calloc(1, sizeof *m + bounds * sizeof m->counts[0]);
    if (m == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < METRIC_LABELS_MAX; i++) {
        m->values[i] = strndup(values[i], METRIC_VALUE_MAX);
        if (m->values[i] == NULL) {
            series_free(m);
            return NULL;
        }
    }
    m->family = set->family;
    m->bound_count = bounds;
    *(set->last == NULL ? &set->first : &set->last->next) = m;
    set->last = m;
    size_t bucket = bucket_of(values);
    m->same_hash = set->by_hash[bucket];
    set->by_hash[bucket] = m;
    set->count++;
    return m;
}

static size_t label_count(const struct metric_family *family)
{
    size_t n = 0;
    while (n < METRIC_LABELS_MAX && family->labels[n] != NULL) {
        n++;
    }
    return n;
}

/* The last of several labels has few values (an outcome, a state), so it is kept as long as
 * OTHERS_MAX allows. */
static struct metric *series_other(struct metric_set *set, const char **values)
{
    size_t labels = label_count(set->family);
    for (size_t i = 0; i < labels; i++) {
        values[i] = i == 0 || i + 1 < labels ? other : values[i];
    }
    struct metric *m = series_find(set, values);
    if (m != NULL || set->count < METRICS_SERIES_MAX + OTHERS_MAX - 1) {
        return m != NULL ? m : series_make(set, values);
    }
    values[labels - 1] = other;
    m = series_find(set, values);
    return m != NULL ? m : series_make(set, values);
}

struct metric *metrics_series(struct metrics *m, const struct metric_family *family,
                              const char *value1, const char *value2)
{
    const char *const values[METRIC_LABELS_MAX] = {value1, value2};
    return metrics_series_of(m, family, values);
}

struct metric *metrics_series_of(struct metrics *m, const struct metric_family *family,
                                 const char *const given[METRIC_LABELS_MAX])
{
    if (m == NULL) {
        return NULL;
    }
    struct metric_set *set = set_find(m, family);
    set = set != NULL ? set : set_make(m, family);
    if (set == NULL) {
        return NULL;
    }
    const char *values[METRIC_LABELS_MAX];
    for (size_t i = 0; i < METRIC_LABELS_MAX; i++) {
        bool is_label = family->labels[i] != NULL;
        values[i] = is_label && given[i] != NULL ? given[i] : "";
    }
    struct metric *found = series_find(set, values);
    if (found != NULL || set->count < METRICS_SERIES_MAX) {
        return found != NULL ? found : series_make(set, values);
    }
    return family->type == METRIC_GAUGE ? NULL : series_other(set, values);
}

void metrics_forget(struct metrics *m, const struct metric_family *family)
{
    struct metric_set *set = m == NULL ? NULL : set_find(m, family);
    if (set != NULL) {
        set_empty(set);
    }
}

/* ---- counting ---- */

void metric_add(struct metric *counter, uint64_t n)
{
    if (counter != NULL) {
        assert(counter->family->type == METRIC_COUNTER);
        counter->total += n;
    }
}

void metric_take(struct metric *counter, uint64_t total)
{
    if (counter != NULL) {
        assert(counter->family->type == METRIC_COUNTER);
        counter->total = total;
    }
}

void metric_take_us(struct metric *counter, int64_t total_us)
{
    if (counter != NULL) {
        assert(counter->family->type == METRIC_COUNTER);
        counter->number = (double)total_us / (double)US_PER_S;
    }
}

void metric_set(struct metric *gauge, double value)
{
    if (gauge != NULL) {
        assert(gauge->family->type == METRIC_GAUGE);
        gauge->number = value;
    }
}

void metric_raise(struct metric *gauge, double value)
{
    if (gauge != NULL && value > gauge->number) {
        metric_set(gauge, value);
    }
}

void metric_observe(struct metric *histogram, double value)
{
    if (histogram == NULL) {
        return;
    }
    assert(histogram->family->type == METRIC_HISTOGRAM);
    const double *bounds = metric_bounds(histogram->family);
    size_t i = 0;
    while (i < histogram->bound_count && value > bounds[i]) {
        i++;
    }
    if (i < histogram->bound_count) {
        histogram->counts[i]++;
    }
    histogram->total++;
    histogram->number += value;
}

void metric_observe_us(struct metric *histogram, int64_t us)
{
    metric_observe(histogram, us < 0 ? 0 : (double)us / (double)US_PER_S);
}
