/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker: pop → lock → claim → run → finish → release, every step batched by what gathers while
 * the one before is in flight (ARCHITECTURE §4). One thread, one loop; nothing here blocks. The
 * parts share this record, and each has its header:
 *  - fetch.h: hints → leases → claims
 *  - run.h: claimed jobs → runners → finishes → released leases
 *  - deadlines.h: danger, timeouts, lost leases
 *  - registration.h, beat.h: the worker's row
 *  - listen.h: the sets of hints that are asked
 *  - kinds.h: what is asked for
 *  - hint_return.h: hints that go back
 *  - ready.h: what /readyz says
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
#include "store/cluster_store.h"
#include "store/jobs/job_store.h"
#include "store/worker_store.h"
#include "worker/beat.h"
#include "worker/capacity.h"
#include "worker/danger.h"
#include "worker/deadlines.h"
#include "worker/fetch.h"
#include "worker/hint_return.h"
#include "worker/jobs_in_hand.h"
#include "worker/kind_set.h"
#include "worker/kinds.h"
#include "worker/listen.h"
#include "worker/ready.h"
#include "worker/registration.h"
#include "worker/run.h"
#include "worker/slot.h"
#include "worker/state_dir.h"
#include "worker/worker_metrics.h"

#define WORKER_SLOTS_MAX 1024

enum worker_stage {
    WORKER_STARTING, /* waits for PostgreSQL and for the first runner's kinds */
    WORKER_RUNNING,
    WORKER_DRAINING, /* nothing new; what runs may end */
    WORKER_CLOSING   /* handles are closing; the loop ends by itself */
};

struct worker {
    uv_loop_t *loop;
    const struct config *config;
    enum worker_stage stage;
    int exit_code;
    struct rand rand;
    struct telemetry *telemetry;
    struct worker_metrics metrics;

    struct pg *pg;
    struct job_store *store;
    struct redlock_async *lock;
    struct hints *hints;
    struct hints_popper *popper;
    struct slot *slots[WORKER_SLOTS_MAX];
    size_t slot_count;

    struct jobs_in_hand jobs;
    struct capacity_limits capacity;
    int64_t mean_run_us;          /* run.c */
    int64_t ahead_pause_until_us; /* fetch.c: refused claims made ahead */
    int64_t fetch_pause_until_us; /* fetch.c: no quorum, PostgreSQL away */
    int64_t fetch_pause_us;
    int64_t setbacks_since_us; /* ready.c: nothing could be claimed since then … */
    int64_t setback_us;        /* … the last time that it was tried */

    struct hint_return *hint_return; /* hint_return.c */

    struct kind_set kinds;    /* what is asked for; kinds.c */
    int64_t kinds_generation; /* counts its changes; 0 = no runner has said hello */
    struct kinds_book *kinds_book;
    struct registration registration;
    struct beat beat;
    struct listen listen;
    bool is_quiet;

    struct danger_limits danger;
    uv_timer_t deadlines_timer;
    int64_t stop_at_us; /* drain: handlers are asked to stop, then killed */
    int64_t kill_at_us;
    int64_t give_up_at_us;

    uv_signal_t signals[4];
    bool is_saying_goodbye;
    uv_timer_t close_timer;
    int64_t start_deadline_us;
    int64_t ready_since_us; /* registered, but not said so yet; 0 = said, or not registered */
    char runner[CONFIG_PATH_MAX];
    char plugin_owners[CONFIG_UIDS_SIZE];
    int lock_fd;            /* of the state directory */
    struct err pg_down_why; /* the last one */
    struct complaint pg_complaint;
    struct complaint runner_complaint;
    struct complaint store_complaint;
    struct daemon_hints hints_said;
    struct daemon_quorum quorum_said;
};

enum status worker_open_lock(struct worker *w, int64_t ttl_max_us, struct err *err) MUST_USE;
void worker_on_registered(struct worker *w);
void worker_check_ready(struct worker *w);
void worker_fail(struct worker *w, int exit_code, const char *why);
void worker_check_started(struct worker *w, int64_t now_us);
void worker_check_drained(struct worker *w);
int worker_main(const struct config *config);

#endif
