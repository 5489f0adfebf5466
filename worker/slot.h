/* SPDX-License-Identifier: Apache-2.0
 *
 * A slot: one claimd-runner child, that runs one job at a time (INTERFACES rule 11), of which it
 * may be given several at once (docs/decisions/0019). The worker decides what runs and for how
 * long; this module starts, feeds, stops and replaces the child, and says of each job exactly once
 * how it ended, or that it comes back. A child that dies is started again: at once if it had
 * started a handler, else with growing delay. */
#ifndef CLAIMD_WORKER_SLOT_H
#define CLAIMD_WORKER_SLOT_H

#include "base/rand.h"
#include "worker/protocol.h"
#include "worker/run_end.h"

#include <uv.h>

struct slot;

/* RUN_END_SAID: `result` is borrowed; it is there, too, if the runner did not serve the kind
 * (NOT_STARTED). Without it `text` says how ("signal 11 (Segmentation fault)", "exit code 0 without
 * a result", "broken frame: …"); `log_tail` is what the run had logged. The slot does not know why
 * its child was killed: CRASHED may be TIMEOUT or KILLED. */
struct slot_run {
    enum run_end end;
    const struct result_frame *result;
    const char *text;
    const char *log_tail;
    size_t log_tail_len;
};

/* Files of plugins that runners are started without. */
#define SLOT_WITHOUT_MAX 64
struct slot_without {
    char files[SLOT_WITHOUT_MAX][RUNNER_FILE_SIZE];
    size_t count;
};

struct slot_events {
    /* Its first one, or a later one, which says what it no longer serves: slot_hellos(). */
    void (*hello)(void *ctx, struct slot *slot, const char *json, size_t len);
    /* May take a job now, or more of them. */
    void (*room)(void *ctx, struct slot *slot);
    void (*ended)(void *ctx, struct slot *slot, void *job, const struct slot_run *run);
    /* It was not begun, and may be given to any slot; give it to none before this returns. */
    void (*returned)(void *ctx, struct slot *slot, void *job);
    void (*died)(void *ctx, struct slot *slot, int pid, const char *text);
    /* After `died`: it was just loading this file. `is_hung`: it was killed since it did not get
     * on. */
    void (*load_died)(void *ctx, struct slot *slot, const char *file, const char *text,
                      bool is_hung);
};

struct slot_options {
    uv_loop_t *loop;
    const char *runner; /* path; borrowed for the slot's life, as plugin_dir */
    const char *plugin_dir;
    const char *plugin_owners;          /* "0,1000", borrowed; "" = root and ours */
    const char *handlers;               /* the folder, borrowed; NULL or "" = none */
    const struct slot_without *without; /* borrowed, read at each start; NULL = none */
    /* The same of files whose programs are to be started before its hello. */
    const struct slot_without *doubtful;
    int jobs_max; /* recycled after */
    int64_t age_us;
    const struct slot_events *events;
    void *ctx;
};

enum slot_state { SLOT_EMPTY, SLOT_STARTING, SLOT_IDLE, SLOT_BUSY, SLOT_ENDING };

enum status slot_open(const struct slot_options *options, struct slot **ret_slot,
                      struct err *err) MUST_USE;

/* Counts from the end of the next run. */
void slot_set_recycling(struct slot *slot, int jobs_max, int64_t age_us);

/* The plugins may have changed: as soon as it is idle, the child is ended and another started. */
void slot_replace(struct slot *slot);
int slot_hellos(const struct slot *slot); /* of its present child */
/* Before its job begins, its program is started, which may take long. */
bool slot_is_loading(const struct slot *slot);
/* Its child has said hello, and may be given jobs, now or after the present one. */
bool slot_is_current(const struct slot *slot);

/* Ends the child without a word to anybody, and frees itself when its handles are closed. */
void slot_close(struct slot *slot);

enum slot_state slot_state(const struct slot *slot);
int slot_pid(const struct slot *slot);
/* In `died`: nobody killed the child for its time, its lease or a drain. */
bool slot_died_by_itself(const struct slot *slot);

/* Would it take another job of this kind, whose frame has so many bytes? An idle one takes any. */
bool slot_takes(struct slot *slot, const char *kind, size_t bytes);
/* If slot_takes(), which wants `kind` to end with a NUL. Returns the run's nonce, by which it is
 * meant from now on. A child that can't take it is killed, and the run ends NOT_STARTED, so
 * callers need not handle that. `kill_at_us`: see slot_limit(). */
int64_t slot_run(struct slot *slot, const struct job_frame *frame, int64_t kill_at_us, void *user);
/* After any number of slot_run(): the child gets them. */
void slot_flush(struct slot *slot);

/* What it has answered, if its nudge has not come yet. A child whose page was written over is
 * killed. */
void slot_take_results(struct slot *slot);
/* All that it has not begun, but the first, comes back through `returned`. */
void slot_take_back(struct slot *slot);
size_t slot_waiting(const struct slot *slot); /* behind the first */
void *slot_present(struct slot *slot);        /* the first; NULL = none */

/* BOOTTIME of self-destruction, for a run that it has. The earliest of its runs counts. */
void slot_limit(struct slot *slot, int64_t nonce, int64_t kill_at_us);

/* Has this run's handler been called, for all that can be known? */
bool slot_has_started(const struct slot *slot, int64_t nonce);
/* A runner that does not start what it was sent is busy with something of an earlier run, or
 * stopped: it is killed, and the run ends NOT_STARTED unless it starts meanwhile. */
void slot_give_up_start(struct slot *slot, int64_t after_us);

/* Asks the handler to stop: flag and SIGTERM, once per run. What the slot has beside it comes back;
 * a run that has ended meanwhile, or comes back itself, is left alone. As the next two. */
void slot_ask_to_stop(struct slot *slot, int64_t nonce, enum stop_reason why);
/* The same, and tells it that its job's cancel was asked for. */
void slot_cancel(struct slot *slot, int64_t nonce);
/* SIGKILL to its process group. */
void slot_kill_run(struct slot *slot, int64_t nonce);
void slot_kill(struct slot *slot); /* whatever it does */

/* What the present run, or in `ended` the one that ends, has said of itself. */
const struct runner_page *slot_page(const struct slot *slot);

#endif
