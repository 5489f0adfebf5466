/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the findings, each with the timeline of its job from all sources, and the last line. */
#include "check.h"

#include <inttypes.h>
#include <stdarg.h>

#define SHOWN_MAX 5      /* violations of one kind that are printed with timelines */
#define TIMELINE_MAX 150 /* lines */
#define LINE_SHOWN 240   /* printed bytes of a line */
#define KINDS_MAX 64

static struct {
    const char *checker;
    const char *invariant;
    size_t count;
} kinds[KINDS_MAX];
static size_t kind_count;

static size_t count_kind(const char *checker, const char *invariant)
{
    size_t i = 0;
    while (i < kind_count &&
           (strcmp(kinds[i].checker, checker) != 0 || strcmp(kinds[i].invariant, invariant) != 0)) {
        i++;
    }
    if (i == KINDS_MAX) {
        return SIZE_MAX;
    }
    if (i == kind_count) {
        kind_count++;
        kinds[i].checker = checker;
        kinds[i].invariant = invariant;
    }
    return ++kinds[i].count;
}

/* ---- timelines ---- */

struct entry {
    int64_t t;
    const char *from;
    const char *line;
    size_t len;
};

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    return (a->t > b->t) - (a->t < b->t);
}

static void print_entry(const struct run *r, const struct entry *e)
{
    double s = (double)(e->t - r->first) / (double)NS_PER_S;
    (void)printf("  %12.6f %-8s %.*s\n", s, e->from,
                 (int)(e->len < LINE_SHOWN ? e->len : LINE_SHOWN), e->line);
}

static size_t gather(const struct run *r, const struct job *j, struct entry *list)
{
    static const char *const names[] = {"history", "ledger", "acked", "nemesis"};
    size_t n = 0;
    int64_t from = NEVER;
    int64_t to = 0;
    for (size_t i = 0; i < j->event_count; i++) {
        const struct event *e = &j->events[i];
        from = e->t < from ? e->t : from;
        to = e->t > to ? e->t : to;
        list[n++] = (struct entry){e->t, names[e->source], e->line, e->line_len};
    }
    for (size_t i = 0; i < j->row_count; i++) {
        list[n++] = (struct entry){j->rows[i].t, "row", j->rows[i].line, j->rows[i].line_len};
    }
    const struct job *none = &r->jobs[0];
    for (size_t i = 0; i < none->event_count; i++) {
        const struct event *e = &none->events[i];
        if (e->source == FROM_NEMESIS && e->t >= from - NS_PER_S && e->t <= to + NS_PER_S) {
            list[n++] = (struct entry){e->t, names[e->source], e->line, e->line_len};
        }
    }
    qsort(list, n, sizeof *list, compare_entries);
    return n;
}

/* Prints a timeline; a long one loses its middle. */
static void print_timeline(const struct run *r, const struct job *j)
{
    size_t max = j->event_count + j->row_count + r->jobs[0].event_count;
    struct entry *list = calloc(max + 1, sizeof *list);
    size_t n = list == NULL ? 0 : gather(r, j, list);
    for (size_t i = 0; i < n; i++) {
        if (i < TIMELINE_MAX / 2 || i + TIMELINE_MAX / 2 >= n) {
            print_entry(r, &list[i]);
        } else if (i == TIMELINE_MAX / 2) {
            (void)printf("  … %zu more …\n", n - TIMELINE_MAX);
        }
    }
    for (size_t i = 0; i < j->final_count; i++) {
        const struct final *f = &j->finals[i];
        (void)printf("  %12s %-8s %.*s\n", "at the end", "final",
                     (int)(f->line_len < LINE_SHOWN ? f->line_len : LINE_SHOWN), f->line);
    }
    free(list);
}

/* ---- public functions ---- */

void violation(struct run *r, const char *checker, const char *invariant, int64_t job,
               const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->violation_count++;
    size_t count = count_kind(checker, invariant);
    if (r->violations_out != NULL) {
        json_t *o = json_pack("{s:s, s:s, s:I, s:s}", "checker", checker, "invariant", invariant,
                              "job", (json_int_t)job, "what", text);
        if (o != NULL && json_dumpf(o, r->violations_out, JSON_COMPACT) == 0) {
            (void)fputc('\n', r->violations_out);
        }
        json_decref(o);
    }
    if (count > SHOWN_MAX) {
        return;
    }
    const struct job *j = job == 0 ? NULL : run_job(r, job);
    if (j == NULL) {
        (void)printf("VIOLATION %s %s: %s\n", checker, invariant, text);
        return;
    }
    (void)printf("VIOLATION %s %s job %" PRId64 ": %s\n", checker, invariant, job, text);
    print_timeline(r, j);
}

void note(const struct run *r, const char *checker, const char *format, ...)
{
    va_list args;
    (void)r;
    (void)printf("note %s: ", checker);
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)printf("\n");
}

int report_end(struct run *r)
{
    if (r->violation_count == 0) {
        (void)printf("check: OK: %zu jobs, %zu events, %zu changes of rows, %zu faults\n",
                     r->job_count - 1, r->event_count, r->row_count, r->fault_count);
        return EXIT_SUCCESS;
    }
    (void)printf("check: FAILED: %zu violations:", r->violation_count);
    for (size_t i = 0; i < kind_count; i++) {
        (void)printf("%s %s/%s x%zu", i == 0 ? "" : ",", kinds[i].checker, kinds[i].invariant,
                     kinds[i].count);
    }
    (void)printf("\n");
    return EXIT_FAILURE;
}
