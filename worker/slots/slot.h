/* SPDX-License-Identifier: Apache-2.0
 *
 * A slot: one claimd-runner child that runs one job at a time (INTERFACES rule 11) and may be given
 * several at once (docs/decisions/0019). The worker decides what runs and for how long. This module
 * starts, feeds, stops and replaces the child, and reports exactly once for each job how it ended
 * or that it comes back. A child that dies is started again: at once if it had started a handler,
 * otherwise with increasing delay. */
#ifndef CLAIMD_WORKER_SLOTS_SLOT_H
#define CLAIMD_WORKER_SLOTS_SLOT_H

#include "base/rand.h"
#include "protocol/protocol.h"
#include "worker/slots/run_end.h"

#include <uv.h>

struct slot;

/* With RUN_END_SAID, `result` is set, borrowed; also with NOT_STARTED if the runner did not serve
 * the kind. Otherwise `text` describes the end ("signal 11 (Segmentation fault)", "exit code 0
 * without a result", "broken frame: …"), and `log_tail` is what the run had logged. The slot does
 * not know why its child was killed: CRASHED may mean TIMEOUT or KILLED. */
struct slot_run {
    enum run_end end;
    const struct result_frame *result;
    const char *text;
    const char *log_tail;
    size_t log_tail_len;
};

/* Plugin files that runners are started without. */
#define SLOT_WITHOUT_MAX 64
struct slot_without {
    char files[SLOT_WITHOUT_MAX][RUNNER_FILE_SIZE];
    size_t count;
};

struct slot_events {
    /* The slot can take a job now, or more jobs. */
    void (*room)(void *jobs, struct slot *slot);
    void (*ended)(void *jobs, struct slot *slot, void *job, const struct slot_run *run);
    /* The job was not begun and may be given to any slot, but not before this returns. */
    void (*returned)(void *jobs, struct slot *slot, void *job);
    void (*died)(void *jobs, struct slot *slot, int pid, const char *text);

    /* The child's first hello, or a later one with the kinds that it still serves; see
     * slot_hellos(). */
    void (*hello)(void *ctx, struct slot *slot, const char *json, size_t len);
    /* Called after `died` if the child was loading this file. `is_hung`: it was killed because it
     * made no progress. */
    void (*load_died)(void *ctx, struct slot *slot, const char *file, const char *text,
                      bool is_hung);
};

struct slot_options {
    uv_loop_t *loop;
    const char *runner; /* path; borrowed for the slot's life, as is plugin_dir */
    const char *plugin_dir;
    const char *plugin_owners;          /* "0,1000", borrowed; "" = root and this process's user */
    const char *handlers;               /* the folder, borrowed; NULL or "" = none */
    const char *commands;               /* JSON, borrowed; NULL = none */
    const struct slot_without *without; /* borrowed, read at each start; NULL = none */
    /* The same for files whose programs are started before the hello. */
    const struct slot_without *doubtful;
    int jobs_max; /* the child is recycled after this many */
    int64_t age_us;
    const struct slot_events *events;
    void *jobs; /* context of the events of jobs */
    void *ctx;  /* of the others */
};

enum slot_state { SLOT_EMPTY, SLOT_STARTING, SLOT_IDLE, SLOT_BUSY, SLOT_ENDING };

enum status slot_open(const struct slot_options *options, struct slot **ret_slot,
                      struct err *err) MUST_USE;

/* Takes effect at the end of the next run. */
void slot_set_recycling(struct slot *slot, int jobs_max, int64_t age_us);

/* Call when the plugins may have changed: replaces the child as soon as it is idle. */
void slot_replace(struct slot *slot);
int slot_hellos(const struct slot *slot); /* of the current child */
/* True while the program for its next job is being started, which may take long. */
bool slot_is_loading(const struct slot *slot);
/* True if its child has sent its hello and may be given jobs, now or after the current one. */
bool slot_is_current(const struct slot *slot);

/* Ends the child without any event. The slot frees itself when its handles are closed. */
void slot_close(struct slot *slot);

enum slot_state slot_state(const struct slot *slot);
int slot_pid(const struct slot *slot);
/* Call in `died`: true unless the worker killed the child because of its time, its lease, a drain
 * or a cancel. */
bool slot_died_by_itself(const struct slot *slot);

/* True if it can take another job of this kind, whose frame has this many bytes. An idle slot takes
 * any. */
bool slot_takes(struct slot *slot, const char *kind, size_t bytes);
/* Queues a job for the child; slot_takes() must be true, and `kind` must end with a NUL. Returns
 * the run's nonce, which identifies it from now on. A child that can't take the job is killed, and
 * the run ends NOT_STARTED, so callers need not handle that. `kill_at_us`: see slot_limit(). */
int64_t slot_run(struct slot *slot, const struct job_frame *frame, int64_t kill_at_us, void *user);
/* Call after any number of slot_run(): sends the jobs to the child. */
void slot_flush(struct slot *slot);

/* Takes the results of the child even if its nudge has not come yet. Kills a child whose page was
 * written over. */
void slot_take_results(struct slot *slot);
/* Takes back all jobs that it has not begun, except the first, through `returned`. */
void slot_take_back(struct slot *slot);
size_t slot_waiting(const struct slot *slot); /* jobs behind the first */
void *slot_present(struct slot *slot);        /* the first job; NULL = none */

/* Sets when the runner must end itself (BOOTTIME) because of a run that it has. The earliest time
 * of its runs counts. */
void slot_limit(struct slot *slot, int64_t nonce, int64_t kill_at_us);

/* True if this run's handler has been called, as far as the page shows. */
bool slot_has_started(const struct slot *slot, int64_t nonce);
/* Kills a runner that does not start the job that it was sent: it is busy with leftovers of an
 * earlier run, or stopped. The run ends NOT_STARTED, unless it starts in the meantime. */
void slot_give_up_start(struct slot *slot, int64_t after_us);

/* Asks the handler to stop, by the flag and SIGTERM, once per run. Other jobs of the slot are taken
 * back. Does nothing if the run has ended in the meantime, or is itself taken back. The same holds
 * for the next two. */
void slot_ask_to_stop(struct slot *slot, int64_t nonce, enum stop_reason why);
/* Also sets the flag for a requested cancel. */
void slot_cancel(struct slot *slot, int64_t nonce);
/* Sends SIGKILL to the runner's process group. */
void slot_kill_run(struct slot *slot, int64_t nonce);
void slot_kill(struct slot *slot); /* whatever it is doing */

/* Returns the page, with the reports of the current run, or in `ended` of the run that ends. */
const struct runner_page *slot_page(const struct slot *slot);

#endif
