/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by slot.c, the life of a child, slot_jobs.c, what it is given, and slot_frames.c, what it
 * says. */
#ifndef CLAIMD_WORKER_SLOT_INTERNAL_H
#define CLAIMD_WORKER_SLOT_INTERNAL_H

#include "worker/run_output.h"
#include "worker/slot.h"

#define SLOT_NONCES 64 /* drawn at once; two for each job */

/* The life of a child; slot.c has the table of which event leads where. */
enum child_state {
    CHILD_NONE,    /* before the first one */
    CHILD_LOADING, /* its hello is awaited */
    CHILD_IDLE,
    CHILD_BUSY,
    CHILD_LEAVING, /* it said that it ends itself */
    CHILD_KILLED,  /* its exit is awaited; what it wrote before still counts */
    CHILD_MUTE,    /* its pipe has ended, so it was killed: its exit is awaited */
    CHILD_EXITED,  /* the end of its pipe is awaited */
    CHILD_GONE     /* and all that it wrote has been read; the next one follows */
};

enum child_event {
    ON_FREE, /* it said hello, or its last job has ended, and it may be given others */
    ON_JOB,
    ON_LEAVE,
    ON_KILL,
    ON_PIPE_END,
    ON_EXIT,
    ON_LATE, /* a state has lasted for as long as it may */
    CHILD_EVENT_COUNT
};

/* Why it ends. */
enum child_cause {
    CAUSE_ITSELF,  /* it ended, or broke the protocol */
    CAUSE_HUNG,    /* in loading its plugins */
    CAUSE_ORDERED, /* the worker killed it, for its time, its lease or a drain */
    CAUSE_REPLACED /* recycled, outdated or left dirty: nobody need be told */
};

/* All that is of one child; the next one's begins as zeroes. */
struct slot_child {
    enum child_state state;
    enum child_cause cause;
    int pid;
    int64_t exit_status;
    int term_signal;
    struct err broken; /* what it did wrong */
    int hellos;
    bool is_outdated; /* to be replaced when it is idle */
    bool is_spoilt;   /* the run before said more than its result: not the present one's doing */
    int32_t loaded;   /* of the page, when the hello deadline was set */
    int hello_renewals;
    int64_t started_us;
    int jobs_done;
    int vain_nudges; /* in a row, without a result in between … */
    int nudged_done; /* … of jobs_done at the last nudge */
};

struct slot_job {
    void *user;
    int64_t id;
    int64_t fence;
    int64_t nonce;
    int64_t ticket;  /* in its place until it begins (worker/protocol.h) */
    uint64_t number; /* among all that this child was sent */
    int64_t kill_at_us;
};

/* What the child was sent and has not answered: it runs them in their order, so of the first one
 * or more it may have begun, of the others none. */
struct slot_jobs {
    struct slot_job items[RUNNER_DEPTH];
    size_t first;
    size_t count;
    uint64_t sent;
    char kind[JOB_NAME_MAX + 1]; /* all of them are of the same */
    int64_t kill_at_us;     /* as in the page, which a handler can write to; 0 = no limit yet */
    int64_t last_nonce;     /* of the run that was answered last; 0 = there was none */
    bool was_asked_to_stop; /* the one that is left */
    bool is_slow;           /* those behind the first were taken back: it gets no others now */
};

struct slot {
    struct slot_options options;
    struct slot_child child;
    struct slot_jobs jobs;
    uv_process_t process; /* this and the pipe: open from a child's start until it is GONE */
    uv_pipe_t pipe;
    uv_timer_t timer; /* ON_LATE of the child's state; GONE: the restart */
    int open_handles;
    bool is_closing;
    struct runner_page *page;
    int page_fd;
    struct run_output output; /* what its child prints; fd −1 = there is none */
    struct buf in;
    struct buf results; /* out of the ring */
    uint64_t ring_taken;
    struct buf out; /* to be sent */
    bool is_writing;
    uv_write_t write;
    int restart_ms;
    struct rand rand;
    int64_t nonces[SLOT_NONCES];
    size_t nonce_count; /* not used yet */
};

/* ---- slot.c ---- */
void slot_step(struct slot *slot, enum child_event event);
bool slot_is_up(const struct slot *slot); /* LOADING, IDLE or BUSY */
/* Kills a child for what it did. */
void slot_break_off(struct slot *slot, const struct err *why);
/* Retires the child. If it announced its exit it ends itself, which also finds processes that a
 * handler left behind in sessions of their own (fault.G4); else it is killed. */
void slot_retire(struct slot *slot, bool leaves);

/* ---- slot_jobs.c ---- */
/* What it runs, or begins next; NULL = none. */
struct slot_job *slot_first(struct slot *slot);
/* What the place of a job in the page says of it. */
enum slot_place { PLACE_WAITS, PLACE_BEGUN, PLACE_UNSERVED, PLACE_WRITTEN_OVER };
enum slot_place slot_place(const struct slot *slot, const struct slot_job *job);
/* Before and after the results are taken from the ring: a child whose first job is found written
 * over, or not answered although the next one had begun before, is killed. Returns what
 * slot_look_after() wants. */
int64_t slot_look_before(struct slot *slot);
void slot_look_after(struct slot *slot, int64_t overdue_nonce);
/* Reports how the first job ended and removes it from the queue. */
void slot_report(struct slot *slot, const struct slot_run *run);
/* Recycling is due, or other plugins. */
bool slot_is_spent(const struct slot *slot);

/* ---- slot_frames.c ---- */
/* After a result, the hello, or the end of a write: is it free, or due to be replaced? */
void slot_go_on(struct slot *slot);
void slot_take_frames(struct slot *slot); /* all that is whole in what was read */

#endif
