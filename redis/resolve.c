/* SPDX-License-Identifier: Apache-2.0 */
#include "redis/resolve.h"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

static const struct addrinfo any_host = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
static const struct addrinfo literal_host = {
    .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};

/* The state shared by the thread and the loop. The last one to use it frees it. */
struct lookup {
    pthread_mutex_t mutex;  /* guards the fields below, except the names */
    struct resolver *owner; /* NULL = the result is not wanted any more */
    bool is_over;
    int result; /* of getaddrinfo() */
    struct addrinfo *list;
    char host[256];
    char port[8];
};

struct resolver {
    uv_async_t over;
    resolver_cb *on_over;
    void *ctx;
    struct lookup *lookup; /* NULL = no lookup is in flight */
    struct addrinfo *answer;
    bool is_literal;
    char host[256];
    char port[8];
};

static void lookup_free(struct lookup *l)
{
    (void)pthread_mutex_destroy(&l->mutex);
    if (l->list != NULL) {
        freeaddrinfo(l->list);
    }
    free(l);
}

static void *run(void *arg)
{
    struct lookup *l = arg;
    struct addrinfo *list = NULL;
    int result = getaddrinfo(l->host, l->port, &any_host, &list);
    (void)pthread_mutex_lock(&l->mutex);
    l->is_over = true;
    l->result = result;
    l->list = result == 0 ? list : NULL;
    bool is_wanted = l->owner != NULL;
    if (is_wanted) {
        (void)uv_async_send(&l->owner->over);
    }
    (void)pthread_mutex_unlock(&l->mutex);
    if (!is_wanted) {
        lookup_free(l);
    }
    return NULL;
}

/* Starts the thread with all signals blocked, so that it handles no signal of the program. */
static int start_thread(struct lookup *l)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all;
    sigset_t before;
    int r = pthread_attr_init(&attr);
    if (r != 0) {
        return r;
    }
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&thread, &attr, run, l);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return r;
}

static enum status look_up(struct resolver *r, struct err *err)
{
    struct lookup *l = calloc(1, sizeof *l);
    if (l == NULL || pthread_mutex_init(&l->mutex, NULL) != 0) {
        free(l);
        return err_fail(err, STATUS_NOMEM, "resolve: no memory");
    }
    l->owner = r;
    memcpy(l->host, r->host, sizeof l->host);
    memcpy(l->port, r->port, sizeof l->port);
    int failed = start_thread(l);
    if (failed != 0) {
        lookup_free(l);
        return err_fail_sys(err, STATUS_UNAVAILABLE, failed, "resolve: thread");
    }
    r->lookup = l;
    return STATUS_OK;
}

static void on_over(uv_async_t *async)
{
    struct resolver *r = async->data;
    struct lookup *l = TAKE(r->lookup);
    struct err why = {0};
    (void)pthread_mutex_lock(&l->mutex); /* waits until the thread has released it */
    int result = l->result;
    struct addrinfo *list = TAKE(l->list);
    (void)pthread_mutex_unlock(&l->mutex);
    lookup_free(l);
    if (list != NULL && r->answer != NULL) {
        freeaddrinfo(r->answer);
    }
    r->answer = list != NULL ? list : r->answer;
    if (r->answer == NULL) {
        err_set(&why, STATUS_UNAVAILABLE, 0, "resolve: %s",
                result == 0 ? "no address" : gai_strerror(result));
    }
    r->on_over(r->ctx, r->answer == NULL ? &why : NULL);
}

enum status resolver_new(uv_loop_t *loop, const struct redis_endpoint *e, resolver_cb *on_over_cb,
                         void *ctx, struct resolver **ret_resolver, struct err *err)
{
    struct resolver *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return err_fail(err, STATUS_NOMEM, "resolve: no memory");
    }
    int failed = uv_async_init(loop, &r->over, on_over);
    if (failed != 0) {
        free(r);
        return err_fail(err, STATUS_UNAVAILABLE, "resolve: %s", uv_strerror(failed));
    }
    uv_unref((uv_handle_t *)&r->over);
    r->over.data = r;
    r->on_over = on_over_cb;
    r->ctx = ctx;
    memcpy(r->host, e->host, sizeof r->host);
    (void)snprintf(r->port, sizeof r->port, "%d", e->port);
    r->is_literal = getaddrinfo(r->host, r->port, &literal_host, &r->answer) == 0;
    *ret_resolver = r;
    return STATUS_OK;
}

static void on_closed(uv_handle_t *handle)
{
    struct resolver *r = handle->data;
    if (r->answer != NULL) {
        freeaddrinfo(r->answer);
    }
    free(r);
}

void resolver_close(struct resolver *r)
{
    if (r == NULL) {
        return;
    }
    struct lookup *l = TAKE(r->lookup);
    if (l != NULL) {
        (void)pthread_mutex_lock(&l->mutex);
        bool is_over = l->is_over;
        l->owner = NULL;
        (void)pthread_mutex_unlock(&l->mutex);
        if (is_over) {
            lookup_free(l);
        }
    }
    uv_close((uv_handle_t *)&r->over, on_closed);
}

enum status resolver_ask(struct resolver *r, bool *ret_is_known, struct err *err)
{
    *ret_is_known = r->is_literal;
    return r->is_literal || r->lookup != NULL ? STATUS_OK : look_up(r, err);
}

const struct addrinfo *resolver_answer(const struct resolver *r)
{
    return r->answer;
}
