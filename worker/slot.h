/* SPDX-License-Identifier: Apache-2.0
 *
 * A slot: one claimd-runner child, that runs one job at a time (INTERFACES rule 11). The worker
 * decides what runs and for how long; this module starts, feeds, stops and replaces the child, and
 * says how each run ended, exactly once. A child that dies is started again: at once if it had
 * started a handler, else with growing delay. */
#ifndef CLAIMD_WORKER_SLOT_H
#define CLAIMD_WORKER_SLOT_H

#include "base/rand.h"
#include "worker/protocol.h"

#include <uv.h>

struct slot;

enum slot_end {
    SLOT_RESULT,
    SLOT_NOT_STARTED,
    SLOT_DIED,
    SLOT_SPOILT /* we killed it, for what an earlier run of its runner had written: not this one's
                   doing */
};

/* SLOT_RESULT: `result` is borrowed. Others: `text` says how ("signal 11 (Segmentation fault)",
 * "exit code 0 without a result", "broken frame: …"); `log_tail` is what the run had logged. */
struct slot_run {
    enum slot_end end;
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
    void (*hello)(void *ctx, struct slot *slot, const char *json, size_t len);
    void (*idle)(void *ctx, struct slot *slot); /* may take a job now */
    void (*ended)(void *ctx, struct slot *slot, void *job, const struct slot_run *run);
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
    const struct slot_without *without; /* borrowed, read at each start; NULL = none */
    int jobs_max;                       /* recycled after */
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
/* Its child has said hello, and may be given jobs, now or after the present one. */
bool slot_is_current(const struct slot *slot);

/* Ends the child without a word to anybody, and frees itself when its handles are closed. */
void slot_close(struct slot *slot);

enum slot_state slot_state(const struct slot *slot);
int slot_pid(const struct slot *slot);
/* In `died`: nobody killed the child for its time, its lease or a drain. */
bool slot_died_by_itself(const struct slot *slot);

/* Only when idle; the frame's nonce is drawn here. The page's times must be set by slot_limit()
 * first. UNAVAILABLE: the child can't take it; the run ends SLOT_NOT_STARTED through `ended` as
 * well, so callers need not handle it twice. */
void slot_run(struct slot *slot, const struct job_frame *frame, void *job);

/* The moments of the present or next run: BOOTTIME of self-destruction and of the timeout. */
void slot_limit(struct slot *slot, int64_t kill_at_us, int64_t deadline_us);

/* Has the present run's handler been called? */
bool slot_has_started(const struct slot *slot);
/* A runner that does not start what it was sent is busy with something of an earlier run, or
 * stopped: it is killed, and the run ends SLOT_NOT_STARTED unless it starts meanwhile. */
void slot_give_up_start(struct slot *slot, int64_t after_us);

/* Asks the handler to stop: flag and SIGTERM, once per run. */
void slot_ask_to_stop(struct slot *slot);
/* The same, and tells it that its job's cancel was asked for. */
void slot_cancel(struct slot *slot);
void slot_kill(struct slot *slot); /* SIGKILL to its process group */

/* What the present run, or in `ended` the one that ends, has said of itself. */
const struct runner_page *slot_page(const struct slot *slot);

#endif
