/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/file_apply.h"

#include "base/buf.h"
#include "ctl/core/agree.h"

#include <fcntl.h>
#include <unistd.h>

#define READ_BYTES ((size_t)64 << 10)
#define FILE_MAX ((size_t)16 << 20)

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

static enum status read_file(const struct file_apply *p, const char *path, struct buf *out,
                             struct err *err)
{
    autoclose int fd =
        strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot read '%s'", path);
    }
    enum status st = read_all(fd, out, err);
    if (st == STATUS_OK) {
        st = p->check(out->len > 0 ? buf_at(out) : "", out->len, err);
    }
    if (st != STATUS_OK) {
        err_prefix(err, "%s", path);
    }
    return st;
}

/* Writes everything; rolls back unless `is_kept`, and keeps only the table. */
static enum status apply_all(struct file_apply *p, bool is_kept, struct err *err)
{
    table_release(&p->table);
    p->table =
        (struct table){.name = "changes", .columns = p->columns, .column_count = p->column_count};
    p->removed = 0;
    enum status st = admin_exec(p->a, "BEGIN", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = p->write(p, err);
    if (st != STATUS_OK) {
        return st; /* the transaction ends with the session */
    }
    return is_kept ? verb_written(admin_exec(p->a, "COMMIT", err), err)
                   : admin_exec(p->a, "ROLLBACK", err);
}

/* Asks before --prune deletes anything: a file that has lost half of its lines would delete half of
 * the settings. */
static enum status ask(struct ctl *ctl, struct file_apply *p, const struct ctl_args *args,
                       struct err *err)
{
    char question[100];
    enum status st = apply_all(p, false, err);
    if (st != STATUS_OK || p->removed == 0) {
        return st;
    }
    (void)snprintf(question, sizeof question,
                   "%zu %s%s that the file does not have will be deleted.", p->removed, p->noun,
                   p->removed == 1 ? "" : "s");
    return ctl_agree(ctl, args, question);
}

enum status file_apply(struct ctl *ctl, const struct ctl_args *args, struct file_apply *p,
                       struct err *err)
{
    autobuf struct buf text = BUF_INIT(FILE_MAX);
    bool is_dry = ctl_value(args, "dry-run") != NULL;
    p->is_pruning = ctl_value(args, "prune") != NULL;
    enum status st = read_file(p, args->words[0], &text, err);
    if (st != STATUS_OK) {
        return st;
    }
    p->text = buf_at(&text);
    st = ctl_session(ctl, &p->a, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (p->is_pruning && !is_dry && ctl_is_asking(args)) {
        st = ask(ctl, p, args, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return apply_all(p, !is_dry, err);
}

void file_apply_release(struct file_apply *p)
{
    admin_close(p->a);
    table_release(&p->table);
}
