/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl schedules apply: all schedules of a file in one transaction, or none. */
#include "ctl/agree.h"
#include "ctl/schedules.h"
#include "ctl/table.h"
#include "sql/queries.h"

#include <fcntl.h>
#include <unistd.h>

#define READ_BYTES ((size_t)64 << 10)
#define FILE_MAX ((size_t)16 << 20)
#define DETAIL_MAX ((size_t)256 << 10)

static const struct table_column columns[] = {{"change", CELL_TEXT},
                                              {"name", CELL_TEXT},
                                              {"next_at", CELL_TEXT},
                                              {"detail", CELL_TEXT | CELL_PROSE}};

struct apply {
    struct admin *a;
    const char *text; /* of the file */
    bool is_pruning;
    struct table table; /* one row per schedule */
    size_t deleted;
};

/* ---- the file ---- */

static enum status read_all(int fd, struct buf *out, struct err *err)
{
    for (;;) {
        enum status st = buf_reserve(out, READ_BYTES, err);
        if (st != STATUS_OK) {
            return st;
        }
        ssize_t n = read(fd, buf_at(out) + out->len, READ_BYTES);
        if (n < 0 && errno != EINTR) {
            return err_fail_sys(err, STATUS_INVALID, errno, "cannot read");
        }
        if (n == 0) {
            return STATUS_OK;
        }
        buf_grew(out, n > 0 ? (size_t)n : 0);
    }
}

static enum status read_file(const char *path, struct buf *out, struct err *err)
{
    autoclose int fd =
        strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot read '%s'", path);
    }
    enum status st = read_all(fd, out, err);
    if (st == STATUS_OK) {
        st = schedule_file_check(out->len > 0 ? buf_at(out) : "", out->len, err);
    }
    if (st != STATUS_OK) {
        err_prefix(err, "%s", path);
    }
    return st;
}

/* ---- one schedule ---- */

static bool is_same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* "cron: 0 1 * * * -> 0 2 * * *; zone: …" */
static enum status describe(const struct admin_rows *before, const struct admin_rows *after,
                            struct buf *out, struct err *err)
{
    for (int i = 0; i < SCHEDULE_FIELDS; i++) {
        const char *was = admin_value(before, 0, i);
        const char *is = admin_value(after, 0, i);
        if (is_same(was, is)) {
            continue;
        }
        enum status st = buf_printf(out, err, "%s%s: %.1000s -> %.1000s", out->len > 0 ? "; " : "",
                                    schedule_field_key((enum schedule_field)i),
                                    was == NULL ? "none" : was, is == NULL ? "none" : is);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static enum status set_one(struct apply *p, const char *const *values, struct err *err)
{
    auto_admin_rows struct admin_rows *before = NULL;
    auto_admin_rows struct admin_rows *set = NULL;
    auto_admin_rows struct admin_rows *after = NULL;
    autobuf struct buf detail = BUF_INIT(DETAIL_MAX);
    enum status st = admin_query(p->a, &SQL_ADMIN_SCHEDULE_VALUES, values, &before, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_query(p->a, &SQL_ADMIN_SCHEDULE_SET, values, &set, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_query(p->a, &SQL_ADMIN_SCHEDULE_VALUES, values, &after, err);
    if (st != STATUS_OK) {
        return st;
    }
    bool is_new = admin_row_count(before) == 0;
    st = is_new ? STATUS_OK : describe(before, after, &detail, err);
    if (st != STATUS_OK) {
        return st;
    }
    bool is_changed = detail.len > 0;
    const char *row[] = {is_new       ? "add"
                         : is_changed ? "change"
                                      : "same",
                         values[SCHEDULE_NAME], admin_value(set, 0, 1),
                         is_changed ? buf_at(&detail) : NULL};
    return table_add(&p->table, row, err);
}

/* The durations of claimctl to those of PostgreSQL; schedule_file_check() has seen them. */
static enum status set_row(struct apply *p, const struct admin_rows *rows, int row, struct err *err)
{
    char intervals[SCHEDULE_FIELDS][SCHEDULE_INTERVAL_MAX];
    const char *values[SCHEDULE_FIELDS];
    enum status st = STATUS_OK;
    for (int i = 0; st == STATUS_OK && i < SCHEDULE_FIELDS; i++) {
        enum schedule_field field = (enum schedule_field)i;
        values[i] = admin_value(rows, row, i);
        if (values[i] != NULL && schedule_is_interval(field)) {
            st = schedule_interval(field, schedule_field_key(field), values[i], intervals[i], err);
            values[i] = intervals[i];
        }
    }
    if (st == STATUS_OK) {
        st = set_one(p, values, err);
    }
    if (st != STATUS_OK) {
        err_prefix(err, "schedules[%d] '%.64s'", row, values[SCHEDULE_NAME]);
    }
    return st;
}

/* ---- all of them ---- */

static enum status set_all(struct apply *p, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(p->a, &SQL_ADMIN_SCHEDULES_READ, &p->text, &rows, err);
    for (int i = 0; st == STATUS_OK && i < admin_row_count(rows); i++) {
        st = set_row(p, rows, i, err);
    }
    return st;
}

static enum status prune(struct apply *p, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(p->a, &SQL_ADMIN_SCHEDULES_OTHERS, &p->text, &rows, err);
    for (int i = 0; st == STATUS_OK && i < admin_row_count(rows); i++) {
        const char *name = admin_value(rows, i, 0);
        const char *row[] = {"delete", name, NULL, NULL};
        auto_admin_rows struct admin_rows *gone = NULL;
        st = admin_query(p->a, &SQL_ADMIN_SCHEDULE_DELETE, &name, &gone, err);
        if (st == STATUS_OK) {
            st = table_add(&p->table, row, err);
        }
        p->deleted++;
    }
    return st;
}

/* Does it all; nothing stays but the table unless `is_kept`. */
static enum status apply_all(struct apply *p, bool is_kept, struct err *err)
{
    table_release(&p->table);
    p->table = (struct table)TABLE("changes", columns);
    p->deleted = 0;
    enum status st = admin_exec(p->a, "BEGIN", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = set_all(p, err);
    if (st == STATUS_OK && p->is_pruning) {
        st = prune(p, err);
    }
    if (st != STATUS_OK) {
        return st; /* the session ends, and the transaction with it */
    }
    return is_kept ? ctl_written(admin_exec(p->a, "COMMIT", err), err)
                   : admin_exec(p->a, "ROLLBACK", err);
}

/* A file that lost half of its lines would delete half of the schedules. */
static enum status ask(struct apply *p, const struct ctl_args *args, struct err *err)
{
    char question[80];
    enum status st = apply_all(p, false, err);
    if (st != STATUS_OK || p->deleted == 0) {
        return st;
    }
    (void)snprintf(question, sizeof question,
                   "%zu schedule%s that the file does not have will be deleted.", p->deleted,
                   p->deleted == 1 ? "" : "s");
    return ctl_agree(args, question, err);
}

static void apply_release(struct apply *p)
{
    admin_close(p->a);
    table_release(&p->table);
}

enum status schedules_apply(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    autobuf struct buf text = BUF_INIT(FILE_MAX);
    CLEANUP(apply_release) struct apply p = {.is_pruning = ctl_value(args, "prune") != NULL};
    const struct table *const tables[] = {&p.table};
    bool is_dry = ctl_value(args, "dry-run") != NULL;
    bool is_asking = p.is_pruning && !is_dry && ctl_is_asking(args);
    enum status st = read_file(args->words[0], &text, err);
    if (st != STATUS_OK) {
        return st;
    }
    p.text = buf_at(&text);
    st = ctl_session(ctl, &p.a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = is_asking ? ask(&p, args, err) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    st = apply_all(&p, !is_dry, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}
