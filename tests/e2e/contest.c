/* SPDX-License-Identifier: Apache-2.0 */
#include "contest.h"

#include "base/parse.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>

#define END_US (60 * US_PER_S)
#define VISITS_MAX ((size_t)1 << 20)

struct visit {
    int64_t enter_us;
    int64_t end_us; /* when it left, or when its lease expired */
    int64_t value;
    size_t contender;
    bool is_left; /* before its deadline */
};

static struct visit *visits;
static size_t visit_count;

int64_t contest_seconds(int64_t seconds, int64_t soak)
{
    return getenv("CLAIMD_SOAK") != NULL ? soak : seconds; /* NOLINT(concurrency-mt-unsafe) */
}

static void start_contender(struct contest *c, size_t at)
{
    char seconds[24];
    char ttl[24];
    char log_path[SERVER_PATH_MAX + 32];
    struct err err = {0};
    struct contender *one = &c->contenders[at];
    int64_t left_us = c->end_us - clock_boot_us();
    if (left_us < US_PER_S) {
        one->pid = 0;
        return;
    }
    (void)snprintf(seconds, sizeof seconds, "%" PRId64, left_us / US_PER_S);
    (void)snprintf(ttl, sizeof ttl, "%d", CONTEST_TTL_MS);
    (void)snprintf(log_path, sizeof log_path, "%s/%s.err", c->dir, one->name);
    const char *argv[5 + CONTEST_MASTERS + 1] = {one->program, c->dir, one->name, seconds, ttl};
    for (size_t i = 0; i < CONTEST_MASTERS; i++) {
        argv[5 + i] = c->servers[i].path;
    }
    ck_assert_msg(program_start(argv, NULL, log_path, &one->pid, &err) == STATUS_OK, "%s", err.msg);
}

void contest_start(struct contest *c, int64_t seconds)
{
    struct err err = {0};
    int64_t seed = clock_boot_us();
    const char *given = getenv("SEED"); /* NOLINT(concurrency-mt-unsafe) */
    *c = (struct contest){0};
    if (given != NULL) {
        ck_assert_int_eq(parse_i64(given, strlen(given), 0, INT64_MAX, &seed, NULL), STATUS_OK);
    }
    printf("SEED=%" PRId64 "\n", seed);
    (void)fflush(stdout);
    rand_seed(&c->rand, (uint64_t)seed);
    ck_assert_int_eq(dir_make(c->dir, sizeof c->dir, &err), STATUS_OK);
    for (size_t i = 0; i < CONTEST_MASTERS; i++) {
        char dir[SERVER_PATH_MAX + 32];
        (void)snprintf(dir, sizeof dir, "%s/m%zu", c->dir, i);
        ck_assert_msg(redis_server_start(dir, NULL, &c->servers[i], &err) == STATUS_OK, "%s",
                      err.msg);
    }
    c->end_us = clock_boot_us() + seconds * US_PER_S;
}

void contest_add(struct contest *c, const char *program, const char *name)
{
    ck_assert_uint_lt(c->count, CONTEST_CONTENDERS_MAX);
    struct contender *one = &c->contenders[c->count];
    one->program = program;
    (void)snprintf(one->name, sizeof one->name, "%s", name);
    start_contender(c, c->count++);
}

void contest_kill(struct contest *c, size_t contender)
{
    struct contender *one = &c->contenders[contender];
    if (one->pid > 0) {
        program_kill(one->pid);
        one->kills++;
        start_contender(c, contender);
    }
}

bool contest_is_over(const struct contest *c)
{
    return clock_boot_us() >= c->end_us;
}

void contest_pause(const struct contest *c, int64_t us)
{
    int64_t until_us = clock_boot_us() + us;
    (void)WAIT_UNTIL(clock_boot_us() >= until_us || contest_is_over(c), us);
}

/* ---- results ---- */

static void take_line(struct contest_result *ret, size_t contender, const char *line)
{
    char what[16];
    int pid = 0;
    int64_t at_us = 0;
    int64_t deadline_us = 0;
    int64_t value = 0;
    if (sscanf(line, "%15s %d %" SCNd64 " %" SCNd64 " %" SCNd64, what, &pid, &at_us, &deadline_us,
               &value) != 5) { /* NOLINT(cert-err34-c) */
        ck_abort_msg("%s", line);
    }
    if (strcmp(what, "violation") == 0) {
        ret->violations++;
    } else if (strcmp(what, "enter") == 0) {
        ck_assert_uint_lt(visit_count, VISITS_MAX);
        visits[visit_count++] = (struct visit){
            .enter_us = at_us, .end_us = deadline_us, .value = value, .contender = contender};
    } else if (at_us < deadline_us) {
        struct visit *v = &visits[visit_count - 1];
        ck_assert_int_eq(v->value, value);
        v->end_us = at_us;
        v->is_left = true;
        ret->sections[contender]++;
        ret->all_sections++;
    } else {
        ret->late++;
        ret->cut_short--; /* takes back the count of its enter line */
    }
}

static void read_log(const struct contest *c, struct contest_result *ret, size_t contender)
{
    char path[SERVER_PATH_MAX + 32];
    char line[160];
    (void)snprintf(path, sizeof path, "%s/%s.log", c->dir, c->contenders[contender].name);
    FILE *f = fopen(path, "re");
    ck_assert_msg(f != NULL, "%s never won", c->contenders[contender].name);
    while (fgets(line, sizeof line, f) != NULL) {
        take_line(ret, contender, line);
    }
    (void)fclose(f);
}

static int by_enter(const void *a, const void *b)
{
    int64_t x = ((const struct visit *)a)->enter_us;
    int64_t y = ((const struct visit *)b)->enter_us;
    return (x > y) - (x < y);
}

static int by_value(const void *a, const void *b)
{
    const struct visit *x = a;
    const struct visit *y = b;
    int order = (x->value > y->value) - (x->value < y->value);
    return order != 0 ? order : x->is_left - y->is_left;
}

static void check_visits(struct contest_result *ret)
{
    size_t left = 0;
    if (visit_count == 0) {
        return;
    }
    qsort(visits, visit_count, sizeof *visits, by_enter);
    for (size_t i = 1; i < visit_count; i++) {
        ret->overlaps += visits[i].enter_us < visits[i - 1].end_us;
    }
    qsort(visits, visit_count, sizeof *visits, by_value);
    for (size_t i = 0; i < visit_count; i++) {
        left += visits[i].is_left;
        ret->repeated += i > 0 && visits[i].is_left && visits[i - 1].is_left &&
                         visits[i].value == visits[i - 1].value;
    }
    ret->cut_short += visit_count - left;
}

static void read_counter(const struct contest *c, struct contest_result *ret)
{
    char path[SERVER_PATH_MAX + 32];
    char text[32] = "";
    (void)snprintf(path, sizeof path, "%s/counter", c->dir);
    FILE *f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    if (fgets(text, sizeof text, f) != NULL) {
        ck_assert_int_eq(parse_i64(text, strlen(text), 0, INT64_MAX, &ret->counter, NULL),
                         STATUS_OK);
    }
    (void)fclose(f);
}

static void check_result(const struct contest *c, const struct contest_result *r)
{
    for (size_t i = 0; i < c->count; i++) {
        printf("%s: %zu sections, killed %zu times\n", c->contenders[i].name, r->sections[i],
               c->contenders[i].kills);
        ck_assert_uint_gt(r->sections[i], 0);
    }
    printf("%zu sections, %zu cut short, %zu late; %zu overlaps, %zu violations; counter %" PRId64
           "\n",
           r->all_sections, r->cut_short, r->late, r->overlaps, r->violations, r->counter);
    (void)fflush(stdout);
    ck_assert_uint_eq(r->overlaps, 0);
    ck_assert_uint_eq(r->violations, 0);
    ck_assert_uint_eq(r->repeated, 0);
    /* A section that was cut short may have been counted or not. A late contender reports itself if
     * it was not alone. */
    ck_assert_int_ge(r->counter + (int64_t)r->late, (int64_t)r->all_sections);
    ck_assert_int_le(r->counter, (int64_t)(r->all_sections + r->cut_short + r->late));
}

void contest_end(struct contest *c, struct contest_result *ret)
{
    *ret = (struct contest_result){0};
    for (size_t i = 0; i < c->count; i++) {
        int code = 0;
        struct contender *one = &c->contenders[i];
        if (one->pid > 0) {
            enum status st = program_wait(one->pid, END_US, &code, NULL);
            ck_assert_msg(st == STATUS_OK && code == 0, "%s ended with %d (its words: %s/%s.err)",
                          one->name, code, c->dir, one->name);
        }
    }
    visits = calloc(VISITS_MAX, sizeof *visits);
    ck_assert_ptr_nonnull(visits);
    for (size_t i = 0; i < c->count; i++) {
        read_log(c, ret, i);
    }
    check_visits(ret);
    read_counter(c, ret);
    check_result(c, ret);
    free(TAKE(visits));
    for (size_t i = 0; i < CONTEST_MASTERS; i++) {
        redis_server_kill(&c->servers[i]);
    }
    dir_remove(c->dir);
}
