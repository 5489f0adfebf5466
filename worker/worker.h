/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker: pop → lock → claim → run → finish → release. Every step is batched: a batch collects
 * while the previous one is in flight (ARCHITECTURE §4). One thread, one loop; nothing here blocks.
 * The parts share this record, and each has its header:
 * - fetch.h: hints → leases
 * - claim.h: leases → claimed jobs
 * - taken_hints.h: hints of jobs whose lock is held
 * - sift.h: hints of jobs that no longer exist
 * - limits.h: jobs whose limit is reached
 * - lengths.h: what may be claimed ahead
 * - dispatch.h: claimed jobs → runners
 * - run.h: ended runs → finishes → released leases
 * - deadlines.h: danger, timeouts, lost leases
 * - registration.h, beat.h: the worker's row
 * - cancel.h: cancels of jobs that run here
 * - live.h: progress and checkpoints of running jobs
 * - listen.h: the sets of hints that are popped
 * - kinds.h: the kinds that are served
 * - hint_return.h: hints that are put back
 * - ready.h: readiness and /readyz
 * - spare.h: whether a slot is idle
 * - orphans.h: processes that runners leave behind
 * - drain.h: the end
 *
 * worker.c opens all parts, passes on signals and events of connections, and closes the parts. */
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
    WORKER_DRAINING, /* takes no new jobs; running ones may end */
    WORKER_CLOSING   /* handles are closing; the loop ends by itself */
};

struct worker {
    /* Shared by all parts. */
    uv_loop_t *loop;
    const struct config *config;
    struct telemetry *telemetry;
    struct worker_metrics metrics;
    struct rand rand;
    struct pg *pg;
    struct job_store *store;
    struct redlock_async *lock; /* NULL before the cluster is joined */
    struct hints *hints;
    struct hints_popper *popper; /* NULL once no more hints may arrive */
    struct slot *slots[WORKER_SLOTS_MAX];
    size_t slot_count;
    struct jobs_in_hand jobs;

    /* State of the worker. */
    enum worker_stage stage;
    bool is_quiet;       /* takes no new jobs, because of SIGUSR1 or … */
    bool is_asked_quiet; /* … an operator's request to this registration */
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

    /* Private to worker.c. */
    int state_lock_fd;
    char runner[CONFIG_PATH_MAX];
    char plugin_owners[CONFIG_UIDS_SIZE];
    int64_t start_deadline_us; /* PostgreSQL must be reached by then */
    int64_t orphans_at_us;     /* when to look for orphans next */
    struct err pg_down_why;    /* why it was last down */
    struct complaint pg_complaint;
    struct daemon_hints hints_said;
    struct daemon_quorum quorum_said;
    uv_signal_t signals[4];
    uv_timer_t reload_timer;
    uv_timer_t close_timer;
};

int worker_main(const struct config *config);

/* Initializes a timer of one of the parts, with the worker as its data. */
enum status worker_open_timer(struct worker *w, uv_timer_t *timer, const char *part,
                              struct err *err) MUST_USE;

/* Connects to the lock nodes. Call when the cluster is joined. */
enum status worker_open_lock(struct worker *w, int64_t ttl_max_us, struct err *err) MUST_USE;

/* Call when the worker has a row: from now on it takes jobs. */
void worker_on_registered(struct worker *w);

/* Fails the worker if it has waited too long for PostgreSQL since its start. */
void worker_check_started(struct worker *w, int64_t now_us);

/* Does what an operator asks for: "quiet", "drain", or "", which ends a "quiet". */
void worker_take_asked(struct worker *w, const char *asked);

/* Logs why the worker can't do its work, and closes it. */
void worker_fail(struct worker *w, int exit_code, const char *why);
void worker_close(struct worker *w);

#endif
