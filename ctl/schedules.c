/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl schedules, all but apply. */
#include "ctl/schedules.h"

#include "base/parse.h"
#include "ctl/args_file.h"
#include "ctl/filter.h"
#include "ctl/job_check.h"
#include "ctl/table.h"
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
        {"overlap", CELL_TEXT},        {"next_at", CELL_TEXT},
        {"fired_at", CELL_TEXT},       {"created_at", CELL_TEXT},
        {"updated_at", CELL_TEXT},     {"failures", CELL_NUMBER},
        {"failed_at", CELL_TEXT},      {"error", CELL_TEXT}};
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
    char timeout[SCHEDULE_INTERVAL_MAX];
    char window[SCHEDULE_INTERVAL_MAX];
};

static enum status set_interval(const struct ctl_args *args, const char *name, char *room,
                                const char **ret_value, struct err *err)
{
    char option[24];
    const char *text = ctl_value(args, name);
    (void)snprintf(option, sizeof option, "--%s", name);
    if (text == NULL) {
        return STATUS_OK;
    }
    *ret_value = room;
    return schedule_interval(option, text, room, err);
}

/* The texts of the options; what is wrong with cron, zone and policies the schema says. */
static enum status set_values(const struct ctl_args *args, struct set_room *room,
                              const char **values, struct err *err)
{
    values[SCHEDULE_NAME] = args->words[0];
    values[SCHEDULE_KIND] = args->words[1];
    values[SCHEDULE_CRON] = args->words[2];
    values[SCHEDULE_QUEUE] = ctl_value(args, "queue");
    values[SCHEDULE_PRIORITY] = ctl_value(args, "priority");
    values[SCHEDULE_ZONE] = ctl_value(args, "zone");
    values[SCHEDULE_MAX_ATTEMPTS] = ctl_value(args, "max-attempts");
    values[SCHEDULE_METADATA] = ctl_value(args, "metadata");
    values[SCHEDULE_MISSED] = ctl_value(args, "missed");
    values[SCHEDULE_OVERLAP] = ctl_value(args, "overlap");
    enum status st =
        args_file_read("args", ctl_value(args, "args"), &room->args, &values[SCHEDULE_ARGS], err);
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
    st = set_interval(args, "timeout", room->timeout, &values[SCHEDULE_TIMEOUT], err);
    if (st != STATUS_OK) {
        return st;
    }
    st = set_interval(args, "missed-window", room->window, &values[SCHEDULE_MISSED_WINDOW], err);
    if (st != STATUS_OK) {
        return st;
    }
    st = filter_tags(args, &room->tags, err);
    values[SCHEDULE_TAGS] = room->tags.len > 0 ? buf_at(&room->tags) : NULL;
    return st;
}

static void set_room_release(struct set_room *room)
{
    buf_release(&room->args);
    buf_release(&room->tags);
}

enum status schedules_set(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    CLEANUP(set_room_release)
    struct set_room room = {.args = BUF_INIT(0), .tags = BUF_INIT(JOB_METADATA_MAX)};
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
