/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker: pop → lock → claim → run → finish → release. Every step is done for a group of jobs:
 * one collects while the previous one is in flight (ARCHITECTURE §4). One thread, one loop; nothing
 * here blocks.
 *
 * The work is done by four parts, each in a folder and a library of its own. None calls another,
 * except that jobs/ gives orders to slots/: each has an `env` with what it needs from outside, and
 * marks in `due` what follows from its events (env.h). The files of this folder are the root, which
 * alone knows all parts:
 * - worker.c opens and closes the parts, and passes on signals and events of connections;
 * - wiring.c fills in each part's env;
 * - turn.c does what is due, once per turn of the loop, and has the tick;
 * - ready.c, drain.c, spare.c and collect.c ask all parts: is it ready, is nothing left, is a slot
 *   idle, what do the metrics say? */
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
#include "worker/drain.h"
#include "worker/env.h"
#include "worker/intake/intake.h"
#include "worker/jobs/jobs.h"
#include "worker/membership/membership.h"
#include "worker/membership/state_dir.h"
#include "worker/ready.h"
#include "worker/slots/orphans.h"
#include "worker/slots/slots.h"
#include "worker/spare.h"
#include "worker/turn.h"
#include "worker/worker_metrics.h"

struct worker {
    /* What the parts share. */
    struct servers servers;
    struct standing standing;
    struct due due; /* set by any part; turn.c does it */
    struct worker_metrics metrics;
    struct rand rand;
    struct active_jobs active;
    struct lengths lengths;

    /* The parts. */
    struct membership membership;
    struct ready ready;
    struct spare spare;
    struct drain drain;
    struct turn turn;

    struct slots slots;
    struct jobs jobs;
    struct intake intake;

    /* Private to the root. */
    struct telemetry *telemetry;
    int exit_code;
    int state_lock_fd;
    char runner[CONFIG_PATH_MAX];
    char plugin_owners[CONFIG_UIDS_SIZE];
    int64_t start_deadline_us; /* PostgreSQL must be reached by then */
    struct err pg_down_why;    /* why it was last down */
    struct complaint pg_complaint;
    struct daemon_hints hints_said;
    struct daemon_quorum quorum_said;
    uv_signal_t signals[4];
    uv_timer_t reload_timer;
    uv_timer_t close_timer;
};

int worker_main(const struct config *config);

/* Copies states and the counts of libraries into the metrics (collect.c). */
void worker_collect(struct worker *w);

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
