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
#include "worker/membership/membership.h"
#include "worker/membership/state_dir.h"

#define RETRY_MS 500 /* after a failed step */
#define NODES_CHECK_MS 5

enum status registration_open(struct membership *m, struct err *err)
{
    return timer_open(m->env.servers->loop, &m->registration.timer, m, "registration", err);
}

void registration_close(struct membership *m)
{
    uv_close((uv_handle_t *)&m->registration.timer, NULL);
}

/* ---- registration ---- */

static void on_retry(uv_timer_t *timer)
{
    registration_begin(timer->data);
}

void registration_complain(struct membership *m, const char *step, const struct err *err)
{
    if (complaint_due(&m->registration.complaint, clock_boot_us())) {
        log_warn("register_failed", LOG_TEXT("step", step),
                 LOG_TEXT("err", err == NULL ? "" : err->msg), LOG_TEXT("action", "trying again"));
    }
}

static void try_later(struct membership *m, const char *step, const struct err *err)
{
    m->registration.is_in_flight = false;
    registration_complain(m, step, err);
    timer_start(&m->registration.timer, on_retry, RETRY_MS, 0);
}

static void on_registered(void *ctx, enum status st, const struct err *err)
{
    struct membership *m = ctx;
    struct registration *r = &m->registration;
    r->is_in_flight = false;
    if (st == STATUS_CONFLICT) {
        m->env.fail(m->env.ctx, DAEMON_USAGE, err->msg);
        return;
    }
    if (st != STATUS_OK) {
        try_later(m, "register", err);
        return;
    }
    m->env.standing->is_registered = true;
    record("start", "ok", RECORD_TEXT("worker", m->env.standing->worker_id),
           RECORD_TEXT("state_dir", m->env.servers->config->worker.state_dir));
    log_recovered("register_recovered", &r->complaint);
    state_dir_write(m->env.servers->config->worker.state_dir, m->env.standing->worker_id);
    m->env.standing->heartbeat_confirmed_us = r->sent_us;
    job_store_set_worker(m->env.servers->store, m->env.standing->worker_id);
    m->env.due->registered = true;
    heartbeat_start(m);
}

static enum status send_registration(struct membership *m, const struct kind_set *kinds,
                                     worker_done_cb *done, void *ctx, struct err *err)
{
    const char *queues[CONFIG_QUEUES_MAX];
    char host[CONFIG_TEXT_MAX];
    daemon_host(m->env.servers->config, host, sizeof host);
    for (size_t i = 0; i < m->env.servers->config->worker.queue_count; i++) {
        queues[i] = m->env.servers->config->worker.queues[i];
    }
    struct worker_registration r = {.worker_id = m->env.standing->worker_id,
                                    .host = host,
                                    .pid = (int)getpid(),
                                    .version = CLAIMD_BUILD,
                                    .state_dir = m->env.servers->config->worker.state_dir,
                                    .token_prefix = redlock_async_prefix(m->env.servers->lock),
                                    .queues = queues,
                                    .queue_count = m->env.servers->config->worker.queue_count,
                                    .slots = (int)m->env.runner_count(m->env.ctx),
                                    .kinds = kinds->list,
                                    .kind_count = kinds->count,
                                    .commands = m->env.servers->config->worker.commands,
                                    .stale_us = m->env.servers->config->worker.stale_us,
                                    .lock_nodes = m->registration.fingerprint};
    return worker_store_register(m->env.servers->pg, &r, done, ctx, err);
}

/* Sends the same statements as the registration; the row that exists is kept. */
enum status registration_announce(struct membership *m, const struct kind_set *kinds,
                                  worker_done_cb *done, void *ctx)
{
    return send_registration(m, kinds, done, ctx, NULL);
}

static void do_register(struct membership *m)
{
    struct registration *r = &m->registration;
    struct err err = {0};
    if (rand_uuid(m->env.standing->worker_id, &err) != STATUS_OK) {
        try_later(m, "draw a worker id", &err);
        return;
    }
    r->sent_us = clock_boot_us();
    if (send_registration(m, &m->kinds.served, on_registered, m, &err) != STATUS_OK) {
        try_later(m, "register", &err);
        return;
    }
    r->is_in_flight = true;
}

/* ---- a predecessor in the same state directory (ARCHITECTURE §6) ---- */

/* Puts the hint into the queue's own set: a worker that does not serve the kind passes it on. The
 * job was popped before, so its hint goes to the front. If the push fails, the first heartbeat
 * reports a lost pop. */
static void on_back(void *ctx, const struct handed_back *job)
{
    struct membership *m = ctx;
    if (!SEEDED_BUG(15)) {
        m->env.put_back(m->env.ctx, &(struct hint){.id = job->id,
                                                   .score = hint_score(job->priority, 0),
                                                   .queue = job->queue});
    }
}

static void forget_predecessor(struct membership *m)
{
    hints_forget_sleeper(m->env.servers->hints, m->registration.predecessor_id);
    m->registration.predecessor_id[0] = '\0';
    do_register(m);
}

static void on_handed_back(void *ctx, enum status st, const struct err *err)
{
    struct membership *m = ctx;
    struct registration *r = &m->registration;
    r->is_in_flight = false;
    record("reap", st == STATUS_OK ? "ok" : "info", RECORD_TEXT("worker", r->predecessor_id));
    bool is_refused = st == STATUS_INVALID || st == STATUS_INTERNAL;
    if (is_refused) { /* one of them can't be recorded: the rescuer finds out which */
        log_warn("predecessor_left", LOG_TEXT("worker", r->predecessor_id),
                 LOG_TEXT("err", err->msg), LOG_TEXT("action", "the scheduler rescues its jobs"));
    } else if (st != STATUS_OK) {
        try_later(m, "hand back a predecessor's jobs", err);
        return;
    }
    forget_predecessor(m);
}

static void on_freed(void *ctx)
{
    struct membership *m = ctx;
    struct err err = {0};
    if (m->env.standing->stage == WORKER_CLOSING) {
        return; /* called as the lock ends: everything that is needed here is closed by now */
    }
    record("reap", "inv", RECORD_TEXT("worker", m->registration.predecessor_id));
    enum status st = worker_store_hand_back_all(m->env.servers->pg, m->registration.predecessor_id,
                                                on_back, on_handed_back, m, &err);
    if (st != STATUS_OK) {
        try_later(m, "hand back a predecessor's jobs", &err);
    }
}

/* Frees at most REDLOCK_KEYS_MAX leases; those of further jobs end by their TTL. */
static enum status free_leases(struct membership *m, const char *prefix, const int64_t *ids,
                               size_t count, struct err *err)
{
    char texts[REDLOCK_KEYS_MAX][LOCK_KEY_MAX];
    struct redlock_async_key keys[REDLOCK_KEYS_MAX];
    size_t n = count < REDLOCK_KEYS_MAX ? count : REDLOCK_KEYS_MAX;
    for (size_t i = 0; i < n; i++) {
        size_t len = job_lock_key(texts[i], m->env.servers->config->redis.prefix, ids[i]);
        keys[i] = (struct redlock_async_key){.bytes = texts[i], .len = len};
    }
    struct redlock_error e = {0};
    if (redlock_async_free_prefix(m->env.servers->lock, prefix, keys, n, on_freed, m, &e) != 0) {
        return err_fail(err, STATUS_INVALID, "%s", e.message);
    }
    return STATUS_OK;
}

static void on_predecessor(void *ctx, enum status st, const char *token_prefix, const int64_t *ids,
                           size_t count)
{
    struct membership *m = ctx;
    struct err err = {0};
    if (st != STATUS_OK && st != STATUS_NOT_FOUND) {
        try_later(m, "end a predecessor", NULL);
        return;
    }
    if (st == STATUS_NOT_FOUND) { /* it ended cleanly and left nothing behind */
        m->registration.is_in_flight = false;
        forget_predecessor(m);
        return;
    }
    if (count == 0) {
        on_freed(m);
        return;
    }
    for (size_t i = 0; recorder_is_on() && i < count; i++) {
        record("free", "inv", RECORD_I64("job", ids[i]), RECORD_TEXT("prefix", token_prefix));
    }
    log_info("predecessor_ended", LOG_TEXT("worker", m->registration.predecessor_id),
             LOG_I64("jobs", count));
    if (free_leases(m, token_prefix, ids, count, &err) != STATUS_OK) {
        on_freed(m);
    }
}

/* ---- first: the right schema, the right lock nodes ---- */

/* lock.N8: quorums of two different lists of nodes might not overlap. */
static void on_joined(void *ctx, enum status st, int64_t ttl_max_us, const struct err *err)
{
    struct membership *m = ctx;
    struct err failed = {0};
    m->registration.is_in_flight = false;
    if (st == STATUS_CONFLICT) {
        m->env.fail(m->env.ctx, DAEMON_USAGE, err->msg);
        return;
    }
    if (st != STATUS_OK) {
        try_later(m, "join the cluster", err);
        return;
    }
    m->registration.lock_since_us = clock_boot_us();
    if (m->env.open_lock(m->env.ctx, ttl_max_us, &failed) != STATUS_OK) {
        m->env.fail(m->env.ctx, DAEMON_USAGE, failed.msg);
        return;
    }
    registration_begin(m);
}

static enum status join(struct membership *m, struct err *err)
{
    struct registration *r = &m->registration;
    const struct config *c = m->env.servers->config;
    enum status st =
        redis_endpoint_sorted_list(c->lock.nodes[0], sizeof c->lock.nodes[0], c->lock.node_count,
                                   r->fingerprint, sizeof r->fingerprint, err);
    if (st != STATUS_OK) {
        return st;
    }
    r->join = (struct cluster_join){.pg = m->env.servers->pg,
                                    .fingerprint = r->fingerprint,
                                    .ttl_us = m->env.servers->config->lock.ttl_us,
                                    .done = on_joined,
                                    .ctx = m};
    return cluster_store_join(&r->join, err);
}

static void on_schema_checked(void *ctx, enum status st, const struct err *err)
{
    struct membership *m = ctx;
    m->registration.is_in_flight = false;
    if (st == STATUS_CONFLICT) {
        m->env.fail(m->env.ctx, DAEMON_NOT_POSSIBLE, err->msg);
        return;
    }
    if (st != STATUS_OK) {
        try_later(m, "check the schema", err);
        return;
    }
    m->registration.is_schema_checked = true;
    registration_begin(m);
}

/* Starts the next step that is due. */
static enum status begin_step(struct membership *m, const char **ret_step, struct err *err)
{
    if (!m->registration.is_schema_checked) {
        *ret_step = "check the schema";
        return migrate_check(m->env.servers->pg, on_schema_checked, m, err);
    }
    if (m->env.servers->lock == NULL) {
        *ret_step = "join the cluster";
        return join(m, err);
    }
    *ret_step = "end a predecessor";
    return worker_store_end_predecessor(m->env.servers->pg, m->registration.predecessor_id,
                                        on_predecessor, m, err);
}

void registration_begin(struct membership *m)
{
    struct registration *r = &m->registration;
    const char *step = "";
    struct err err = {0};
    bool is_time = m->kinds.served.block != NULL && pg_is_up(m->env.servers->pg) &&
                   !m->env.standing->is_registered && !r->is_in_flight;
    if (!is_time || m->env.standing->stage == WORKER_CLOSING) {
        return;
    }
    if (m->env.servers->lock != NULL && r->predecessor_id[0] == '\0') {
        do_register(m);
        return;
    }
    /* A predecessor's leases can be freed only on nodes that can be reached; otherwise its jobs
     * wait for the leases to end. */
    if (m->env.servers->lock != NULL &&
        !ready_is_time(m->env.servers->config, m->env.servers->lock, r->lock_since_us)) {
        timer_start(&r->timer, on_retry, NODES_CHECK_MS, 0);
        return;
    }
    r->is_in_flight = true;
    if (begin_step(m, &step, &err) != STATUS_OK) {
        try_later(m, step, &err);
    }
}

/* The worker was marked dead while it could not send heartbeats. Running jobs continue until their
 * lease has ended and the last heartbeat of the old row is stale; new claims are made under a new
 * id (ARCHITECTURE §6). */
void registration_again(struct membership *m)
{
    log_warn("worker_marked_dead", LOG_TEXT("worker", m->env.standing->worker_id),
             LOG_TEXT("action", "starting over under a new id"));
    int64_t frozen =
        m->env.standing->heartbeat_confirmed_us > 0 ? m->env.standing->heartbeat_confirmed_us : 1;
    active_freeze(m->env.active, frozen);
    m->env.standing->is_registered = false;
    m->env.standing->is_asked_quiet =
        false; /* nothing was asked of the new row yet; is_quiet does not change */
    heartbeat_stop(m);
    do_register(m);
}
