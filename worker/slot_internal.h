/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by slot.c, the life of a child, and slot_frames.c, what it says. */
#ifndef CLAIMD_WORKER_SLOT_INTERNAL_H
#define CLAIMD_WORKER_SLOT_INTERNAL_H

#include "worker/slot.h"

#define SLOT_TEXT_MAX 256
#define SLOT_NONCES 32 /* drawn at once */

struct slot {
    struct slot_options options;
    enum slot_state state;
    uv_process_t process;
    uv_pipe_t pipe;
    uv_timer_t timer; /* STARTING: hello deadline; EMPTY: restart; ENDING: leaving, then grace */
    struct runner_page *page;
    int page_fd;
    struct buf in;
    struct buf out;
    uv_write_t write;
    bool is_writing;
    bool has_process;
    bool has_pipe;
    bool has_exited;
    bool has_eof;
    bool is_closing;
    bool is_dying;   /* we killed it */
    bool was_killed; /* … because the worker said so */
    bool was_asked_to_stop;
    bool has_hello;
    bool has_worked;  /* some handler was started in it */
    bool is_retiring; /* recycled: the end is expected */
    bool is_outdated; /* … when it is idle */
    bool is_hung;     /* in loading its plugins */
    int32_t loaded;   /* of the page, when the hello deadline was set */
    int hello_renewals;
    int pid;
    int64_t exit_status;
    int term_signal;
    char broken[SLOT_TEXT_MAX]; /* why we ended it: a broken frame */
    int64_t started_us;
    int jobs_done;
    int restart_ms;
    struct rand rand;
    void *job;
    int64_t job_id;
    int64_t job_fence;
    int64_t job_nonce;
    int64_t last_nonce; /* of the run before, in the same child; 0 = there was none */
    bool is_spoilt;     /* the run before said more than its result: not the present one's doing */
    int64_t nonces[SLOT_NONCES];
    size_t nonce_count; /* not used yet */
    int open_handles;
};

/* ---- slot.c ---- */
void slot_report(struct slot *slot, const struct slot_run *run);
void slot_kill_child(struct slot *slot);
/* The child is not used again: by itself where it said so, which only finds what a handler left
 * behind in sessions of their own (fault.G4). Otherwise nothing is left. */
void slot_retire(struct slot *slot, bool leaves);

/* ---- slot_frames.c ---- */
int64_t slot_draw_nonce(struct slot *slot); /* −1 where the system gives no random bytes */
void slot_take_frames(struct slot *slot);   /* all that is whole in what was read */

#endif
