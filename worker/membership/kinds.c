/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/membership/kinds.h"

#include "base/clock.h"
#include "daemon/daemon.h"
#include "worker/membership/hello.h"
#include "worker/membership/membership.h"
#include "worker/membership/refused.h"
#include "worker/slots/slots.h"

#include <stdio.h>

#define LOAD_DEATHS_MAX 2 /* in a row, of one file: it is left out then */
/* Multiplied by time_scale. */
#define AGAIN_FIRST_US (60 * US_PER_S)
#define AGAIN_MAX_US (600 * US_PER_S)

/* What each runner announced, and what follows from it. A worker serves the kinds that all runners
 * have which may be given jobs, so that any of them can take any job. */
struct kinds_state {
    struct kind_set of_slot[SLOTS_MAX];
    int64_t order[SLOTS_MAX]; /* of the hellos: the newest one decides about versions */
    int64_t hellos;
    json_t *told;         /* the refusals of the last hello; each is logged once */
    struct kind_set next; /* to be served once it is registered in PostgreSQL */
    int64_t next_number;  /* of the hello that it comes from; 0 = there is none */
    bool is_announcing;
    struct kind_set able; /* what is served, plus what is paused */
    char paused[KIND_SET_MAX][JOB_NAME_MAX + 1];
    size_t paused_count;
    struct kind_set missing; /* kinds that were served and then withdrawn */
    int64_t again_at_us;     /* when to retry; 0 = nothing is missing or refused */
    int64_t again_wait_us;
    struct slot_without without;
    struct slot_without doubtful; /* files of programs that could not be started */
    struct refused refused;
    char suspect[RUNNER_FILE_SIZE];
    int suspect_deaths;
};

enum status kinds_open(struct membership *m, struct err *err)
{
    m->kinds.state = calloc(1, sizeof *m->kinds.state);
    if (m->kinds.state == NULL) {
        return err_fail(err, STATUS_NOMEM, "no memory for the kinds");
    }
    return STATUS_OK;
}

void kinds_close(struct membership *m)
{
    struct kinds_state *s = m->kinds.state;
    for (size_t i = 0; s != NULL && i < SLOTS_MAX; i++) {
        kind_set_release(&s->of_slot[i]);
    }
    if (s != NULL) {
        kind_set_release(&s->next);
        kind_set_release(&s->missing);
        kind_set_release(&s->able);
        json_decref(s->told);
        free(s);
    }
    kind_set_release(&m->kinds.served);
}

size_t kinds_able(const struct membership *m)
{
    return m->kinds.state == NULL ? 0 : m->kinds.state->able.count;
}

size_t kinds_refused(const struct membership *m)
{
    const struct kinds_state *s = m->kinds.state;
    return s == NULL ? 0 : hello_refused_count(s->told) + s->without.count;
}

size_t kinds_refused_texts(const struct membership *m, const char *ret[WORKER_REFUSED_MAX])
{
    return refused_texts(&m->kinds.state->refused, ret);
}

const struct slot_without *kinds_without(const struct membership *m)
{
    return &m->kinds.state->without;
}

const struct slot_without *kinds_doubtful(const struct membership *m)
{
    return &m->kinds.state->doubtful;
}

/* ---- the runners ---- */

static size_t runner_count(const struct membership *m)
{
    return m->env.runner_count(m->env.ctx);
}

static bool is_current(const struct membership *m, size_t runner)
{
    return m->env.runner_is_current(m->env.ctx, runner);
}

static void replace_runner(struct membership *m, size_t runner)
{
    m->env.replace_runner(m->env.ctx, runner);
}

/* ---- the hello of a runner ---- */

static enum status read_kinds(const json_t *hello, struct kind_set *ret, struct err *err)
{
    struct worker_kind kinds[KIND_SET_MAX];
    const struct worker_kind *list[KIND_SET_MAX];
    size_t n = hello_kinds(hello, kinds);
    for (size_t i = 0; i < n; i++) {
        list[i] = &kinds[i];
    }
    return kind_set_fill(ret, list, n, err);
}

static bool is_in(const json_t *list, const json_t *item)
{
    for (size_t i = 0; i < hello_refused_count(list); i++) {
        if (json_equal(json_array_get(list, i), item) != 0) {
            return true;
        }
    }
    return false;
}

static void say_refused(const char *file, const char *reason)
{
    log_warn("plugin_refused", LOG_TEXT("file", file), LOG_TEXT("err", reason),
             LOG_TEXT("action", "its kinds are not served here; fix it, then SIGHUP"));
}

/* Refused plugins may be fixed later: one runner retries them at increasing intervals. */
static void plan_retry(struct membership *m, bool is_news)
{
    struct kinds_state *s = m->kinds.state;
    if (s->missing.count == 0 && json_array_size(s->told) == 0) {
        s->again_at_us = 0;
    } else if (is_news || s->again_at_us == 0) {
        s->again_wait_us = (int64_t)((double)AGAIN_FIRST_US * m->env.servers->config->time_scale);
        s->again_at_us = clock_boot_us() + s->again_wait_us;
    }
}

/* Runners that start from now on try the program before they send their hello, so that no job has
 * to. */
static void doubt(struct kinds_state *s, const char *file)
{
    size_t len = file == NULL ? 0 : strlen(file);
    struct slot_without *d = &s->doubtful;
    size_t suffix = strlen(RUNNER_HANDLER_SUFFIX);
    if (len > suffix && len < RUNNER_FILE_SIZE &&
        strcmp(file + len - suffix, RUNNER_HANDLER_SUFFIX) == 0 && d->count < SLOT_WITHOUT_MAX) {
        memcpy(d->files[d->count++], file, len + 1);
    }
}

static void tell_refused(struct membership *m, const json_t *hello)
{
    struct kinds_state *s = m->kinds.state;
    json_t *refused = json_object_get(hello, "refused");
    s->doubtful.count = 0;
    for (size_t i = 0; i < hello_refused_count(refused); i++) {
        const json_t *item = json_array_get(refused, i);
        const char *file = json_string_value(json_object_get(item, "file"));
        const char *reason = json_string_value(json_object_get(item, "reason"));
        doubt(s, file);
        if (!is_in(s->told, item)) {
            say_refused(file == NULL ? "?" : file, reason == NULL ? "?" : reason);
        }
    }
    bool is_news = s->told == NULL || json_equal(s->told, refused) == 0;
    json_decref(s->told);
    s->told = json_incref(refused);
    refused_fill(&s->refused, s->told, &s->without);
    plan_retry(m, is_news);
}

/* ---- what the worker serves ---- */

static bool is_paused(const struct kinds_state *s, const char *kind)
{
    for (size_t i = 0; i < s->paused_count; i++) {
        if (strcmp(s->paused[i], kind) == 0) {
            return true;
        }
    }
    return false;
}

/* If memory runs out, no kind is served. */
static void leave_out_paused(struct membership *m)
{
    const struct kinds_state *s = m->kinds.state;
    const struct worker_kind *kept[KIND_SET_MAX];
    size_t n = 0;
    struct kind_set served = {.count = 0};
    struct err err = {0};
    for (size_t i = 0; i < s->able.count; i++) {
        if (!is_paused(s, s->able.names[i])) {
            kept[n++] = &s->able.list[i];
        }
    }
    if (kind_set_fill(&served, kept, n, &err) != STATUS_OK) {
        log_error("kinds_failed", LOG_TEXT("err", err.msg));
    }
    kind_set_release(&m->kinds.served);
    m->kinds.served = served;
    m->kinds.has_any = m->kinds.has_any || s->able.count > 0;
    m->kinds.generation++;
}

static void serve_able(struct membership *m)
{
    leave_out_paused(m);
    if (m->env.standing->is_registered) {
        m->env.due->listen = true;
        heartbeat_now(m);
        m->env.due->room = true;
    }
}

static void serve_now(struct membership *m, struct kind_set *set)
{
    struct kinds_state *s = m->kinds.state;
    kind_set_release(&s->able);
    s->able = *set;
    *set = (struct kind_set){.count = 0};
    serve_able(m);
}

static void say_pauses(const struct kinds_state *s, const char *const *names, size_t count)
{
    for (size_t i = 0; i < s->able.count; i++) {
        const char *kind = s->able.names[i];
        bool was = is_paused(s, kind);
        bool is = false;
        for (size_t k = 0; k < count; k++) {
            is = is || strcmp(names[k], kind) == 0;
        }
        if (is && !was) {
            log_info("kind_paused", LOG_TEXT("kind", kind));
        } else if (was && !is) {
            log_info("kind_resumed", LOG_TEXT("kind", kind));
        }
    }
}

void kinds_take_paused(struct membership *m, const char *const *names, size_t count)
{
    struct kinds_state *s = m->kinds.state;
    const char *kept[KIND_SET_MAX];
    size_t n = 0;
    for (int pass = 0; pass < 2;
         pass++) { /* first the kinds that this worker has, then those that it may get */
        for (size_t i = 0; i < count && n < KIND_SET_MAX; i++) {
            if ((kind_set_find(&s->able, names[i]) != NULL) == (pass == 0)) {
                kept[n++] = names[i];
            }
        }
    }
    bool is_changed = n != s->paused_count;
    for (size_t i = 0; i < n && !is_changed; i++) {
        is_changed = !is_paused(s, kept[i]);
    }
    if (!is_changed) {
        return;
    }
    say_pauses(s, kept, n);
    s->paused_count = n;
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(s->paused[i], sizeof s->paused[i], "%s", kept[i]);
    }
    serve_able(m);
}

/* Adds the kinds that are gone to the missing ones, and removes those that are served again. */
static void keep_missing(struct membership *m, const struct worker_kind *const *gone, size_t count,
                         const struct kind_set *served)
{
    struct kinds_state *s = m->kinds.state;
    const struct worker_kind *all[2 * KIND_SET_MAX];
    struct kind_set missing = {.count = 0};
    size_t n = 0;
    for (size_t i = 0; i < s->missing.count; i++) {
        if (served == NULL || kind_set_find(served, s->missing.names[i]) == NULL) {
            all[n++] = &s->missing.list[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        all[n++] = gone[i];
    }
    if (kind_set_fill(&missing, all, n, NULL) == STATUS_OK) {
        kind_set_release(&s->missing);
        s->missing = missing;
    }
    plan_retry(m, true);
}

/* Stops claiming kinds that some runner lacks, at once. */
static enum status withdraw(struct membership *m, const struct kind_set *possible, struct err *err)
{
    const struct worker_kind *kept[KIND_SET_MAX];
    const struct worker_kind *gone[KIND_SET_MAX];
    size_t kept_count = 0;
    size_t gone_count = 0;
    const struct kind_set *able = &m->kinds.state->able;
    for (size_t i = 0; i < able->count; i++) {
        const struct worker_kind *k = &able->list[i];
        if (kind_set_find(possible, k->name) != NULL) {
            kept[kept_count++] = k;
        } else {
            gone[gone_count++] = k;
            log_warn("kind_withdrawn", LOG_TEXT("kind", k->name), LOG_TEXT("plugin", k->plugin),
                     LOG_TEXT("action", "its jobs are left to other workers until every runner "
                                        "here serves it again"));
        }
    }
    struct kind_set left = {.count = 0};
    if (gone_count == 0) {
        return STATUS_OK;
    }
    enum status st = kind_set_fill(&left, kept, kept_count, err);
    if (st != STATUS_OK) {
        return st;
    }
    keep_missing(m, gone, gone_count, NULL);
    serve_now(m, &left);
    return STATUS_OK;
}

static void take_on_next(struct membership *m)
{
    struct kinds_state *s = m->kinds.state;
    for (size_t i = 0; i < s->next.count; i++) {
        const struct worker_kind *k = &s->next.list[i];
        const struct worker_kind *before = kind_set_find(&s->able, k->name);
        if (before == NULL || !kind_equal(k, before)) {
            log_info("kind_served", LOG_TEXT("kind", k->name), LOG_TEXT("plugin", k->plugin),
                     LOG_TEXT("version", k->version));
        }
    }
    s->next_number = 0;
    serve_now(m, &s->next);
    keep_missing(m, NULL, 0, &s->able);
}

struct announcement {
    struct membership *membership;
    int64_t number;
};

static void on_announced(void *ctx, enum status st, const struct err *err)
{
    autofree struct announcement *a = ctx;
    struct kinds_state *s = a->membership->kinds.state;
    s->is_announcing = false;
    if (st != STATUS_OK) {
        registration_complain(a->membership, "announce kinds", err);
        return; /* the next heartbeat tries again */
    }
    if (a->number == s->next_number) {
        take_on_next(a->membership);
    }
}

/* PostgreSQL must know the settings of a kind (at_most_once above all) before a job of it is
 * claimed. */
void kinds_announce(struct membership *m)
{
    struct kinds_state *s = m->kinds.state;
    if (s->next_number == 0 || s->is_announcing || !m->env.standing->is_registered ||
        !pg_is_up(m->env.servers->pg)) {
        return;
    }
    struct announcement *a = malloc(sizeof *a);
    if (a == NULL) {
        return;
    }
    *a = (struct announcement){.membership = m, .number = s->next_number};
    s->is_announcing = registration_announce(m, &s->next, on_announced, a) == STATUS_OK;
    if (!s->is_announcing) {
        free(a);
    }
}

static bool fits_hints(const struct membership *m, const struct kind_set *set)
{
    return m->env.servers->config->worker.queue_count * (set->count + 1) <= HINTS_SETS_MAX;
}

/* Returns the sets of all runners that may be given jobs, with the newest runner's first. */
static size_t current_sets(const struct membership *m, const struct kind_set **ret_sets)
{
    const struct kinds_state *s = m->kinds.state;
    size_t n = 0;
    size_t newest = 0;
    int64_t newest_order = 0;
    for (size_t i = 0; i < runner_count(m); i++) {
        if (s->order[i] == 0 || !is_current(m, i)) {
            continue;
        }
        if (s->order[i] > newest_order) {
            newest_order = s->order[i];
            newest = n;
        }
        ret_sets[n++] = &s->of_slot[i];
    }
    if (n > 0) {
        const struct kind_set *first = ret_sets[0];
        ret_sets[0] = ret_sets[newest];
        ret_sets[newest] = first;
    }
    return n;
}

static enum status look_again(struct membership *m, struct err *err)
{
    struct kinds_state *s = m->kinds.state;
    const struct kind_set *sets[SLOTS_MAX];
    size_t count = current_sets(m, sets);
    struct kind_set common = {.count = 0};
    if (count == 0) {
        return STATUS_OK;
    }
    enum status st = kind_set_common(&common, sets, count, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = withdraw(m, &common, err);
    kind_set_release(&s->next);
    s->next_number = 0;
    bool is_new = st == STATUS_OK && !kind_set_equal(&common, &s->able);
    if (is_new && !fits_hints(m, &common)) {
        log_error("kinds_refused", LOG_I64("kinds", common.count),
                  LOG_TEXT("err",
                           "too many sets of hints: worker.queues times the kinds of the plugins"));
    } else if (is_new) {
        s->next = common;
        common = (struct kind_set){.count = 0};
        s->next_number = s->hellos;
    }
    kind_set_release(&common);
    kinds_announce(m);
    return st;
}

/* Runners whose kinds differ from the newest runner's were started before the files changed. */
static void replace_older(struct membership *m, size_t newest)
{
    const struct kinds_state *s = m->kinds.state;
    for (size_t i = 0; i < runner_count(m); i++) {
        if (i != newest && is_current(m, i) &&
            !kind_set_covers(&s->of_slot[i], &s->of_slot[newest])) {
            replace_runner(m, i);
        }
    }
}

/* Handles the first hello of all runners. */
static enum status begin(struct membership *m, const struct kind_set *of_runner, struct err *err)
{
    enum status st = kind_set_common(&m->kinds.state->able, &of_runner, 1, err);
    if (st != STATUS_OK) {
        return st;
    }
    leave_out_paused(m);
    if (m->kinds.served.count == 0) {
        log_warn("no_kinds", LOG_TEXT("plugins", m->env.servers->config->worker.plugin_dir),
                 LOG_TEXT("action", "nothing will be claimed"));
    }
    if (!fits_hints(m, &m->kinds.state->able)) {
        m->env.fail(m->env.ctx, DAEMON_USAGE,
                    "too many sets of hints: worker.queues times the kinds of the plugins");
        return STATUS_OK;
    }
    registration_begin(m);
    return STATUS_OK;
}

static enum status take_kinds(struct membership *m, size_t i, int hellos, const json_t *hello,
                              struct err *err)
{
    struct kinds_state *s = m->kinds.state;
    struct kind_set said = {.count = 0};
    enum status st = read_kinds(hello, &said, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (hellos > 1 && !kind_set_covers(&s->of_slot[i], &said)) {
        kind_set_release(&said);
        return err_fail(err, STATUS_INVALID, "a later hello of a runner has more kinds");
    }
    kind_set_release(&s->of_slot[i]);
    s->of_slot[i] = said;
    s->order[i] = ++s->hellos;
    s->suspect_deaths = 0;
    if (s->able.block == NULL) {
        return begin(m, &s->of_slot[i], err);
    }
    replace_older(m, i);
    return look_again(m, err);
}

void kinds_take_hello(struct membership *m, size_t runner, int hellos, const char *json, size_t len)
{
    struct err err = {0};
    if (runner >= runner_count(m) || !is_current(m, runner)) {
        return; /* its replacement will send one */
    }
    json_auto_t *hello = json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL);
    tell_refused(m, hello);
    if (take_kinds(m, runner, hellos, hello, &err) != STATUS_OK) {
        log_error("kinds_failed", LOG_TEXT("err", err.msg));
    }
}

/* ---- files that kill their runner ---- */

/* Counts only deaths of the runner itself, not those of the forked child that tries a file first. A
 * single death may have any cause, even a manual kill. */
void kinds_load_died(struct membership *m, const char *file, const char *text, bool is_hung)
{
    struct kinds_state *s = m->kinds.state;
    if (strcmp(s->suspect, file) != 0) {
        s->suspect_deaths = 0;
        (void)snprintf(s->suspect, sizeof s->suspect, "%s", file);
    }
    s->suspect_deaths++;
    if ((s->suspect_deaths < LOAD_DEATHS_MAX && !is_hung) || s->without.count == SLOT_WITHOUT_MAX) {
        return;
    }
    s->suspect_deaths = 0;
    for (size_t i = 0; i < s->without.count; i++) {
        if (strcmp(s->without.files[i], file) == 0) {
            return; /* the report comes from a runner that was started before */
        }
    }
    (void)snprintf(s->without.files[s->without.count++], RUNNER_FILE_SIZE, "%s", file);
    refused_fill(&s->refused, s->told, &s->without);
    char reason[256];
    (void)snprintf(reason, sizeof reason, "its runner ended while loading it: %s", text);
    say_refused(file, reason);
}

/* ---- retries of refused files ---- */

void kinds_refresh(struct membership *m)
{
    struct kinds_state *s = m->kinds.state;
    s->without.count = 0;
    s->suspect_deaths = 0;
    json_decref(s->told);
    s->told = NULL;
    for (size_t i = 0; i < runner_count(m); i++) {
        replace_runner(m, i);
    }
}

/* Returns the runner to replace: preferably one that lacks kinds which others have. SIZE_MAX if no
 * runner has sent its hello. */
static size_t poorest(const struct membership *m)
{
    const struct kinds_state *s = m->kinds.state;
    size_t any = SIZE_MAX;
    for (size_t i = 0; i < runner_count(m); i++) {
        if (s->order[i] == 0 || !is_current(m, i)) {
            continue;
        }
        if (!kind_set_covers(&s->of_slot[i], &s->missing)) {
            return i;
        }
        any = i;
    }
    return any;
}

/* A kind that a runner lacks may only have been slow to load, or its file may be fixed by now. If a
 * new runner has it, the runners that started earlier are replaced too. */
void kinds_tick(struct membership *m, int64_t now_us)
{
    struct kinds_state *s = m->kinds.state;
    if (s->again_at_us == 0 || now_us < s->again_at_us ||
        m->env.standing->stage != WORKER_RUNNING) {
        return;
    }
    int64_t max_us = (int64_t)((double)AGAIN_MAX_US * m->env.servers->config->time_scale);
    s->again_wait_us = s->again_wait_us * 2 < max_us ? s->again_wait_us * 2 : max_us;
    s->again_at_us = now_us + s->again_wait_us;
    size_t runner = poorest(m);
    if (runner != SIZE_MAX) {
        replace_runner(m, runner);
    }
}
