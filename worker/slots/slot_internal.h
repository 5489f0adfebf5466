/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by slot.c (the life of a child), slot_jobs.c (the jobs that it is given) and slot_frames.c
 * (the frames that it sends). */
#ifndef CLAIMD_WORKER_SLOTS_SLOT_INTERNAL_H
#define CLAIMD_WORKER_SLOTS_SLOT_INTERNAL_H

#include "protocol/run_output.h"
#include "worker/slots/slot.h"

#define SLOT_NONCES 64 /* random numbers drawn at once; two for each job */

/* The states of a child; the table of transitions is in slot.c. */
enum child_state {
    CHILD_NONE,    /* before the first one */
    CHILD_LOADING, /* waits for its hello */
    CHILD_IDLE,
    CHILD_BUSY,
    CHILD_LEAVING, /* it announced that it ends itself */
    CHILD_KILLED,  /* waits for its exit; what it wrote before still counts */
    CHILD_MUTE,    /* its pipe has ended, so it was killed; waits for its exit */
    CHILD_EXITED,  /* waits for the end of its pipe */
    CHILD_GONE     /* all that it wrote has been read; the next child follows */
};

enum child_event {
    ON_FREE, /* its hello or the end of its last job: it can take others */
    ON_JOB,
    ON_LEAVE,
    ON_KILL,
    ON_PIPE_END,
    ON_EXIT,
    ON_LATE, /* a state has lasted too long */
    CHILD_EVENT_COUNT
};

/* Why the child ends. */
enum child_cause {
    CAUSE_ITSELF,  /* it ended, or broke the protocol */
    CAUSE_HUNG,    /* while loading its plugins */
    CAUSE_ORDERED, /* the worker killed it: time, lease, drain or cancel */
    CAUSE_REPLACED /* recycled, outdated or left dirty: `died` is not called */
};

/* The state of one child; zeroed for the next one. */
struct slot_child {
    enum child_state state;
    enum child_cause cause;
    int pid;
    int64_t exit_status;
    int term_signal;
    struct err broken; /* the violation for which it was broken off */
    int hellos;
    bool is_outdated; /* replaced when it is idle */
    bool is_spoilt;   /* the previous run said more than its result: not this one's fault */
    int32_t loaded;   /* the page's count when the hello deadline was set */
    int hello_renewals;
    int64_t started_us;
    int jobs_done;
    int vain_nudges; /* nudges in a row without a result in between */
    int nudged_done; /* jobs_done at the last nudge */
};

struct slot_job {
    void *user;
    int64_t id;
    int64_t fence;
    int64_t nonce;
    int64_t ticket;  /* stored in its place until it begins (protocol/protocol.h) */
    uint64_t number; /* among all jobs that this child was sent */
    int64_t kill_at_us;
};

/* The jobs that the child was sent and has not answered. It runs them in their order: it may have
 * begun the first ones, but none behind a job that it has not begun. */
struct slot_jobs {
    struct slot_job items[RUNNER_DEPTH];
    size_t first;
    size_t count;
    uint64_t sent;
    char kind[JOB_NAME_MAX + 1]; /* the same for all of them */
    int64_t kill_at_us;     /* as in the page, which a handler can overwrite; 0 = no limit yet */
    int64_t last_nonce;     /* of the run that was answered last; 0 = none */
    bool was_asked_to_stop; /* the job that is left */
    bool is_slow;           /* jobs behind the first were taken back: it gets no others now */
};

struct slot {
    struct slot_options options;
    struct slot_child child;
    struct slot_jobs jobs;
    uv_process_t process; /* this and the pipe are open from a child's start until it is GONE */
    uv_pipe_t pipe;
    uv_timer_t timer; /* ON_LATE of the child's state; in GONE: the restart */
    int open_handles;
    bool is_closing;
    struct runner_page *page;
    int page_fd;
    struct run_output output; /* of its child; fd −1 = none */
    struct buf in;
    struct buf results; /* taken from the ring */
    uint64_t ring_taken;
    struct buf out; /* to be sent to the child */
    bool is_writing;
    uv_write_t write;
    int restart_ms;
    struct rand rand;
    int64_t nonces[SLOT_NONCES];
    size_t nonce_count; /* numbers not used yet */
};

/* ---- slot.c ---- */
void slot_step(struct slot *slot, enum child_event event);
bool slot_is_up(const struct slot *slot); /* its child is LOADING, IDLE or BUSY */
/* Kills a child because of this violation. */
void slot_break_off(struct slot *slot, const struct err *why);
/* Retires the child. If it announced its exit, it ends itself, which also finds processes that a
 * handler left behind in sessions of their own (fault.G4); otherwise it is killed. */
void slot_retire(struct slot *slot, bool leaves);

/* ---- slot_jobs.c ---- */
/* Returns the job that it runs or begins next; NULL = none. */
struct slot_job *slot_first(struct slot *slot);
/* What the page shows in the place of a job. */
enum slot_place { PLACE_WAITS, PLACE_BEGUN, PLACE_UNSERVED, PLACE_WRITTEN_OVER };
enum slot_place slot_place(const struct slot *slot, const struct slot_job *job);
/* Call before and after the results are taken from the ring: kills a child if its first job's place
 * is written over, or if that job is not answered although the next one had begun. Pass the return
 * value of slot_look_before() to slot_look_after(). */
int64_t slot_look_before(struct slot *slot);
void slot_look_after(struct slot *slot, int64_t overdue_nonce);
/* Reports how the first job ended and removes it from the queue. */
void slot_report(struct slot *slot, const struct slot_run *run);
/* True if the child is due for recycling or outdated. */
bool slot_is_spent(const struct slot *slot);

/* ---- slot_frames.c ---- */
/* Call after a result, the hello or the end of a write: marks the child as idle, or retires it if
 * that is due. */
void slot_go_on(struct slot *slot);
void slot_take_frames(struct slot *slot); /* takes all complete frames that were read */

#endif
