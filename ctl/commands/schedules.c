/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl schedules set. */
#include "ctl/commands/schedules.h"

#include "base/parse.h"
#include "ctl/core/table_text.h"
#include "ctl/options/args_file.h"
#include "ctl/options/filter.h"
#include "ctl/options/job_check.h"
#include "model/job.h"
#include "sql/queries.h"

static enum status check_number(const struct ctl_args *args, const char *name, int64_t min,
                                int64_t max, struct err *err)
{
    const char *text = ctl_value(args, name);
    int64_t value = 0;
    enum status st =
        text == NULL ? STATUS_OK : parse_i64(text, strlen(text), min, max, &value, err);
    if (st != STATUS_OK) {
        err_prefix(err, "--%s", name);
    }
    return st;
}

struct set_room {
    struct buf args;
    struct buf tags;
    struct buf unique_by;
    char intervals[SCHEDULE_FIELDS][SCHEDULE_INTERVAL_MAX];
};

/* The options that are taken as they are, and those that are times. */
static const struct {
    enum schedule_field field;
    const char *option;
} plain_options[] = {{SCHEDULE_QUEUE, "queue"},
                     {SCHEDULE_PRIORITY, "priority"},
                     {SCHEDULE_ZONE, "zone"},
                     {SCHEDULE_MAX_ATTEMPTS, "max-attempts"},
                     {SCHEDULE_TIMEOUT, "timeout"},
                     {SCHEDULE_METADATA, "metadata"},
                     {SCHEDULE_MISSED, "missed"},
                     {SCHEDULE_MISSED_WINDOW, "missed-window"},
                     {SCHEDULE_OVERLAP, "overlap"},
                     {SCHEDULE_EXCLUSIVE_KEY, "exclusive"},
                     {SCHEDULE_SECOND_KEY, "second"},
                     {SCHEDULE_SHARE_KEY, "share"},
                     {SCHEDULE_BACKOFF, "backoff"},
                     {SCHEDULE_UNIQUE_KEY, "unique"},
                     {SCHEDULE_UNIQUE_FOR, "unique-for"},
                     {SCHEDULE_UNIQUE_STATES, "unique-states"},
                     {SCHEDULE_ON_CONFLICT, "on-conflict"},
                     {SCHEDULE_JITTER, "jitter"},
                     {SCHEDULE_GRACE, "grace"}};

static enum status plain_values(const struct ctl_args *args, struct set_room *room,
                                const char **values, struct err *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(plain_options); i++) {
        char option[24];
        enum schedule_field field = plain_options[i].field;
        const char *text = ctl_value(args, plain_options[i].option);
        values[field] = text;
        if (text == NULL || !schedule_is_interval(field)) {
            continue;
        }
        (void)snprintf(option, sizeof option, "--%s", plain_options[i].option);
        values[field] = room->intervals[field];
        enum status st = schedule_interval(field, option, text, room->intervals[field], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

/* Not a matter of the schema, for which the default of on_conflict is a value like others. */
static enum status check_unique(const struct ctl_args *args, struct err *err)
{
    bool is_unique = ctl_value(args, "unique") != NULL || ctl_value(args, "unique-by") != NULL;
    if (!is_unique && ctl_value(args, "on-conflict") != NULL) {
        return err_fail(err, STATUS_INVALID, "--on-conflict needs --unique or --unique-by");
    }
    return STATUS_OK;
}

/* The texts of the options; what is wrong with cron, zone, keys and policies the schema says. */
static enum status set_values(const struct ctl_args *args, struct set_room *room,
                              const char **values, struct err *err)
{
    values[SCHEDULE_NAME] = args->words[0];
    values[SCHEDULE_KIND] = args->words[1];
    values[SCHEDULE_CRON] = args->words[2];
    enum status st = plain_values(args, room, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = args_file_read("args", ctl_value(args, "args"), &room->args, &values[SCHEDULE_ARGS], err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *json = values[SCHEDULE_ARGS];
    st = json == NULL ? STATUS_OK : job_args_check(json, strlen(json), err);
    if (st != STATUS_OK) {
        return st;
    }
    json = values[SCHEDULE_METADATA];
    st = json == NULL ? STATUS_OK : job_metadata_check(json, strlen(json), err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_number(args, "priority", 0, JOB_PRIORITY_MAX, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_number(args, "max-attempts", 1, INT32_MAX, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_unique(args, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = filter_array(args, "unique-by", true, &room->unique_by, err);
    if (st != STATUS_OK) {
        return st;
    }
    values[SCHEDULE_UNIQUE_BY] = room->unique_by.len > 0 ? buf_at(&room->unique_by) : NULL;
    st = filter_tags(args, &room->tags, err);
    values[SCHEDULE_TAGS] = room->tags.len > 0 ? buf_at(&room->tags) : NULL;
    return st;
}

static void set_room_release(struct set_room *room)
{
    buf_release(&room->args);
    buf_release(&room->tags);
    buf_release(&room->unique_by);
}

enum status schedules_set(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    CLEANUP(set_room_release)
    struct set_room room = {.args = BUF_INIT(0),
                            .tags = BUF_INIT(JOB_METADATA_MAX),
                            .unique_by = BUF_INIT(FILTER_LIST_MAX)};
    struct verb_call call = {.verb = &VERB_SCHEDULE_SET};
    enum status st = set_values(args, &room, call.params, err);
    if (st != STATUS_OK) {
        return st;
    }
    return ctl_run_call(ctl, args, &call, err);
}
