/* SPDX-License-Identifier: Apache-2.0 */
#include "web/backends.h"

#include "base/clock.h"

#include <assert.h>
#include <pthread.h>
#include <time.h>

#define SESSIONS_MAX 16
#define WAIT_S 2
#define STATEMENT_US (5 * US_PER_S / 2) /* a little longer than statement_timeout */
#define CONNINFO_MAX (2 * CONFIG_PATH_MAX)

struct session {
    struct admin *admin; /* NULL: not open */
    bool is_taken;
};

struct backends {
    pthread_mutex_t mutex; /* guards the sessions */
    pthread_cond_t freed;
    struct session sessions[SESSIONS_MAX];
    size_t count;
    char conninfo[CONNINFO_MAX];
    int64_t timeout_us;
    bool is_reading; /* web.mode = "read" */
};

static enum status connect_to(const struct backends *p, struct admin **ret, struct err *err)
{
    struct admin *a = NULL;
    int64_t limit_us = p->timeout_us < STATEMENT_US ? p->timeout_us : STATEMENT_US;
    enum status st = admin_open(p->conninfo, limit_us, &a, err);
    if (st == STATUS_OK) {
        admin_set_timeout(a, STATEMENT_US);
        st = admin_exec(a,
                        "SET statement_timeout = '2s'; SET lock_timeout = '500ms'; "
                        "SET idle_in_transaction_session_timeout = '5s'; "
                        "SET max_parallel_workers_per_gather = 0; "
                        "SET application_name = 'claimd-web'",
                        err);
    }
    if (st == STATUS_OK && p->is_reading) {
        st = admin_exec(a, "SET default_transaction_read_only = on", err);
    }
    if (st == STATUS_OK) {
        st = admin_check_schema(a, err);
    }
    if (st != STATUS_OK) {
        admin_close(a);
        return st;
    }
    *ret = a;
    return STATUS_OK;
}

static void init_lock(struct backends *p)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&p->mutex, NULL);
    (void)pthread_cond_init(&p->freed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

enum status backends_open(const struct config *config, struct backends **ret, struct err *err)
{
    struct backends *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    init_lock(p);
    p->count = (size_t)config->web.connections;
    p->timeout_us = config->postgres.timeout_us;
    p->is_reading = !config->web.is_operating;
    assert(p->count <= SESSIONS_MAX);
    enum status st = config_conninfo(config, p->conninfo, sizeof p->conninfo, err);
    if (st == STATUS_OK) {
        st = connect_to(p, &p->sessions[0].admin, err);
    }
    if (st != STATUS_OK) {
        backends_close(p);
        return st;
    }
    *ret = p;
    return STATUS_OK;
}

void backends_close(struct backends *p)
{
    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->count; i++) {
        admin_close(p->sessions[i].admin);
    }
    (void)pthread_cond_destroy(&p->freed);
    (void)pthread_mutex_destroy(&p->mutex);
    explicit_bzero(p->conninfo, sizeof p->conninfo);
    free(p);
}

/* Prefers a session that is open. */
static struct session *find_free(struct backends *p)
{
    struct session *found = NULL;
    for (size_t i = 0; i < p->count; i++) {
        struct session *s = &p->sessions[i];
        if (!s->is_taken && (found == NULL || (found->admin == NULL && s->admin != NULL))) {
            found = s;
        }
    }
    return found;
}

static struct session *wait_free(struct backends *p)
{
    struct timespec until;
    int code = 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WAIT_S;
    (void)pthread_mutex_lock(&p->mutex);
    struct session *s = find_free(p);
    while (s == NULL && code == 0) {
        code = pthread_cond_timedwait(&p->freed, &p->mutex, &until);
        s = find_free(p);
    }
    if (s != NULL) {
        s->is_taken = true;
    }
    (void)pthread_mutex_unlock(&p->mutex);
    return s;
}

static void free_session(struct backends *p, struct session *s, struct admin *a)
{
    (void)pthread_mutex_lock(&p->mutex);
    s->admin = a;
    s->is_taken = false;
    (void)pthread_cond_signal(&p->freed);
    (void)pthread_mutex_unlock(&p->mutex);
}

enum status backends_take(struct backends *p, struct admin **ret, struct err *err)
{
    struct session *s = wait_free(p);
    if (s == NULL) {
        return err_fail(err, STATUS_UNAVAILABLE, "all %zu sessions of PostgreSQL are in use",
                        p->count);
    }
    struct admin *a = s->admin; /* only its taker changes it */
    enum status st = a == NULL ? connect_to(p, &a, err) : STATUS_OK;
    if (st != STATUS_OK) {
        free_session(p, s, NULL);
        /* A schema that does not fit is no fault of the request. */
        return st == STATUS_CONFLICT || st == STATUS_TIMEOUT ? STATUS_UNAVAILABLE : st;
    }
    (void)pthread_mutex_lock(&p->mutex);
    s->admin = a;
    (void)pthread_mutex_unlock(&p->mutex);
    *ret = a;
    return STATUS_OK;
}

/* True if the session may be in the middle of an answer, or has ended. */
static bool is_broken(const struct err *why)
{
    bool is_refusal = why->code[0] != '\0' && strncmp(why->code, "08", 2) != 0 &&
                      strncmp(why->code, "57P", 3) != 0;
    return why->status != STATUS_OK && !is_refusal &&
           (why->status == STATUS_UNAVAILABLE || why->status == STATUS_TIMEOUT ||
            why->status == STATUS_UNKNOWN || why->status == STATUS_INTERNAL);
}

static struct session *session_of(struct backends *p, const struct admin *a)
{
    struct session *found = NULL;
    (void)pthread_mutex_lock(&p->mutex);
    for (size_t i = 0; i < p->count; i++) {
        found = p->sessions[i].admin == a ? &p->sessions[i] : found;
    }
    (void)pthread_mutex_unlock(&p->mutex);
    assert(found != NULL && found->is_taken);
    return found;
}

void backends_give(struct backends *p, struct admin *a, const struct err *why)
{
    struct session *s = session_of(p, a);
    bool is_over = is_broken(why);
    if (is_over) {
        admin_close(a);
    }
    free_session(p, s, is_over ? NULL : a);
}
