/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl schedules, all but apply. */
#include "ctl/commands/schedules.h"

#include "base/parse.h"
#include "ctl/core/table.h"
#include "ctl/options/args_file.h"
#include "ctl/options/filter.h"
#include "ctl/options/job_check.h"
#include "model/job.h"
#include "sql/queries.h"

#define NEXT_STANDARD "5"
#define NEXT_MAX 1000

static enum status not_found(const char *name, struct err *err)
{
    return err_fail(err, STATUS_NOT_FOUND, "schedule '%.64s' not found", name);
}

/* ---- looking ---- */

enum status schedules_list(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {{"name", CELL_TEXT},
                                                  {"state", CELL_TEXT},
                                                  {"cron", CELL_TEXT},
                                                  {"zone", CELL_TEXT},
                                                  {"kind", CELL_TEXT},
                                                  {"queue", CELL_TEXT | CELL_WIDE},
                                                  {"next_at", CELL_TIME},
                                                  {"fired_at", CELL_TIME},
                                                  {"missed", CELL_TEXT | CELL_WIDE},
                                                  {"overlap", CELL_TEXT | CELL_WIDE},
                                                  {"error", CELL_TEXT | CELL_LONG}};
    auto_admin struct admin *a = NULL;
    auto_table struct table table = TABLE("schedules", columns);
    const struct table *const tables[] = {&table};
    (void)args;
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&table, a, &SQL_ADMIN_SCHEDULES_LIST, NULL, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_now(a, &table.now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

static const struct table_column next_columns[] = {{"due_at", CELL_TEXT},
                                                   {"local_time", CELL_TEXT}};

enum status schedules_show(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {
        {"name", CELL_TEXT},           {"state", CELL_TEXT},
        {"cron", CELL_TEXT},           {"zone", CELL_TEXT},
        {"kind", CELL_TEXT},           {"queue", CELL_TEXT},
        {"priority", CELL_NUMBER},     {"args", CELL_JSON},
        {"max_attempts", CELL_NUMBER}, {"timeout_s", CELL_SECONDS},
        {"tags", CELL_TEXT},           {"metadata", CELL_JSON},
        {"missed", CELL_TEXT},         {"missed_window_s", CELL_SECONDS},
        {"overlap", CELL_TEXT},        {"exclusive_key", CELL_TEXT},
        {"second_key", CELL_TEXT},     {"share_key", CELL_TEXT},
        {"backoff", CELL_TEXT},        {"unique_key", CELL_TEXT},
        {"unique_by", CELL_TEXT},      {"unique_for_s", CELL_SECONDS},
        {"unique_states", CELL_TEXT},  {"on_conflict", CELL_TEXT},
        {"jitter_s", CELL_SECONDS},    {"grace_s", CELL_SECONDS},
        {"next_at", CELL_TEXT},        {"fired_at", CELL_TEXT},
        {"created_at", CELL_TEXT},     {"updated_at", CELL_TEXT},
        {"failures", CELL_NUMBER},     {"failed_at", CELL_TEXT},
        {"error", CELL_TEXT}};
    static const struct table_column fire_columns[] = {{"due_at", CELL_TEXT},
                                                       {"outcome", CELL_TEXT},
                                                       {"job_id", CELL_NUMBER},
                                                       {"job_state", CELL_TEXT},
                                                       {"late_s", CELL_SECONDS}};
    const char *params[] = {args->words[0], NEXT_STANDARD};
    auto_admin struct admin *a = NULL;
    auto_table struct table schedule = TABLE("schedule", columns);
    auto_table struct table next = TABLE("next", next_columns);
    auto_table struct table fires = TABLE("fires", fire_columns);
    const struct table *const tables[] = {&schedule, &next, &fires};
    schedule.is_record = true;
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&schedule, a, &SQL_ADMIN_SCHEDULE_SHOW, params, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (schedule.row_count == 0) {
        return not_found(params[0], err);
    }
    st = table_query(&next, a, &SQL_ADMIN_SCHEDULE_NEXT, params, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&fires, a, &SQL_ADMIN_SCHEDULE_FIRES, params, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, ARRAY_COUNT(tables), ctl->is_json, ctl->out, err);
}

enum status schedules_next(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const char *count = ctl_value(args, "count");
    const char *params[] = {args->words[0], count == NULL ? NEXT_STANDARD : count};
    int64_t number = 0;
    auto_admin struct admin *a = NULL;
    auto_table struct table table = TABLE("next", next_columns);
    const struct table *const tables[] = {&table};
    enum status st = parse_i64(params[1], strlen(params[1]), 1, NEXT_MAX, &number, err);
    if (st != STATUS_OK) {
        err_prefix(err, "--count");
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&table, a, &SQL_ADMIN_SCHEDULE_NEXT, params, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (table.row_count == 0) {
        return not_found(params[0], err);
    }
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

/* ---- one statement on one schedule ---- */

static enum status act(struct ctl *ctl, const struct ctl_args *args,
                       const struct pg_statement *statement, struct table *table, struct err *err)
{
    const char *params[] = {args->words[0]};
    auto_admin struct admin *a = NULL;
    const struct table *const tables[] = {table};
    table->is_record = true;
    enum status st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_written(table_query(table, a, statement, params, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    if (table->row_count == 0) {
        return not_found(params[0], err);
    }
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}

static const struct table_column state_columns[] = {{"name", CELL_TEXT}, {"state", CELL_TEXT}};
static const struct table_column due_columns[] = {{"name", CELL_TEXT}, {"next_at", CELL_TEXT}};

enum status schedules_pause(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_table struct table table = TABLE("schedule", state_columns);
    return act(ctl, args, &SQL_ADMIN_SCHEDULE_PAUSE, &table, err);
}

enum status schedules_resume(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_table struct table table = TABLE("schedule", due_columns);
    return act(ctl, args, &SQL_ADMIN_SCHEDULE_RESUME, &table, err);
}

enum status schedules_delete(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    auto_table struct table table = TABLE("schedule", state_columns);
    return act(ctl, args, &SQL_ADMIN_SCHEDULE_DELETE, &table, err);
}

enum status schedules_run(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {{"id", CELL_NUMBER}};
    auto_table struct table table = TABLE("job", columns);
    return act(ctl, args, &SQL_ADMIN_SCHEDULE_RUN, &table, err);
}

/* ---- set ---- */

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
    const char *values[SCHEDULE_FIELDS] = {0};
    auto_admin struct admin *a = NULL;
    auto_table struct table table = TABLE("schedule", due_columns);
    const struct table *const tables[] = {&table};
    table.is_record = true;
    enum status st = set_values(args, &room, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_written(table_query(&table, a, &SQL_ADMIN_SCHEDULE_SET, values, err), err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}
