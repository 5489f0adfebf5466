/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the worker get from outside, besides what the `env` of each names. It belongs
 * to the root; the parts have pointers to it. */
#ifndef CLAIMD_WORKER_ENV_H
#define CLAIMD_WORKER_ENV_H

#include "config/config.h"
#include "hints/hints.h"
#include "redlock/redlock_async.h"
#include "store/jobs/job_store.h"
#include "store/worker_store.h"

#include <uv.h>

struct servers {
    uv_loop_t *loop;
    const struct config *config; /* a reload replaces it */
    struct pg *pg;
    struct job_store *store;
    struct redlock_async *lock; /* NULL before the cluster is joined */
    struct hints *hints;
    struct hints_popper *popper; /* NULL once no more hints may arrive */
};

enum worker_stage {
    WORKER_STARTING, /* waits for PostgreSQL and for the first runner's kinds */
    WORKER_RUNNING,
    WORKER_DRAINING, /* takes no new jobs; running ones may end */
    WORKER_CLOSING   /* handles are closing; the loop ends by itself */
};

/* Where the worker stands. */
struct standing {
    enum worker_stage stage;
    bool is_asked_quiet;            /* an operator asked this registration to take no new jobs */
    bool is_quiet;                  /* takes no new jobs, because of SIGUSR1 or an operator */
    int64_t stop_at_us;             /* DRAINING: when handlers are asked to stop, … */
    int64_t kill_at_us;             /* … and then killed */
    char worker_id[WORKER_ID_SIZE]; /* random; a new one for each row */
    bool is_registered;             /* it has a row under that id */
    int64_t heartbeat_confirmed_us; /* when the last confirmed heartbeat was sent; 0 = none */
    bool has_lost_pop; /* hints may have vanished: the next heartbeat reports it to the scheduler */
};

/* What a part marks instead of calling another part: the root does it, once per turn of the loop
 * (turn.h). */
struct due {
    bool registered;     /* the worker has a new row */
    bool heartbeat;      /* the reply to the next heartbeat is wanted now */
    bool news;           /* an operator may have changed something: a heartbeat soon finds out */
    bool limits_of_runs; /* a heartbeat was confirmed: runs may last longer */
    bool cancels;        /* a heartbeat has brought cancels of jobs that run here */
    bool listen;         /* the stage, the kinds, the paused queues or a weight have changed */
    bool ready;          /* jobs may have become ready for a runner */
    bool dispatch;       /* runners may have become free */
    bool room;           /* there may be room for more ids */
    bool end;            /* something has ended: a draining worker may have nothing left */
};

#endif
