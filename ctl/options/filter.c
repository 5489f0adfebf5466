/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/options/filter.h"

#include "base/clock.h"
#include "base/parse.h"
#include "ctl/options/job_check.h"
#include "ctl/options/job_time.h"
#include "model/job.h"

/* Those of the view `jobs`: stored states, with available split by when it is due. */
static const char *const open_states[] = {"waiting", "scheduled", "retryable", "available",
                                          "running"};
static const char *const final_states[] = {"completed", "cancelled", "discarded"};

/* ---- lists ---- */

/* The next one of a list, which may be empty; NULL: that was the last. */
static const char *behind_comma(const char *at, size_t len)
{
    return at[len] == ',' ? at + len + 1 : NULL;
}

static enum status put_element(struct buf *out, const char *text, size_t len, struct err *err)
{
    enum status st = buf_append_text(out, out->len > 0 ? ",\"" : "{\"", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = buf_append_escaped(out, text, len, "\"\\", err);
    if (st != STATUS_OK) {
        return st;
    }
    return buf_append_byte(out, '"', err);
}

enum status filter_array(const struct ctl_args *args, const char *name, bool is_split,
                         struct buf *out, struct err *err)
{
    for (size_t i = 0; i < args->given_count; i++) {
        if (strcmp(args->given[i].name, name) != 0) {
            continue;
        }
        for (const char *at = args->given[i].value; at != NULL;) {
            size_t len = is_split ? strcspn(at, ",") : strlen(at);
            if (is_split && len == 0) {
                return err_fail(err, STATUS_INVALID,
                                "--%s: '%.40s' is not allowed; allowed: one or several, with a "
                                "comma between them",
                                name, args->given[i].value);
            }
            enum status st = put_element(out, at, len, err);
            if (st != STATUS_OK) {
                return st;
            }
            at = behind_comma(at, len);
        }
    }
    return out->len > 0 ? buf_append_text(out, "}", err) : STATUS_OK;
}

/* One bad name would match nothing, and the others hide it. */
static enum status check_names(const struct ctl_args *args, const char *option,
                               enum status (*check)(const char *, struct err *), struct err *err)
{
    for (size_t i = 0; i < args->given_count; i++) {
        bool is_it = strcmp(args->given[i].name, option) == 0;
        for (const char *at = is_it ? args->given[i].value : NULL; at != NULL;) {
            char name[JOB_NAME_MAX + 2]; /* one octet more than is allowed */
            size_t len = strcspn(at, ",");
            (void)snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name),
                           at);
            enum status st = check(name, err);
            if (st != STATUS_OK) {
                err_prefix(err, "--%s", option);
                return st;
            }
            at = behind_comma(at, len);
        }
    }
    return STATUS_OK;
}

/* What an unset variable of a script becomes must not mean "any". */
static enum status check_not_empty(const struct ctl_args *args, const char *option, struct err *err)
{
    for (size_t i = 0; i < args->given_count; i++) {
        if (strcmp(args->given[i].name, option) == 0 && args->given[i].value[0] == '\0') {
            return err_fail(err, STATUS_INVALID,
                            "--%s: '' is not allowed; allowed: a text that is not empty", option);
        }
    }
    return STATUS_OK;
}

enum status filter_tags(const struct ctl_args *args, struct buf *out, struct err *err)
{
    enum status st = check_not_empty(args, "tag", err);
    if (st != STATUS_OK) {
        return st;
    }
    return filter_array(args, "tag", false, out, err);
}

static enum status check_texts(const struct ctl_args *args, struct err *err)
{
    enum status st = check_names(args, "kind", job_kind_check, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_names(args, "queue", job_queue_check, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_not_empty(args, "worker", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_not_empty(args, "owner", err);
    if (st != STATUS_OK) {
        return st;
    }
    return check_not_empty(args, "error", err);
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

static enum status read_states(struct filter *f, const struct ctl_args *args, struct err *err)
{
    for (size_t i = 0; i < args->given_count; i++) {
        bool is_state = strcmp(args->given[i].name, "state") == 0;
        enum status st = is_state ? check_states(f, args->given[i].value, err) : STATUS_OK;
        if (st != STATUS_OK) {
            return st;
        }
    }
    if (!f->is_open && !f->is_finished) {
        f->is_open = true;
        f->is_finished = true;
    }
    return filter_array(args, "state", true, &f->states, err);
}

/* ---- times ---- */

/* "2h" ago or a time with its zone. */
struct moment {
    const char *text; /* NULL when the option wasn't given */
    bool is_age;
    int64_t us; /* how long ago, or since 1970 */
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

/* Empty when it wasn't given. */
static void put_moment(const struct moment *m, int64_t now_us, char ret_text[HUMAN_TIME_MAX])
{
    if (m->is_age) {
        int64_t us = moment_us(m, now_us);
        human_iso(us > 0 ? us : 0, ret_text);
    } else if (m->text != NULL) {
        (void)snprintf(ret_text, HUMAN_TIME_MAX, "%s", m->text);
    }
}

/* An age and a time can't be compared before the server has said what time it is. */
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
        return err_fail(err, STATUS_INVALID, "allowed: either --until or --older-than");
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

/* ---- all ---- */

void filter_release(struct filter *f)
{
    buf_release(&f->states);
    buf_release(&f->kinds);
    buf_release(&f->queues);
    buf_release(&f->tags);
}

bool filter_is_given(const struct ctl_args *args)
{
    static const char *const names[] = {"state",  "kind",     "queue", "tag",
                                        "worker", "since",    "until", "older-than",
                                        "error",  "metadata", "batch", "owner"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (ctl_value(args, names[i]) != NULL) {
            return true;
        }
    }
    return false;
}

enum status filter_states(struct filter *f, const char *list, struct err *err)
{
    const struct ctl_args args = {.given = {{"state", list}}, .given_count = 1};
    buf_reset(&f->states);
    f->is_open = false;
    f->is_finished = false;
    return read_states(f, &args, err);
}

enum status filter_read(struct filter *ret, const struct ctl_args *args, int64_t now_us,
                        struct err *err)
{
    *ret = (struct filter){.states = BUF_INIT(FILTER_LIST_MAX),
                           .kinds = BUF_INIT(FILTER_LIST_MAX),
                           .queues = BUF_INIT(FILTER_LIST_MAX),
                           .tags = BUF_INIT(FILTER_LIST_MAX),
                           .worker = ctl_value(args, "worker"),
                           .error = ctl_value(args, "error"),
                           .metadata = ctl_value(args, "metadata"),
                           .batch = ctl_value(args, "batch"),
                           .owner = ctl_value(args, "owner")};
    int64_t batch = 0;
    enum status st = ret->batch == NULL
                         ? STATUS_OK
                         : parse_i64(ret->batch, strlen(ret->batch), 1, INT64_MAX, &batch, err);
    if (st != STATUS_OK) {
        err_prefix(err, "--batch");
        return st;
    }
    st = check_texts(args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_states(ret, args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_times(ret, args, now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = filter_array(args, "kind", true, &ret->kinds, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = filter_array(args, "queue", true, &ret->queues, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = filter_tags(args, &ret->tags, err);
    if (st != STATUS_OK || ret->metadata == NULL) {
        return st;
    }
    return job_metadata_check(ret->metadata, strlen(ret->metadata), err);
}
