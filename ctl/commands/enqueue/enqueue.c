/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl enqueue: inserts a file of jobs by COPY, or one job. */
#include "base/buf.h"
#include "base/parse.h"
#include "ctl/commands/enqueue/enqueue_one.h"
#include "ctl/commands/enqueue/job_line.h"
#include "ctl/commands/enqueue/served.h"
#include "ctl/core/ctl.h"
#include "ctl/core/progress.h"
#include "ctl/core/table_text.h"
#include "ctl/options/given.h"
#include "model/job.h"
#include "sql/queries.h"

#include <fcntl.h>
#include <sys/stat.h>

#define READ_BYTES ((size_t)256 << 10)
#define COPY_BYTES ((size_t)256 << 10) /* rows gather up to here: some thousands of small jobs */
#define COPY_BYTES_MAX (COPY_BYTES + 3 * JOB_LINE_MAX)
#define REQUESTS_MAX 1000 /* per call of enqueue_many() */

struct file_job {
    int fd;
    int64_t now_us;       /* PostgreSQL's clock at the start */
    int64_t line;         /* the one being read, from 1 */
    struct buf in;        /* read, not parsed yet */
    struct buf rows;      /* parsed, not sent yet */
    struct buf requests;  /* likewise, for enqueue_many() */
    int64_t request_line; /* the first line in `requests` */
    /* Lines are sent with enqueue_many() instead of COPY: since the first line that needs it, so
     * that they keep their order; from the first line on if a queue may be full, or for a batch. */
    bool is_request;
    bool is_copying;
    const char *batch; /* the batch to which they are added; NULL: none */
    int64_t bytes;     /* of the lines parsed */
    struct progress progress;
    struct served served;
    bool is_strict;
    bool is_dry; /* try it without effect */
    struct admin *admin;
    struct admin *side; /* a second session, used while the first one copies */
};

/* Finds the next line: *ret_len bytes of buf_at(&f->in), without its newline. NOT_FOUND at the
 * end. */
static enum status next_line(struct file_job *f, size_t *ret_len, struct err *err)
{
    size_t searched = 0;
    for (;;) {
        const char *at = f->in.len > 0 ? buf_at(&f->in) : "";
        size_t fresh = f->in.len > searched ? f->in.len - searched : 0;
        const char *newline = fresh > 0 ? memchr(at + searched, '\n', fresh) : NULL;
        if (newline != NULL) {
            *ret_len = (size_t)(newline - at);
            return STATUS_OK;
        }
        searched = f->in.len;
        if (searched > JOB_LINE_MAX) {
            return err_fail(err, STATUS_INVALID, "longer than %zu bytes", JOB_LINE_MAX);
        }
        enum status st = buf_reserve(&f->in, READ_BYTES, err);
        if (st != STATUS_OK) {
            return st;
        }
        ssize_t n = read(f->fd, buf_at(&f->in) + f->in.len, READ_BYTES);
        if (n < 0 && errno != EINTR) {
            return err_fail_sys(err, STATUS_INTERNAL, errno, "cannot read");
        }
        if (n == 0) {
            *ret_len = searched;
            return searched > 0 ? STATUS_OK : STATUS_NOT_FOUND; /* an unterminated last line */
        }
        buf_grew(&f->in, n > 0 ? (size_t)n : 0);
    }
}

static enum status send_rows(struct file_job *f, struct err *err)
{
    enum status st =
        admin_copy_send(f->admin, f->rows.len > 0 ? buf_at(&f->rows) : "", f->rows.len, err);
    buf_reset(&f->rows);
    progress_note(&f->progress, f->line, f->bytes);
    return st;
}

/* Notes the kind and queue of the row of COPY that begins there: kind, args, queue, separated by
 * tabs. */
static void note_kind(struct file_job *f, size_t row)
{
    const char *kind = buf_at(&f->rows) + row;
    size_t kind_len = strcspn(kind, "\t");
    const char *args = kind + kind_len + 1;
    const char *queue = args + strcspn(args, "\t") + 1;
    served_note(&f->served, queue, strcspn(queue, "\t"), kind, kind_len);
}

/* Replaces the place by the line: "jobs[3].queue: …" refers to the fourth line of the request. */
static enum status name_line(const struct file_job *f, enum status st, const struct err *why,
                             struct err *err)
{
    int64_t n = 0;
    const char *at = strstr(why->msg, "jobs[");
    const char *number = at == NULL ? "" : at + strlen("jobs[");
    size_t digits = strspn(number, "0123456789");
    if (parse_i64(number, digits, 0, REQUESTS_MAX, &n, NULL) != STATUS_OK) {
        return err_fail(err, st, "%s", why->msg);
    }
    const char *text = number + digits + strspn(number + digits, "].: ");
    return err_fail(err, st, "line %lld: %s", (long long)(f->request_line + n), text);
}

static enum status send_requests(struct file_job *f, struct err *err)
{
    struct err why = {0};
    auto_admin_rows struct admin_rows *rows = NULL;
    if (f->requests.len == 0) {
        return STATUS_OK;
    }
    enum status st = buf_append_byte(&f->requests, ']', err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *const params[] = {buf_at(&f->requests), f->batch};
    st = admin_query(f->admin, &SQL_ADMIN_ENQUEUE_MANY, params, &rows, &why);
    if (st != STATUS_OK) {
        return name_line(f, st, &why, err);
    }
    buf_reset(&f->requests);
    f->request_line = 0;
    progress_note(&f->progress, f->line, f->bytes);
    return STATUS_OK;
}

/* Ends the COPY at the first line that cannot be a row. The rows before it are stored, and it comes
 * after them. */
static enum status leave_copy(struct file_job *f, struct err *err)
{
    enum status st = send_rows(f, err);
    if (st != STATUS_OK) {
        return st;
    }
    f->is_copying = false;
    return admin_copy_end(f->admin, err);
}

static enum status take_line(struct file_job *f, size_t len, struct err *err)
{
    size_t row = f->rows.len;
    bool was_request = f->is_request;
    enum status st =
        job_line_put(buf_at(&f->in), len, f->now_us, &f->is_request, &f->rows, &f->requests, err);
    if (st != STATUS_OK) {
        return st;
    }
    note_kind(f, row);
    if (!f->is_request) {
        return STATUS_OK;
    }
    buf_cut(&f->rows, row);
    f->request_line = f->request_line == 0 ? f->line : f->request_line;
    return was_request ? STATUS_OK : leave_copy(f, err);
}

static enum status send_some(struct file_job *f, struct err *err)
{
    bool is_full = f->requests.len >= COPY_BYTES ||
                   (f->request_line > 0 && f->line - f->request_line + 1 >= REQUESTS_MAX);
    if (f->is_request) {
        return is_full ? send_requests(f, err) : STATUS_OK;
    }
    return f->rows.len >= COPY_BYTES ? send_rows(f, err) : STATUS_OK;
}

static enum status copy_lines(struct file_job *f, struct err *err)
{
    for (;;) {
        size_t len = 0;
        struct err why = {0};
        f->line++;
        enum status st = next_line(f, &len, &why);
        if (st == STATUS_NOT_FOUND) {
            f->line--;
            return f->is_request ? send_requests(f, err) : leave_copy(f, err);
        }
        if (st == STATUS_OK) {
            st = take_line(f, len, &why);
        }
        if (st != STATUS_OK) {
            return err_fail(err, st, "line %lld: %s", (long long)f->line, why.msg);
        }
        size_t taken = len < f->in.len ? len + 1 : len;
        buf_consume(&f->in, taken);
        f->bytes += (int64_t)taken;
        st = send_some(f, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
}

static enum status start_copy(struct file_job *f, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(f->admin, &SQL_ADMIN_HAS_MAX_OPEN, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    f->is_request = f->batch != NULL || strcmp(admin_value(rows, 0, 0), "t") == 0;
    if (f->is_request) {
        return STATUS_OK;
    }
    st = admin_copy_start(f->admin, &SQL_ADMIN_COPY, err);
    f->is_copying = st == STATUS_OK;
    return st;
}

/* The whole file is one transaction: a bad line leaves nothing behind. */
static enum status copy_file(struct file_job *f, struct err *err)
{
    enum status st = verb_now(f->admin, &f->now_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = admin_exec(f->admin, "BEGIN", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = start_copy(f, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = copy_lines(f, err);
    if (st == STATUS_OK) {
        st = served_check(&f->served, f->side, f->is_strict, err);
    }
    if (st != STATUS_OK && f->is_copying) {
        admin_copy_abort(f->admin);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return verb_written(admin_exec(f->admin, f->is_dry ? "ROLLBACK" : "COMMIT", err), err);
}

/* The caller closes *ret_fd, whatever the status. */
static enum status open_file(const char *path, bool is_stdin, int *ret_fd, int64_t *ret_bytes,
                             struct err *err)
{
    struct stat info;
    *ret_bytes = 0;
    *ret_fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (*ret_fd < 0 || fstat(*ret_fd, &info) != 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot read '%s'", path);
    }
    if (S_ISDIR(info.st_mode)) {
        return err_fail_sys(err, STATUS_INVALID, EISDIR, "cannot read '%s'", path);
    }
    *ret_bytes = S_ISREG(info.st_mode) ? (int64_t)info.st_size : 0;
    return STATUS_OK;
}

static enum status print_count(const struct ctl *ctl, int64_t jobs, bool is_dry, struct err *err)
{
    static const struct table_column columns[] = {
        {"matched", CELL_NUMBER}, {"enqueued", CELL_NUMBER}, {"is_dry_run", CELL_BOOL}};
    char count[24];
    const char *const values[] = {count, is_dry ? "0" : count, is_dry ? "t" : "f"};
    if (!ctl->is_json) {
        (void)fprintf(ctl->out, is_dry ? "%lld would be enqueued\n" : "enqueued %lld\n",
                      (long long)jobs);
        return STATUS_OK;
    }
    (void)snprintf(count, sizeof count, "%lld", (long long)jobs);
    return PRINT_RECORD(ctl, "jobs", columns, values, err);
}

/* Refuses options that describe a job: in a file, each line describes its own job. */
static enum status check_options(const struct ctl_args *args, struct err *err)
{
    static const char *const taken[] = {"file", "batch", "dry-run", "quiet", "strict"};
    for (size_t i = 0; i < args->given_count; i++) {
        size_t k = 0;
        while (k < ARRAY_COUNT(taken) && strcmp(args->given[i].name, taken[k]) != 0) {
            k++;
        }
        if (k == ARRAY_COUNT(taken)) {
            return err_fail(err, STATUS_INVALID,
                            "a file takes no --%s, only --batch, --dry-run, --quiet and --strict: "
                            "each line has its own",
                            args->given[i].name);
        }
    }
    return STATUS_OK;
}

static enum status enqueue_file(struct ctl *ctl, const char *path, const struct ctl_args *args,
                                struct err *err)
{
    int64_t total_bytes = 0;
    auto_admin struct admin *a = NULL;
    auto_admin struct admin *side = NULL;
    bool is_stdin = strcmp(path, "-") == 0;
    autoclose int fd = -1;
    auto_given struct given given = GIVEN(args, err);
    enum status st = check_options(args, err);
    const char *batch = given_number(&given, "batch", 1, INT64_MAX);
    if (st != STATUS_OK || err->status != STATUS_OK) {
        return err->status;
    }
    st = open_file(path, is_stdin, &fd, &total_bytes, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &side, err);
    if (st != STATUS_OK) {
        return st;
    }
    autofree struct file_job *f = calloc(1, sizeof *f);
    if (f == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    f->fd = fd;
    f->admin = a;
    f->side = side;
    f->is_strict = ctl_value(args, "strict") != NULL;
    f->is_dry = ctl_value(args, "dry-run") != NULL;
    f->batch = batch;
    buf_init(&f->in, JOB_LINE_MAX + 2 * READ_BYTES);
    buf_init(&f->rows, COPY_BYTES_MAX);
    buf_init(&f->requests, COPY_BYTES_MAX);
    progress_start(&f->progress, "sent", total_bytes, ctl_value(args, "quiet") != NULL);
    st = copy_file(f, err);
    progress_end(&f->progress);
    buf_release(&f->in);
    buf_release(&f->rows);
    buf_release(&f->requests);
    if (st != STATUS_OK) {
        job_line_name_refusal(err);
        err_prefix(err, "%s%s", is_stdin ? "standard input" : path,
                   st == STATUS_UNKNOWN ? "" : ": nothing was enqueued");
        return st;
    }
    return print_count(ctl, f->line, f->is_dry, err);
}

enum status enqueue(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    const char *file = ctl_value(args, "file");
    bool is_stdin = args->word_count > 0 && strcmp(args->words[0], "-") == 0;
    if ((file == NULL) == (args->word_count == 0)) {
        return err_fail(err, STATUS_INVALID, "enqueue needs either a KIND or --file");
    }
    if (is_stdin) {
        file = "-";
    }
    if (file == NULL && ctl_value(args, "dry-run") != NULL) {
        return err_fail(err, STATUS_INVALID, "--dry-run needs --file");
    }
    return file != NULL ? enqueue_file(ctl, file, args, err) : enqueue_one(ctl, args, err);
}
