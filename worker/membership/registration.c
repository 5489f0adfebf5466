/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/membership/registration.h"

#include "base/bug.h"
#include "base/build.h"
#include "base/clock.h"
#include "base/recorder.h"
#include "base/timer.h"
#include "daemon/daemon.h"
#include "daemon/ready.h"
#include "model/hint.h"
#include "store/migrate.h"
#include "worker/worker.h"

#define RETRY_MS 500 /* after a failed step */
#define NODES_CHECK_MS 5

enum status registration_open(struct worker *w, struct err *err)
{
    return worker_open_timer(w, &w->registration.timer, "registration", err);
}

void registration_close(struct worker *w)
{
    uv_close((uv_handle_t *)&w->registration.timer, NULL);
}

/* ---- registration ---- */

static void on_retry(uv_timer_t *timer)
{
    registration_begin(timer->data);
}

void registration_complain(struct worker *w, const char *step, const struct err *err)
{
    if (complaint_due(&w->registration.complaint, clock_boot_us())) {
        log_warn("register_failed", LOG_TEXT("step", step),
                 LOG_TEXT("err", err == NULL ? "" : err->msg), LOG_TEXT("action", "trying again"));
    }
}

static void try_later(struct worker *w, const char *step, const struct err *err)
{
    w->registration.is_in_flight = false;
    registration_complain(w, step, err);
    timer_start(&w->registration.timer, on_retry, RETRY_MS, 0);
}

static void on_registered(void *ctx, enum status st, const struct err *err)
{
    struct worker *w = ctx;
    struct registration *r = &w->registration;
    r->is_in_flight = false;
    if (st == STATUS_CONFLICT) {
        worker_fail(w, DAEMON_USAGE, err->msg);
        return;
    }
    if (st != STATUS_OK) {
        try_later(w, "register", err);
        return;
    }
    w->standing.is_registered = true;
    record("start", "ok", RECORD_TEXT("worker", w->standing.worker_id),
           RECORD_TEXT("state_dir", w->servers.config->worker.state_dir));
    log_recovered("register_recovered", &r->complaint);
    state_dir_write(w->servers.config->worker.state_dir, w->standing.worker_id);
    w->standing.beat_confirmed_us = r->sent_us;
    job_store_set_worker(w->servers.store, w->standing.worker_id);
    worker_on_registered(w);
    beat_start(w);
}

static enum status send_registration(struct worker *w, const struct kind_set *kinds,
                                     worker_done_cb *done, void *ctx, struct err *err)
{
    const char *queues[CONFIG_QUEUES_MAX];
    char host[CONFIG_TEXT_MAX];
    daemon_host(w->servers.config, host, sizeof host);
    for (size_t i = 0; i < w->servers.config->worker.queue_count; i++) {
        queues[i] = w->servers.config->worker.queues[i];
    }
    struct worker_registration r = {.worker_id = w->standing.worker_id,
                                    .host = host,
                                    .pid = (int)getpid(),
                                    .version = CLAIMD_BUILD,
                                    .state_dir = w->servers.config->worker.state_dir,
                                    .token_prefix = redlock_async_prefix(w->servers.lock),
                                    .queues = queues,
                                    .queue_count = w->servers.config->worker.queue_count,
                                    .slots = (int)w->slots.count,
                                    .kinds = kinds->list,
                                    .kind_count = kinds->count,
                                    .commands = w->servers.config->worker.commands,
                                    .stale_us = w->servers.config->worker.stale_us,
                                    .lock_nodes = w->registration.fingerprint};
    return worker_store_register(w->servers.pg, &r, done, ctx, err);
}

/* Sends the same statements as the registration; the row that exists is kept. */
enum status registration_announce(struct worker *w, const struct kind_set *kinds,
                                  worker_done_cb *done, void *ctx)
{
    return send_registration(w, kinds, done, ctx, NULL);
}

static void do_register(struct worker *w)
{
    struct registration *r = &w->registration;
    struct err err = {0};
    if (rand_uuid(w->standing.worker_id, &err) != STATUS_OK) {
        try_later(w, "draw a worker id", &err);
        return;
    }
    r->sent_us = clock_boot_us();
    if (send_registration(w, &w->kinds.served, on_registered, w, &err) != STATUS_OK) {
        try_later(w, "register", &err);
        return;
    }
    r->is_in_flight = true;
}

/* ---- a predecessor in the same state directory (ARCHITECTURE §6) ---- */

/* Puts the hint into the queue's own set: a worker that does not serve the kind passes it on. The
 * job has had its turn, so its hint goes to the front. If the push fails, the first heartbeat
 * reports a lost pop. */
static void on_back(void *ctx, const struct handed_back *job)
{
    struct worker *w = ctx;
    if (!SEEDED_BUG(15)) {
        hint_return_add(w, &(struct hint){.id = job->id,
                                          .score = hint_score(job->priority, 0),
                                          .queue = job->queue});
    }
}

static void forget_predecessor(struct worker *w)
{
    hints_forget_sleeper(w->servers.hints, w->registration.predecessor_id);
    w->registration.predecessor_id[0] = '\0';
    do_register(w);
}

static void on_handed_back(void *ctx, enum status st, const struct err *err)
{
    struct worker *w = ctx;
    struct registration *r = &w->registration;
    r->is_in_flight = false;
    record("reap", st == STATUS_OK ? "ok" : "info", RECORD_TEXT("worker", r->predecessor_id));
    bool is_refused = st == STATUS_INVALID || st == STATUS_INTERNAL;
    if (is_refused) { /* one of them can't be recorded: the rescuer finds out which */
        log_warn("predecessor_left", LOG_TEXT("worker", r->predecessor_id),
                 LOG_TEXT("err", err->msg), LOG_TEXT("action", "the scheduler rescues its jobs"));
    } else if (st != STATUS_OK) {
        try_later(w, "hand back a predecessor's jobs", err);
        return;
    }
    forget_predecessor(w);
}

static void on_freed(void *ctx)
{
    struct worker *w = ctx;
    struct err err = {0};
    if (w->standing.stage == WORKER_CLOSING) {
        return; /* called as the lock ends: everything that is needed here is closed by now */
    }
    record("reap", "inv", RECORD_TEXT("worker", w->registration.predecessor_id));
    enum status st = worker_store_hand_back_all(w->servers.pg, w->registration.predecessor_id,
                                                on_back, on_handed_back, w, &err);
    if (st != STATUS_OK) {
        try_later(w, "hand back a predecessor's jobs", &err);
    }
}

/* Frees at most REDLOCK_KEYS_MAX leases; those of further jobs end by their TTL. */
static enum status free_leases(struct worker *w, const char *prefix, const int64_t *ids,
                               size_t count, struct err *err)
{
    char texts[REDLOCK_KEYS_MAX][LOCK_KEY_MAX];
    struct redlock_async_key keys[REDLOCK_KEYS_MAX];
    size_t n = count < REDLOCK_KEYS_MAX ? count : REDLOCK_KEYS_MAX;
    for (size_t i = 0; i < n; i++) {
        size_t len = job_lock_key(texts[i], w->servers.config->redis.prefix, ids[i]);
        keys[i] = (struct redlock_async_key){.bytes = texts[i], .len = len};
    }
    struct redlock_error e = {0};
    if (redlock_async_free_prefix(w->servers.lock, prefix, keys, n, on_freed, w, &e) != 0) {
        return err_fail(err, STATUS_INVALID, "%s", e.message);
    }
    return STATUS_OK;
}

static void on_predecessor(void *ctx, enum status st, const char *token_prefix, const int64_t *ids,
                           size_t count)
{
    struct worker *w = ctx;
    struct err err = {0};
    if (st != STATUS_OK && st != STATUS_NOT_FOUND) {
        try_later(w, "end a predecessor", NULL);
        return;
    }
    if (st == STATUS_NOT_FOUND) { /* it ended cleanly and left nothing behind */
        w->registration.is_in_flight = false;
        forget_predecessor(w);
        return;
    }
    if (count == 0) {
        on_freed(w);
        return;
    }
    for (size_t i = 0; recorder_is_on() && i < count; i++) {
        record("free", "inv", RECORD_I64("job", ids[i]), RECORD_TEXT("prefix", token_prefix));
    }
    log_info("predecessor_ended", LOG_TEXT("worker", w->registration.predecessor_id),
             LOG_I64("jobs", count));
    if (free_leases(w, token_prefix, ids, count, &err) != STATUS_OK) {
        on_freed(w);
    }
}

/* ---- first: the right schema, the right lock nodes ---- */

/* lock.N8: quorums of two different lists of nodes might not overlap. */
static void on_joined(void *ctx, enum status st, int64_t ttl_max_us, const struct err *err)
{
    struct worker *w = ctx;
    struct err failed = {0};
    w->registration.is_in_flight = false;
    if (st == STATUS_CONFLICT) {
        worker_fail(w, DAEMON_USAGE, err->msg);
        return;
    }
    if (st != STATUS_OK) {
        try_later(w, "join the cluster", err);
        return;
    }
    w->registration.lock_since_us = clock_boot_us();
    if (worker_open_lock(w, ttl_max_us, &failed) != STATUS_OK) {
        worker_fail(w, DAEMON_USAGE, failed.msg);
        return;
    }
    registration_begin(w);
}

static enum status join(struct worker *w, struct err *err)
{
    struct registration *r = &w->registration;
    const struct config *c = w->servers.config;
    enum status st =
        redis_endpoint_sorted_list(c->lock.nodes[0], sizeof c->lock.nodes[0], c->lock.node_count,
                                   r->fingerprint, sizeof r->fingerprint, err);
    if (st != STATUS_OK) {
        return st;
    }
    r->join = (struct cluster_join){.pg = w->servers.pg,
                                    .fingerprint = r->fingerprint,
                                    .ttl_us = w->servers.config->lock.ttl_us,
                                    .done = on_joined,
                                    .ctx = w};
    return cluster_store_join(&r->join, err);
}

static void on_schema_checked(void *ctx, enum status st, const struct err *err)
{
    struct worker *w = ctx;
    w->registration.is_in_flight = false;
    if (st == STATUS_CONFLICT) {
        worker_fail(w, DAEMON_NOT_POSSIBLE, err->msg);
        return;
    }
    if (st != STATUS_OK) {
        try_later(w, "check the schema", err);
        return;
    }
    w->registration.is_schema_checked = true;
    registration_begin(w);
}

/* Starts the next step that is due. */
static enum status begin_step(struct worker *w, const char **ret_step, struct err *err)
{
    if (!w->registration.is_schema_checked) {
        *ret_step = "check the schema";
        return migrate_check(w->servers.pg, on_schema_checked, w, err);
    }
    if (w->servers.lock == NULL) {
        *ret_step = "join the cluster";
        return join(w, err);
    }
    *ret_step = "end a predecessor";
    return worker_store_end_predecessor(w->servers.pg, w->registration.predecessor_id,
                                        on_predecessor, w, err);
}

void registration_begin(struct worker *w)
{
    struct registration *r = &w->registration;
    const char *step = "";
    struct err err = {0};
    bool is_time = w->kinds.served.block != NULL && pg_is_up(w->servers.pg) &&
                   !w->standing.is_registered && !r->is_in_flight;
    if (!is_time || w->standing.stage == WORKER_CLOSING) {
        return;
    }
    if (w->servers.lock != NULL && r->predecessor_id[0] == '\0') {
        do_register(w);
        return;
    }
    /* A predecessor's leases can be freed only on nodes that can be reached; otherwise its jobs
     * wait for the leases to end. */
    if (w->servers.lock != NULL &&
        !ready_is_time(w->servers.config, w->servers.lock, r->lock_since_us)) {
        timer_start(&r->timer, on_retry, NODES_CHECK_MS, 0);
        return;
    }
    r->is_in_flight = true;
    if (begin_step(w, &step, &err) != STATUS_OK) {
        try_later(w, step, &err);
    }
}

/* The worker was marked dead while it could not send heartbeats. Running jobs continue until their
 * lease has ended and the last heartbeat of the old row is stale; new claims are made under a new
 * id (ARCHITECTURE §6). */
void registration_again(struct worker *w)
{
    log_warn("worker_marked_dead", LOG_TEXT("worker", w->standing.worker_id),
             LOG_TEXT("action", "starting over under a new id"));
    int64_t frozen = w->standing.beat_confirmed_us > 0 ? w->standing.beat_confirmed_us : 1;
    for (struct job_in_hand *job = w->jobs.by_id; job != NULL; job = job->hh.next) {
        if (job->state != HAND_LOCKING && job->beat_frozen_us == 0) {
            job->beat_frozen_us = frozen;
        }
    }
    w->standing.is_registered = false;
    w->is_asked_quiet = false; /* nothing was asked of the new row yet; is_quiet does not change */
    beat_stop(w);
    do_register(w);
}
