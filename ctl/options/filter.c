/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/options/filter.h"

#include "base/clock.h"
#include "base/parse.h"
#include "ctl/options/job_check.h"
#include "ctl/options/job_time.h"
#include "model/job.h"

/* The states of the view `jobs`: the stored states, with available split by when the job is due. */
static const char *const open_states[] = {"waiting", "scheduled", "retryable", "available",
                                          "running"};
static const char *const final_states[] = {"completed", "cancelled", "discarded"};

/* ---- lists ---- */

/* Returns the next element of a list, which may be empty; NULL after the last one. */
static const char *behind_comma(const char *at, size_t len)
{
    return at[len] == ',' ? at + len + 1 : NULL;
}

typedef enum status name_check(const char *name, struct err *err);

static void check_names(struct given *g, const char *option, const char *list, name_check *check)
{
    size_t len = 0;
    for (const char *at = list; at != NULL && g->err->status == STATUS_OK;
         at = behind_comma(at, len)) {
        char name[JOB_NAME_MAX + 2]; /* one octet more than is allowed */
        len = strcspn(at, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name), at);
        if (check(name, g->err) != STATUS_OK) {
            err_prefix(g->err, "--%s", option);
        }
    }
}

/* Checks each name: an invalid name matches nothing, which would go unnoticed beside valid ones. */
static const char *read_names(struct given *g, const char *option, name_check *check)
{
    for (size_t i = 0; i < g->args->given_count; i++) {
        if (strcmp(g->args->given[i].name, option) == 0) {
            check_names(g, option, g->args->given[i].value, check);
        }
    }
    return given_array(g, option, true);
}

static bool is_among(const char *const *states, size_t count, const char *text, size_t len)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(states[i]) == len && strncmp(states[i], text, len) == 0) {
            return true;
        }
    }
    return false;
}

static enum status check_states(struct filter *f, const char *list, struct err *err)
{
    for (const char *at = list; at != NULL;) {
        size_t len = strcspn(at, ",");
        bool is_open = is_among(open_states, ARRAY_COUNT(open_states), at, len);
        bool is_final = is_among(final_states, ARRAY_COUNT(final_states), at, len);
        if (!is_open && !is_final) {
            return err_fail(err, STATUS_INVALID,
                            "--state: '%.*s' is not allowed; allowed: waiting, scheduled, "
                            "retryable, available, running, completed, cancelled, discarded",
                            (int)(len < 40 ? len : 40), at);
        }
        f->is_open = f->is_open || is_open;
        f->is_finished = f->is_finished || is_final;
        at = behind_comma(at, len);
    }
    return STATUS_OK;
}

static enum status read_states(struct filter *f, struct given *g)
{
    for (size_t i = 0; i < g->args->given_count && g->err->status == STATUS_OK; i++) {
        if (strcmp(g->args->given[i].name, "state") == 0) {
            (void)!check_states(f, g->args->given[i].value, g->err);
        }
    }
    if (!f->is_open && !f->is_finished) {
        f->is_open = true;
        f->is_finished = true;
    }
    f->states = given_array(g, "state", true);
    f->is_running = f->states != NULL && strcmp(f->states, "{\"running\"}") == 0;
    return g->err->status;
}

/* ---- times ---- */

/* An age such as "2h", or a time with its zone. */
struct moment {
    const char *text; /* NULL if the option was not given */
    bool is_age;
    int64_t us; /* age, or time since 1970 */
};

static enum status read_moment(const struct ctl_args *args, const char *name, bool is_age_only,
                               struct moment *ret, struct err *err)
{
    const char *text = ctl_value(args, name);
    char option[24];
    struct err why = {0};
    if (text == NULL) {
        return STATUS_OK;
    }
    ret->text = text;
    (void)snprintf(option, sizeof option, "--%s", name);
    ret->is_age = is_age_only || parse_duration_us(text, &ret->us, NULL) == STATUS_OK;
    if (ret->is_age) {
        return job_duration_check(option, text, 0, JOB_DELAY_MAX_US, &ret->us, err);
    }
    if (job_time_check(text, &why) != STATUS_OK || strlen(text) >= HUMAN_TIME_MAX) {
        return err_fail(err, STATUS_INVALID,
                        "%s: '%.40s' is not allowed; allowed: an age such as 2h, or a time such as "
                        "2026-01-31T08:00:00Z",
                        option, text);
    }
    ret->us = job_time_us(text);
    return STATUS_OK;
}

static int64_t moment_us(const struct moment *m, int64_t now_us)
{
    return m->is_age ? now_us - m->us : m->us;
}

/* Writes the time; an empty text if it was not given. */
static void put_moment(const struct moment *m, int64_t now_us, char ret_text[HUMAN_TIME_MAX])
{
    if (m->is_age) {
        int64_t us = moment_us(m, now_us);
        human_iso(us > 0 ? us : 0, ret_text);
    } else if (m->text != NULL) {
        (void)snprintf(ret_text, HUMAN_TIME_MAX, "%s", m->text);
    }
}

/* An age and a time can be compared only once the server's time is known. */
static enum status check_order(const struct moment *since, const struct moment *until,
                               const char *until_name, int64_t now_us, struct err *err)
{
    bool is_known = since->text != NULL && until->text != NULL &&
                    (since->is_age == until->is_age || now_us != 0);
    if (is_known && moment_us(since, now_us) > moment_us(until, now_us)) {
        return err_fail(err, STATUS_INVALID,
                        "--since: '%.40s' is later than --%s '%.40s'; allowed: an earlier time",
                        since->text, until_name, until->text);
    }
    return STATUS_OK;
}

static enum status read_times(struct filter *f, const struct ctl_args *args, int64_t now_us,
                              struct err *err)
{
    struct moment since = {.text = NULL};
    struct moment until = {.text = NULL};
    bool is_age_only = ctl_value(args, "older-than") != NULL;
    const char *until_name = is_age_only ? "older-than" : "until";
    if (is_age_only && ctl_value(args, "until") != NULL) {
        return err_fail(err, STATUS_INVALID, "give either --until or --older-than");
    }
    enum status st = read_moment(args, "since", false, &since, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_moment(args, until_name, is_age_only, &until, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_order(&since, &until, until_name, now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    put_moment(&since, now_us, f->since);
    put_moment(&until, now_us, f->until);
    return STATUS_OK;
}

/* ---- the whole filter ---- */

const char *const filter_options[FILTER_OPTION_COUNT] = {
    "state",      "kind",  "queue",    "tag",   "worker", "since", "until",
    "older-than", "error", "metadata", "batch", "owner",  "map"};

void filter_release(struct filter *f)
{
    given_release(&f->given);
}

bool filter_is_given(const struct ctl_args *args)
{
    for (size_t i = 0; i < FILTER_OPTION_COUNT; i++) {
        if (ctl_value(args, filter_options[i]) != NULL) {
            return true;
        }
    }
    return false;
}

enum status filter_states(struct filter *f, const char *list)
{
    const struct ctl_args args = {.given = {{"state", list}}, .given_count = 1};
    const struct ctl_args *given = f->given.args;
    f->given.args = &args;
    f->is_open = false;
    f->is_finished = false;
    enum status st = read_states(f, &f->given);
    f->given.args = given;
    return st;
}

static enum status read_all(struct filter *f, struct given *g, int64_t now_us)
{
    f->batch = given_number(g, "batch", 1, INT64_MAX);
    f->kinds = read_names(g, "kind", job_kind_check);
    f->queues = read_names(g, "queue", job_queue_check);
    f->worker = given_full(g, "worker");
    f->owner = given_full(g, "owner");
    f->map = given_full(g, "map");
    f->error = given_full(g, "error");
    if (g->err->status != STATUS_OK || read_states(f, g) != STATUS_OK ||
        read_times(f, g->args, now_us, g->err) != STATUS_OK) {
        return g->err->status;
    }
    f->tags = given_tags(g, "tag");
    f->metadata = ctl_value(g->args, "metadata");
    return g->err->status;
}

enum status filter_read(struct filter *ret, const struct ctl_args *args, int64_t now_us,
                        struct err *err)
{
    *ret = (struct filter){.given = GIVEN(args, err)};
    enum status st = read_all(ret, &ret->given, now_us);
    if (st != STATUS_OK || ret->metadata == NULL) {
        return st;
    }
    return job_metadata_check(ret->metadata, strlen(ret->metadata), err);
}
