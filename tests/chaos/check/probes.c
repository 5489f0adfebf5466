/* SPDX-License-Identifier: Apache-2.0
 *
 * K8: memory, descriptors and children do not grow (R1). K9: no secret is in a log or a history
 * (P2). K10: the results of the queries that check the database (sql/check.sql). */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* ---- K8 ---- */

#define SAMPLES_MIN 50
#define SERIES_MAX 4096

enum measure { RSS, FDS, CHILDREN, MEASURES };

static const char *const measures[MEASURES] = {"rss", "fds", "children"};
/* How much a warm process may still gain: its maximum in the second half of its life, compared with
 * that in the first half. This ignores what lost connections free temporarily. */
static const double gain_max[MEASURES] = {[RSS] = 8192.0 * 1024, [FDS] = 8, [CHILDREN] = 4};

struct series {
    const char *process;
    size_t count;
    size_t seen;
    double most[2][MEASURES]; /* in each half of the time after warming up */
};

struct all_series {
    struct series list[SERIES_MAX];
    size_t count;
    bool is_counting; /* first of two passes: counts the samples */
};

static struct series *series_of(struct all_series *all, const char *process)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->list[i].process == process) {
            return &all->list[i];
        }
    }
    if (all->count == SERIES_MAX) {
        return NULL;
    }
    all->list[all->count] = (struct series){.process = process};
    return &all->list[all->count++];
}

static void take_sample(struct run *r, void *ctx, const json_t *o)
{
    (void)r;
    struct all_series *all = ctx;
    const char *name = json_string_value(json_object_get(o, "p"));
    struct series *s = name == NULL ? NULL : series_of(all, intern(name, strlen(name)));
    if (s == NULL) {
        return;
    }
    if (all->is_counting) {
        s->count++;
        return;
    }
    if (++s->seen <= s->count / 5) {
        return; /* still warming up */
    }
    double *most = s->most[s->seen > s->count * 3 / 5];
    for (enum measure m = 0; m < MEASURES; m++) {
        double y = json_number_value(json_object_get(o, measures[m]));
        most[m] = y > most[m] ? y : most[m];
    }
}

static void check_series(struct run *r, const struct series *s)
{
    for (enum measure m = 0; m < MEASURES; m++) {
        double gain = s->most[1][m] - s->most[0][m];
        if (gain > gain_max[m]) {
            violation(r, "K8", "R1", 0, "%s: %s grew by %.0f, from at most %.0f", s->process,
                      measures[m], gain, s->most[0][m]);
        }
    }
}

void check_growth(struct run *r)
{
    static struct all_series all;
    all.is_counting = true;
    if (!run_lines(r, "samples.jsonl", take_sample, &all)) {
        violation(r, "K8", "R1", 0, "samples.jsonl: %s", strerror(errno));
    }
    all.is_counting = false;
    (void)run_lines(r, "samples.jsonl", take_sample, &all);
    for (size_t i = 0; i < all.count; i++) {
        if (all.list[i].count >= SAMPLES_MIN) {
            check_series(r, &all.list[i]);
        }
    }
}

/* ---- K9 ---- */

static void search(struct run *r, const char *path, const char *shown)
{
    struct stat st;
    size_t i = 0;
    const json_t *canary = NULL;
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) {
        return;
    }
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) {
        return;
    }
    json_array_foreach(json_object_get(r->about, "canaries"), i, canary)
    {
        const char *text = json_string_value(canary);
        if (text != NULL && memmem(bytes, (size_t)st.st_size, text, strlen(text)) != NULL) {
            violation(r, "K9", "P2", 0, "secret number %zu of run.json is in %s", i + 1, shown);
        }
    }
    (void)munmap(bytes, (size_t)st.st_size);
}

void check_canaries(struct run *r)
{
    static const char *const folders[] = {"logs", "history"};
    for (size_t f = 0; f < ARRAY_COUNT(folders); f++) {
        char path[sizeof r->path + 600];
        struct dirent **list = NULL;
        (void)snprintf(path, sizeof path, "%s/%s", r->path, folders[f]);
        int count = scandir(path, &list, NULL, alphasort);
        for (int i = 0; i < count; i++) {
            char shown[300];
            (void)snprintf(shown, sizeof shown, "%s/%s", folders[f], list[i]->d_name);
            (void)snprintf(path, sizeof path, "%s/%s", r->path, shown);
            search(r, path, shown);
            free(list[i]);
        }
        free(list);
    }
}

/* ---- K10 ---- */

static void take_check(struct run *r, void *ctx, const json_t *o)
{
    const char *name = json_string_value(json_object_get(o, "name"));
    int64_t rows = json_integer_value(json_object_get(o, "rows"));
    const char *detail = json_string_value(json_object_get(o, "detail"));
    (void)ctx;
    bool is_by_a_clock = name != NULL && strcmp(name, "too_early") == 0;
    if (is_by_a_clock && fault_in(r, TRAIT_PG_CLOCK, 0, NEVER) != NULL) {
        return; /* it was due before the clock went back */
    }
    if (rows > 0) {
        violation(r, "K10", "check.sql", json_integer_value(json_object_get(o, "job")),
                  "%s: %" PRId64 " rows%s%s", name == NULL ? "?" : name, rows,
                  detail == NULL ? "" : ": ", detail == NULL ? "" : detail);
    }
}

void check_sql(struct run *r)
{
    if (!run_lines(r, "check.jsonl", take_check, NULL)) {
        violation(r, "K10", "check.sql", 0, "check.jsonl: %s", strerror(errno));
    }
}
