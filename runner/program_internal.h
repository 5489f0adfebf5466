/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by program.c (the list of programs, and their life between jobs), program_job.c (a job of
 * a program that serves) and program_once.c (a process for one job). */
#ifndef CLAIMD_RUNNER_PROGRAM_INTERNAL_H
#define CLAIMD_RUNNER_PROGRAM_INTERNAL_H

#include "protocol/runner_env.h"
#include "runner/program.h"
#include "runner/program_line.h"
#include "runner/program_process.h"

#include <signal.h>

#define PROGRAM_READ_BYTES ((size_t)16 << 10)
#define PROGRAM_END_WAIT_MS 200 /* from the end of its pipe to its exit */
#define PROGRAM_ENV_TEXTS (RUNNER_ENV_MAX + HANDLER_ENV_MAX + 3)

struct program {
    struct handler_file file;
    struct program_process process; /* pid 0 = there is none */
    bool takes_sigterm;
    int64_t n;        /* jobs that this process was given */
    uint64_t dropped; /* lines about runs that were over */
    struct buf to;
    struct buf said;
    char *env[PROGRAM_ENV_TEXTS];
};

/* The state of one job. */
struct program_job {
    struct program *program;
    const struct claimd_context *job;
    struct runner_page *page;
    size_t size;   /* bytes of the job's line … */
    size_t unsent; /* … and how many were unwritten when the program closed its pipe */
    bool was_sent;
    bool was_told_to_stop;
    bool was_signalled;
    bool is_over;
    enum claimd_outcome outcome;
};

/* ---- program.c ---- */
struct program *program_find(const char *kind); /* NULL = none */

/* Blocks SIGTERM, which is delivered only while a job waits in ppoll(), and SIGPIPE. */
void program_block_signals(sigset_t *ret_before);

/* Writes as much of p->to as the pipe takes. Call with SIGPIPE blocked. UNAVAILABLE: the program
 * has closed its end. */
enum status program_flush(struct program *p, struct err *err) MUST_USE;
/* Reads into p->said without blocking. NOT_FOUND: there is nothing to read. UNAVAILABLE: the
 * program has closed its end. */
enum status program_read(struct program *p, struct err *err) MUST_USE;
/* Called with each line. INVALID: it breaks the protocol. */
typedef enum status program_line_fn(void *ctx, const struct program_line *line, struct err *err);
/* Calls `take` with every whole line that was read, up to one that breaks the protocol. */
enum status program_take_lines(struct program *p, program_line_fn *take, void *ctx,
                               struct err *err) MUST_USE;
/* UNAVAILABLE: the process has ended, or ends within `wait_ms`; err says how. */
enum status program_check_alive(const struct program *p, int wait_ms, struct err *err) MUST_USE;
/* Drops a line about a run that is over. INVALID: the line breaks the protocol. */
enum status program_take_late(struct program *p, const struct program_line *line,
                              struct err *err) MUST_USE;

/* Kills its process and the processes that it left behind. */
void program_end(struct program *p);

/* ---- program_job.c ---- */
/* Appends bytes to the run's log, unchanged. */
void program_job_log(const struct program_job *t, const char *bytes, size_t len);
/* Handles a line about the current run: log, progress, checkpoint or end. */
void program_job_take(struct program_job *t, const struct program_line *line);
enum claimd_outcome program_handle(const struct claimd_context *job);

/* ---- program_once.c ---- */
enum claimd_outcome program_run_once(struct program *p, const struct claimd_context *job,
                                     struct runner_page *page);

#endif
