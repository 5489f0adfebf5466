/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by program.c, which programs there are and their life between jobs, program_turn.c, one
 * job, and program_once.c, a process for one job. */
#ifndef CLAIMD_WORKER_RUNNER_PROGRAM_INTERNAL_H
#define CLAIMD_WORKER_RUNNER_PROGRAM_INTERNAL_H

#include "worker/runner/program.h"
#include "worker/runner/program_line.h"
#include "worker/runner/program_process.h"
#include "worker/runner_env.h"

#include <signal.h>

#define PROGRAM_READ_BYTES ((size_t)16 << 10)
#define PROGRAM_END_WAIT_MS 200 /* between the end of its pipe and of the process */
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

/* One job. */
struct turn {
    struct program *program;
    const struct claimd_context *job;
    struct runner_page *page;
    size_t size;   /* of the job's line … */
    size_t unsent; /* … of which so much was not written when the program took no more */
    bool was_sent;
    bool was_told_to_stop;
    bool was_signalled;
    bool is_over;
    enum claimd_outcome outcome;
};

/* ---- program.c ---- */
struct program *program_find(const char *kind); /* NULL = none */

/* SIGTERM, which is let in where a job is waited for, and SIGPIPE. */
void program_block_signals(sigset_t *ret_before);

/* Writes as much as the pipe takes. UNAVAILABLE: the program reads no more. With SIGPIPE
 * blocked. */
enum status program_flush(struct program *p, struct err *err) MUST_USE;
/* NOT_FOUND: nothing is there now. UNAVAILABLE: it has closed its end. */
enum status program_read(struct program *p, struct err *err) MUST_USE;
/* INVALID: the line breaks the protocol. */
typedef enum status program_line_fn(void *ctx, const struct program_line *line, struct err *err);
/* Takes all whole lines that were read, up to one that breaks the protocol. */
enum status program_take_lines(struct program *p, program_line_fn *take, void *ctx,
                               struct err *err) MUST_USE;
/* UNAVAILABLE: its process has ended, or does within `wait_ms`; err says how. */
enum status program_check_alive(const struct program *p, int wait_ms, struct err *err) MUST_USE;
/* About a run that is over: dropped; INVALID where it breaks the protocol. */
enum status program_take_late(struct program *p, const struct program_line *line,
                              struct err *err) MUST_USE;

/* Kills its process and what that has left behind. */
void program_end(struct program *p);

/* ---- program_turn.c ---- */
/* Octets of the run's log, as they are. */
void program_turn_log(const struct turn *t, const char *bytes, size_t len);
/* What it says of the present run: log, progress, checkpoint or end. */
void program_turn_take(struct turn *t, const struct program_line *line);
enum claimd_outcome program_handle(const struct claimd_context *job);

/* ---- program_once.c ---- */
enum claimd_outcome program_run_once(struct program *p, const struct claimd_context *job,
                                     struct runner_page *page);

#endif
