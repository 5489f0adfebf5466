/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/jobs/job_log.h"

#include "base/buf.h"
#include "base/parse.h"

#define THERE_MAX 2000 /* bytes of the list of existing logs */

static bool is_all(const struct job_log *wanted)
{
    return wanted->attempt != NULL && strcmp(wanted->attempt, "all") == 0;
}

static enum status check_number(const char *option, const char *text, int64_t min,
                                const char *other, struct err *err)
{
    int64_t n = 0;
    if (text == NULL || parse_i64(text, strlen(text), min, INT32_MAX, &n, NULL) == STATUS_OK) {
        return STATUS_OK;
    }
    return err_fail(err, STATUS_INVALID, "%s: '%.40s' is not allowed; allowed: %lld to %d%s",
                    option, text, (long long)min, INT32_MAX, other);
}

enum status job_log_check(const struct job_log *wanted, struct err *err)
{
    enum status st =
        is_all(wanted) ? STATUS_OK : check_number("--log", wanted->attempt, 1, ", or all", err);
    if (st != STATUS_OK) {
        return st;
    }
    return check_number("--generation", wanted->generation, 0, "", err);
}

static bool is_of_generation(const struct job_log *wanted, const struct table *t, size_t row)
{
    return wanted->generation == NULL ||
           strcmp(table_value(t, row, "generation"), wanted->generation) == 0;
}

/* `column`: where the log is. */
static bool is_wanted(const struct job_log *wanted, const struct table *t, size_t row,
                      const char *column)
{
    return table_value(t, row, column) != NULL && is_of_generation(wanted, t, row) &&
           (wanted->attempt == NULL || is_all(wanted) ||
            strcmp(table_value(t, row, "attempt"), wanted->attempt) == 0);
}

static enum status print_one(const struct table *t, size_t row, const char *column, FILE *out,
                             struct err *err)
{
    char name[64];
    const char *generation = table_value(t, row, "generation");
    bool is_first = strcmp(generation, "0") == 0;
    const struct table_column columns[] = {{name, CELL_TEXT | CELL_PROSE}};
    const char *const values[] = {table_value(t, row, column)};
    (void)snprintf(name, sizeof name, "log_of_attempt_%s%s%s", table_value(t, row, "attempt"),
                   is_first ? "" : "_of_generation_", is_first ? "" : generation);
    auto_table struct table log = TABLE("log", columns);
    (void)fputc('\n', out);
    enum status st = table_add(&log, values, err);
    if (st != STATUS_OK) {
        return st;
    }
    return table_print(&log, false, out, err);
}

/* Lists the attempts that have logs, of the requested generation if one was given. */
static enum status put_what_is_there(const struct job_log *wanted, const struct table *attempts,
                                     struct buf *out, struct err *err)
{
    enum status st = STATUS_OK;
    for (size_t row = 0; st == STATUS_OK && row < attempts->row_count; row++) {
        char one[64];
        if (table_value(attempts, row, "log_tail") == NULL || out->len > THERE_MAX / 2) {
            continue;
        }
        (void)snprintf(one, sizeof one, "%s%s of generation %s", out->len > 0 ? ", " : "",
                       table_value(attempts, row, "attempt"),
                       table_value(attempts, row, "generation"));
        st = is_of_generation(wanted, attempts, row) ? buf_append_text(out, one, err) : STATUS_OK;
    }
    return st;
}

static enum status fail_absent(const struct job_log *wanted, const struct table *attempts,
                               struct err *err)
{
    autobuf struct buf there = BUF_INIT(THERE_MAX);
    const struct job_log any = {.generation = NULL};
    enum status st = put_what_is_there(wanted, attempts, &there, err);
    if (st == STATUS_OK && there.len == 0) {
        st = put_what_is_there(&any, attempts, &there, err);
    }
    if (st == STATUS_OK) {
        st = buf_append_byte(&there, '\0', err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    bool is_any = wanted->attempt == NULL || is_all(wanted);
    return err_fail(
        err, STATUS_NOT_FOUND, "%s: there is no log of %s%s%s%s; %s%s",
        wanted->attempt != NULL ? "--log" : "--generation", is_any ? "an attempt" : "attempt ",
        is_any ? "" : wanted->attempt, wanted->generation != NULL ? " of generation " : "",
        wanted->generation != NULL ? wanted->generation : "",
        there.len > 1 ? "there are those of attempts " : "no log was kept", buf_at(&there));
}

enum status job_log_print(const struct job_log *wanted, const struct table *job,
                          const struct table *attempts, FILE *out, struct err *err)
{
    enum status st = STATUS_OK;
    size_t last = attempts->row_count;
    for (size_t row = 0; st == STATUS_OK && row < attempts->row_count; row++) {
        if (is_wanted(wanted, attempts, row, "log_tail")) {
            last = row;
            st = is_all(wanted) ? print_one(attempts, row, "log_tail", out, err) : STATUS_OK;
        }
    }
    if (st != STATUS_OK) {
        return st;
    }
    if (is_wanted(wanted, job, 0, "log")) {
        return print_one(job, 0, "log", out, err);
    }
    if (last < attempts->row_count) {
        return is_all(wanted) ? STATUS_OK : print_one(attempts, last, "log_tail", out, err);
    }
    bool is_asked = wanted->attempt != NULL || wanted->generation != NULL;
    return is_asked ? fail_absent(wanted, attempts, err) : STATUS_OK;
}
