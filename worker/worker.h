/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker: pop → lock → claim → run → finish → release, every step batched by what gathers while
 * the one before is in flight (ARCHITECTURE §4). One thread, one loop; nothing here blocks. The
 * parts share this record, and each has its header:
 *  - fetch.h: hints → leases
 *  - claim.h: leases → claimed jobs
 *  - taken_hints.h: hints of jobs that somebody has
 *  - sift.h: hints that lead nowhere
 *  - limits.h: jobs whose limit is reached
 *  - lengths.h: what may be claimed ahead
 *  - dispatch.h: claimed jobs → runners
 *  - run.h: ended runs → finishes → released leases
 *  - deadlines.h: danger, timeouts, lost leases
 *  - registration.h, beat.h: the worker's row
 *  - cancel.h: cancels of jobs that run here
 *  - live.h: what running jobs say of themselves
 *  - listen.h: the sets of hints that are asked
 *  - kinds.h: what is served
 *  - hint_return.h: hints that go back
 *  - ready.h: what /readyz says
 *  - spare.h: whether it has an idle slot for a job
 *  - orphans.h: what runners leave behind
 *  - drain.h: the end
 *
 * worker.c opens all of it, hands signals and connections' events round, and closes it. */
#ifndef CLAIMD_WORKER_WORKER_H
#define CLAIMD_WORKER_WORKER_H

#include "base/log.h"
#include "base/rand.h"
#include "config/config.h"
#include "daemon/daemon.h"
#include "daemon/telemetry.h"
#include "hints/hints.h"
#include "redlock/redlock_async.h"
#include "store/jobs/job_store.h"
#include "store/worker_store.h"
#include "worker/beat.h"
#include "worker/cancel.h"
#include "worker/deadlines.h"
#include "worker/dispatch.h"
#include "worker/drain.h"
#include "worker/fetch.h"
#include "worker/hint_return.h"
#include "worker/jobs_in_hand.h"
#include "worker/kinds.h"
#include "worker/lengths.h"
#include "worker/limits.h"
#include "worker/listen.h"
#include "worker/live.h"
#include "worker/orphans.h"
#include "worker/ready.h"
#include "worker/registration.h"
#include "worker/run.h"
#include "worker/run_stats_save.h"
#include "worker/sift.h"
#include "worker/slot.h"
#include "worker/spare.h"
#include "worker/state_dir.h"
#include "worker/taken_hints.h"
#include "worker/worker_metrics.h"

#define WORKER_SLOTS_MAX 1024

enum worker_stage {
    WORKER_STARTING, /* waits for PostgreSQL and for the first runner's kinds */
    WORKER_RUNNING,
    WORKER_DRAINING, /* nothing new; what runs may end */
    WORKER_CLOSING   /* handles are closing; the loop ends by itself */
};

struct worker {
    /* Handles that all parts use. */
    uv_loop_t *loop;
    const struct config *config;
    struct telemetry *telemetry;
    struct worker_metrics metrics;
    struct rand rand;
    struct pg *pg;
    struct job_store *store;
    struct redlock_async *lock; /* NULL before the cluster is joined */
    struct hints *hints;
    struct hints_popper *popper; /* NULL once nothing may arrive any more */
    struct slot *slots[WORKER_SLOTS_MAX];
    size_t slot_count;
    struct jobs_in_hand jobs;

    /* Where it stands. */
    enum worker_stage stage;
    bool is_quiet;       /* it takes no new jobs: by SIGUSR1, or because … */
    bool is_asked_quiet; /* … an operator asks for it, under this registration */
    int exit_code;

    /* The parts. */
    struct registration registration;
    struct beat beat;
    struct listen listen;
    struct kinds kinds;
    struct fetch fetch;
    struct taken_hints taken_hints;
    struct sift sift;
    struct limits limits;
    struct lengths lengths;
    struct run_stats_save run_stats_save;
    struct hint_return *hint_return;
    struct dispatch dispatch;
    struct runs runs;
    struct deadlines deadlines;
    struct live live;
    struct cancel cancel;
    struct ready ready;
    struct spare spare;
    struct drain drain;

    /* worker.c's own. */
    int state_lock_fd;
    char runner[CONFIG_PATH_MAX];
    char plugin_owners[CONFIG_UIDS_SIZE];
    int64_t start_deadline_us; /* until PostgreSQL must have been there */
    int64_t orphans_at_us;     /* when they are looked for next */
    struct err pg_down_why;    /* the last one */
    struct complaint pg_complaint;
    struct daemon_hints hints_said;
    struct daemon_quorum quorum_said;
    uv_signal_t signals[4];
    uv_timer_t reload_timer;
    uv_timer_t close_timer;
};

int worker_main(const struct config *config);

/* A timer of one of the parts, with the worker as its data. */
enum status worker_open_timer(struct worker *w, uv_timer_t *timer, const char *part,
                              struct err *err) MUST_USE;

/* The cluster is joined: connects to the lock nodes. */
enum status worker_open_lock(struct worker *w, int64_t ttl_max_us, struct err *err) MUST_USE;

/* There is a row: from now on jobs are taken. */
void worker_on_registered(struct worker *w);

/* A worker that has waited too long for PostgreSQL, from its start on, fails. */
void worker_check_started(struct worker *w, int64_t now_us);

/* What an operator wants of it: "quiet", "drain", or "", which ends a "quiet". */
void worker_take_asked(struct worker *w, const char *asked);

/* It can't do its work, and says why. */
void worker_fail(struct worker *w, int exit_code, const char *why);
void worker_close(struct worker *w);

#endif
