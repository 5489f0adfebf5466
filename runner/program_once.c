/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that runs once for each job (docs/guide/other-languages.md): it gets the args in its
 * command line and on stdin, and its exit code gives the outcome. Its death ends only the attempt,
 * not the runner. */
#include "base/clock.h"
#include "base/parse.h"
#include "runner/program_internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>

#define OUTPUT_LINE_MAX ((size_t)64 << 10)
#define FACTS 11
#define READS_MAX 32

/* ---- its variables and its input ---- */

static enum status put_facts(struct buf *out, const struct claimd_context *job, struct err *err)
{
    int64_t left_ms = (job->deadline_us - clock_boot_us()) / US_PER_MS;
    return buf_printf(out, err,
                      "CLAIMD_OUT=%d%cCLAIMD_JOB=%" PRId64 "%cCLAIMD_KIND=%s%cCLAIMD_ATTEMPT=%d%c"
                      "CLAIMD_MAX_ATTEMPTS=%d%cCLAIMD_CRASHES=%d%cCLAIMD_FENCE=%" PRId64
                      "%cCLAIMD_KEY=%s%cCLAIMD_QUEUE=%s%cCLAIMD_TIMEOUT_MS=%" PRId64
                      "%cCLAIMD_CHECKPOINT=%s%c",
                      PROGRAM_FD_OUT, 0, job->id, 0, job->kind, 0, job->attempt, 0,
                      job->max_attempts, 0, job->crashes, 0, job->fence, 0, job->idempotency_key, 0,
                      job->queue == NULL ? "" : job->queue, 0, left_ms > 0 ? left_ms : 0, 0,
                      job->checkpoint == NULL ? "" : job->checkpoint, 0);
}

static int args_file(const struct claimd_context *job)
{
    int fd = memfd_create("args", MFD_CLOEXEC);
    if (fd >= 0 && pwrite(fd, job->args, job->args_len, 0) != (ssize_t)job->args_len) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Starts the process. UNAVAILABLE: it can't be started. INVALID, LIMIT: the job's args don't fit
 * its command. */
static enum status start(struct program *p, const struct claimd_context *job, int print_to,
                         struct err *err)
{
    struct command_words words = COMMAND_WORDS_INIT;
    autobuf struct buf facts = BUF_INIT(COMMAND_BYTES_MAX);
    char *argv[HANDLER_ARGS_MAX + 1] = {NULL};
    char *env[PROGRAM_ENV_TEXTS + FACTS + 1] = {NULL};
    json_auto_t *args = json_loadb(job->args, job->args_len, JSON_DECODE_ANY, NULL);
    size_t n = 0;
    autoclose int input = args_file(job);
    enum status st = command_words_fill(&words, p->file.argv, args, err);
    if (st == STATUS_OK) {
        st = put_facts(&facts, job, err);
    }
    if (st == STATUS_OK && input < 0) {
        st = err_fail_sys(err, STATUS_UNAVAILABLE, errno, "cannot pass the args");
    }
    for (size_t i = 0; st == STATUS_OK && i < words.count; i++) {
        argv[i] = buf_at(&words.bytes) + words.at[i];
    }
    for (; st == STATUS_OK && p->env[n] != NULL; n++) {
        env[n] = p->env[n];
    }
    for (size_t at = 0; st == STATUS_OK && at < facts.len; n++) {
        env[n] = buf_at(&facts) + at;
        at += strlen(env[n]) + 1;
    }
    if (st == STATUS_OK) {
        st = program_process_start(&p->file, argv, env, input, print_to, &p->process, err);
    }
    buf_release(&words.bytes);
    return st;
}

/* ---- its run ---- */

struct once {
    struct program_job run;
    int print[2];      /* both ends of its stdout if the last line is the result, else −1 */
    struct buf line;   /* the last line printed that isn't empty */
    bool is_line_over; /* its newline was read: the next octet begins another line */
    struct buf result; /* the last one that the program sent */
};

static enum status keep(struct buf *b, const char *bytes, size_t len, struct err *err)
{
    buf_reset(b);
    return buf_append(b, bytes, len, err);
}

static enum status take_line(void *ctx, const struct program_line *line, struct err *err)
{
    struct once *o = ctx;
    switch (line->said) {
    case SAID_HELLO:
        return err_fail(err, STATUS_INVALID, "the program sent a hello, but its mode is once");
    case SAID_RESULT:
        return keep(&o->result, line->json.at, line->json.len, err);
    case SAID_END:
        if (line->end == CLAIMD_DONE && line->json.len > 0) {
            enum status st = keep(&o->result, line->json.at, line->json.len, err);
            if (st != STATUS_OK) {
                return st;
            }
        }
        program_job_take(&o->run, line);
        return STATUS_OK;
    case SAID_LOG:
    case SAID_PROGRESS:
    case SAID_CHECKPOINT:
        break;
    }
    program_job_take(&o->run, line);
    return STATUS_OK;
}

/* Reads what a full pipe holds, but not endlessly. The end of the pipe is no failure: only the exit
 * of the process counts. */
static enum status read_lines(struct once *o, struct err *err)
{
    struct err end = {0};
    enum status st = STATUS_OK;
    for (int i = 0; i < READS_MAX && st == STATUS_OK; i++) {
        if (program_read(o->run.program, &end) != STATUS_OK) {
            return STATUS_OK;
        }
        st = program_take_lines(o->run.program, take_line, o, err);
    }
    return st;
}

/* Appends output to the log and keeps its last line, up to the size of a result. */
static void take_printed(struct once *o, const char *bytes, size_t len)
{
    program_job_log(&o->run, bytes, len);
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n') {
            o->is_line_over = true;
            continue;
        }
        if (o->is_line_over) {
            buf_reset(&o->line);
            o->is_line_over = false;
        }
        if (o->line.len < OUTPUT_LINE_MAX &&
            buf_append_byte(&o->line, bytes[i], NULL) != STATUS_OK) {
            return;
        }
    }
}

static void read_printed(struct once *o)
{
    char bytes[4096];
    ssize_t n = 0;
    for (int i = 0; i < READS_MAX && o->print[0] >= 0; i++) {
        n = read(o->print[0], bytes, sizeof bytes);
        if (n <= 0) {
            return;
        }
        take_printed(o, bytes, (size_t)n);
    }
}

/* Completes the job with the last line: as it is if it is JSON, otherwise as a JSON string. */
static enum claimd_outcome done_with_line(const struct once *o)
{
    const char *line = buf_at(&o->line);
    json_auto_t *value =
        json_loadb(line, o->line.len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
    if (o->line.len == 0 || value != NULL) {
        return claimd_done(o->run.job, o->line.len == 0 ? NULL : line);
    }
    char clean[OUTPUT_LINE_MAX];
    (void)utf8_clean(line, o->line.len, clean, sizeof clean);
    json_auto_t *text = json_string(clean);
    autofree char *json = json_dumps(text, JSON_ENCODE_ANY);
    return claimd_done(o->run.job, json);
}

static void tell_stop(struct once *o)
{
    struct program_job *t = &o->run;
    if (!t->was_told_to_stop && atomic_load(&t->page->should_stop) != 0) {
        t->was_told_to_stop = true;
        (void)kill(t->program->process.pid, SIGTERM);
    }
}

/* Serves the process until it has ended. */
static enum status run(struct once *o, struct err *err)
{
    struct program *p = o->run.program;
    sigset_t none;
    (void)sigemptyset(&none);
    bool has_ended = false;
    while (!has_ended) {
        struct pollfd polled[] = {{.fd = p->process.out, .events = POLLIN},
                                  {.fd = p->process.pidfd, .events = POLLIN},
                                  {.fd = o->print[0], .events = POLLIN}};
        tell_stop(o);
        if (ppoll(polled, 3, NULL, &none) < 0) {
            continue; /* EINTR */
        }
        has_ended = polled[1].revents != 0;
        enum status st = read_lines(o, err);
        if (st != STATUS_OK) {
            return st;
        }
        read_printed(o);
    }
    return STATUS_OK;
}

static enum claimd_outcome by_exit(struct once *o)
{
    const struct claimd_context *job = o->run.job;
    const struct handler_file *h = &o->run.program->file;
    struct program_exit end;
    program_process_reap(&o->run.program->process, &end);
    enum claimd_outcome outcome =
        end.exit_code >= 0 ? h->exit_codes[end.exit_code & 0xFF] : CLAIMD_RETRY;
    if (outcome == CLAIMD_DONE && h->result_is_last_line) {
        return done_with_line(o);
    }
    if (outcome == CLAIMD_DONE) {
        return claimd_done(job, o->result.len > 0 ? buf_at(&o->result) : NULL);
    }
    (void)claimd_retry(job, -1, "the program ended: %s", end.how);
    return outcome;
}

static enum status make_print(struct once *o, struct err *err)
{
    if (o->run.program->file.result_is_last_line &&
        (pipe2(o->print, O_CLOEXEC) != 0 || fcntl(o->print[0], F_SETFL, O_NONBLOCK) != 0)) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "pipe");
    }
    return STATUS_OK;
}

static enum claimd_outcome run_started(struct once *o)
{
    struct err err = {0};
    if (run(o, &err) != STATUS_OK) {
        return claimd_retry(o->run.job, -1, "%s", err.msg);
    }
    return o->run.is_over ? o->run.outcome : by_exit(o);
}

enum claimd_outcome program_run_once(struct program *p, const struct claimd_context *job,
                                     struct runner_page *page)
{
    struct once o = {.run = {.program = p, .job = job, .page = page},
                     .print = {-1, -1},
                     .line = BUF_INIT(2 * OUTPUT_LINE_MAX),
                     .result = BUF_INIT(PROGRAM_LINE_MAX)};
    struct err err = {0};
    sigset_t before;
    enum claimd_outcome outcome = CLAIMD_RETRY;
    program_block_signals(&before);
    enum status st = make_print(&o, &err);
    if (st == STATUS_OK) {
        st = start(p, job, o.print[1], &err);
    }
    if (st == STATUS_OK) {
        outcome = run_started(&o);
        program_end(p);
    } else if (st == STATUS_INVALID || st == STATUS_LIMIT) {
        outcome = claimd_fail(job, "%s", err.msg);
    } else {
        outcome = claimd_retry(job, -1, "%s", err.msg);
    }
    close_slot(&o.print[0]);
    close_slot(&o.print[1]);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    buf_release(&o.line);
    buf_release(&o.result);
    return outcome;
}
