/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker: pop → lock → claim → run → finish → release, every step batched by what gathers while
 * the one before is in flight (ARCHITECTURE §4). One thread, one loop; nothing here blocks. The
 * parts, each in its file:
 *  - fetch.c: hints → leases → claims
 *  - run.c: ready jobs → runners → finishes → released leases
 *  - deadlines.c: danger, timeouts, lost leases
 *  - beat.c: the worker's row, its kinds, what to listen to
 *  - hint_return.c: hints that go back
 *  - worker.c: start, drain, stop
 *
 * They share this record; whoever changes a field is named beside it. */
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
#include "worker/capacity.h"
#include "worker/danger.h"
#include "worker/jobs_in_hand.h"
#include "worker/kind_set.h"
#include "worker/slot.h"
#include "worker/state_dir.h"
#include "worker/worker_metrics.h"

#define WORKER_SLOTS_MAX 1024
#define WORKER_PAUSED_MAX CONFIG_QUEUES_MAX

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
    char worker_id[WORKER_ID_SIZE];
    char predecessor_id[WORKER_ID_SIZE]; /* "": none, or settled */
    bool is_schema_checked;
    struct cluster_join join;
    char fingerprint[CLUSTER_FINGERPRINT_MAX];
    bool is_registered;
    bool is_quiet;
    bool has_lost_pop;         /* told to the scheduler with the next beat */
    bool is_telling_lost_pop;  /* by the beat in flight */
    bool is_beating;           /* a beat is in flight */
    int64_t beat_sent_us;      /* of the beat in flight */
    int64_t beat_confirmed_us; /* sending time of the last confirmed one */
    uv_timer_t beat_timer;
    char paused[WORKER_PAUSED_MAX][JOB_NAME_MAX + 1];
    size_t paused_count;

    struct danger_limits danger;
    uv_timer_t deadlines_timer;
    int64_t stop_at_us; /* drain: handlers are asked to stop, then killed */
    int64_t kill_at_us;
    int64_t give_up_at_us;

    uv_signal_t signals[4];
    bool is_saying_goodbye;
    uv_timer_t close_timer;
    int64_t start_deadline_us;
    int64_t lock_since_us;  /* when the lock nodes were first connected to */
    int64_t ready_since_us; /* registered, but not said so yet; 0 = said, or not registered */
    char runner[CONFIG_PATH_MAX];
    char plugin_owners[CONFIG_UIDS_SIZE];
    int lock_fd;            /* of the state directory */
    struct err pg_down_why; /* the last one */
    struct complaint pg_complaint;
    struct complaint beat_complaint;
    struct complaint listen_complaint;
    struct complaint register_complaint;
    struct complaint runner_complaint;
    struct complaint store_complaint;
    struct daemon_hints hints_said;
    struct daemon_quorum quorum_said;
};

/* ---- fetch.c ---- */
size_t fetch_want(void *worker);
void fetch_popped(void *worker, const struct hint *list, size_t count);
void fetch_poke(struct worker *w);

/* ---- run.c ---- */
extern const struct slot_events run_slot_events;
void run_dispatch(struct worker *w);
/* Ends a claimed job that never reached a handler: uncharged, its hint goes back. */
void run_hand_back(struct worker *w, struct job_in_hand *job);
void run_limit(struct worker *w, struct job_in_hand *job, int64_t now_us);
/* Lets go of a job: its lease is released, the record freed. */
void run_let_go(struct worker *w, struct job_in_hand *job);

/* ---- hint_return.c ---- */
enum status hint_return_open(struct worker *w, struct err *err) MUST_USE;
void hint_return_close(struct worker *w);
/* Queues a hint; it is pushed after every lease released so far was acknowledged (else it might
 * find its own job held). */
void hint_return_add(struct worker *w, int64_t id, int64_t score, const char *queue,
                     const char *kind);
bool hint_return_is_idle(const struct worker *w);
/* A claim brought something, or nothing but rows that can't be claimed now. */
void hint_return_pace(struct worker *w, bool is_progress);

/* ---- deadlines.c ---- */
enum status deadlines_start(struct worker *w, struct err *err) MUST_USE;
void deadlines_on_lease(void *worker, struct redlock_batch *batch, size_t index, void *user,
                        enum redlock_state state);
struct danger_facts deadlines_facts(const struct worker *w, const struct job_in_hand *job);
void deadlines_stop(struct worker *w);

/* ---- kinds.c ---- */
enum status kinds_open(struct worker *w, struct err *err) MUST_USE;
void kinds_close(struct worker *w);
/* Files that runners are started without. */
const struct slot_without *kinds_without(const struct worker *w);
/* Reads the hello of a runner: the worker serves what all of its runners do. */
void kinds_take_hello(struct worker *w, const struct slot *slot, const char *json, size_t len);
/* A runner ended while it loaded this file. */
void kinds_load_died(struct worker *w, const char *file, const char *text, bool is_hung);
/* Kinds that are new here, or came back, or changed, are served once PostgreSQL knows them. */
void kinds_announce(struct worker *w);
/* The plugins' files may have changed: every runner is replaced as soon as it is idle. */
void kinds_refresh(struct worker *w);
void kinds_tick(struct worker *w, int64_t now_us);

/* ---- registration.c ---- */
/* PostgreSQL is up and the kinds are known: check the schema, join the cluster, end a predecessor,
 * register, beat. Safe to call again at any time: it goes on where it stands. */
void registration_begin(struct worker *w);
/* Our row was marked dead: a new worker_id for what comes, frozen beats for what is held. */
void registration_again(struct worker *w);

/* Tells PostgreSQL of these kinds, for the row that we have. */
enum status registration_announce(struct worker *w, const struct kind_set *kinds,
                                  worker_done_cb *done, void *ctx) MUST_USE;

/* ---- beat.c ---- */
void beat_start(struct worker *w);
void beat_now(struct worker *w); /* unless one is under way */
void beat_stop(struct worker *w);
void beat_listen(struct worker *w); /* the hint sets of queues that are not paused */

/* ---- ready.c ---- */
void worker_ready(void *worker, struct health *ret); /* the checks of /readyz */
/* Lock or claim of a batch failed as a whole; what has been claimed ends a row of those. */
void ready_setback(struct worker *w, int64_t now_us);

/* ---- worker.c ---- */
enum status worker_open_lock(struct worker *w, int64_t ttl_max_us, struct err *err) MUST_USE;
void worker_on_registered(struct worker *w);
void worker_check_ready(struct worker *w);
void worker_fail(struct worker *w, int exit_code, const char *why);
void worker_check_started(struct worker *w, int64_t now_us);
void worker_check_drained(struct worker *w);
int worker_main(const struct config *config);

#endif
