/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/client/client.h"

#include "base/clock.h"
#include "redlock/core/core.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

/* ---- forks ---- */

/* The pid is not enough: a child in a PID namespace of its own may have its parent's pid. */
bool client_is_forked(const struct redlock_client *c)
{
    return c->fork_mark != NULL ? *c->fork_mark == 0 : c->pid != getpid();
}

static void mark_process(struct redlock_client *c)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    c->pid = getpid();
    if (page != MAP_FAILED && madvise(page, size, MADV_WIPEONFORK) == 0) {
        c->fork_mark = page;
        *c->fork_mark = 1;
    } else if (page != MAP_FAILED) {
        (void)munmap(page, size);
    }
}

static void unmark_process(struct redlock_client *c)
{
    if (c->fork_mark != NULL) {
        (void)munmap(c->fork_mark, (size_t)sysconf(_SC_PAGESIZE));
    }
}

void client_ref(struct redlock_client *c)
{
    (void)atomic_fetch_add(&c->refs, 1);
}

void client_unref(struct redlock_client *c)
{
    if (atomic_fetch_sub(&c->refs, 1) > 1) {
        return;
    }
    /* in a child they may be in the state in which another thread of the parent left them */
    if (!client_is_forked(c)) {
        lock_free_spare(c);
        (void)pthread_cond_destroy(&c->quiet);
        (void)pthread_mutex_destroy(&c->mutex);
    }
    unmark_process(c);
    free(c->settings.list);
    free(c);
}

/* ---- events of the core ---- */

static void note_news(struct redlock_client *c, size_t node, enum redlock_event_kind kind,
                      const char *text)
{
    struct node_news *news = &c->news[node];
    (void)pthread_mutex_lock(&c->mutex);
    news->is_any = true;
    news->kind = kind;
    (void)snprintf(news->text, sizeof news->text, "%s", text);
    (void)pthread_cond_broadcast(&c->quiet); /* redlock_open() may be waiting for the event */
    (void)pthread_mutex_unlock(&c->mutex);
}

static void on_node(void *ctx, size_t node, enum redlock_event_kind kind, int64_t until_us,
                    const char *text)
{
    struct redlock_client *c = ctx;
    (void)until_us;
    note_news(c, node, kind, text);
    callbacks_add_event(c, node, kind, text);
}

static void on_state(void *ctx, struct redlock_batch *batch, size_t index, void *user,
                     enum redlock_state state)
{
    (void)ctx;
    (void)batch;
    (void)index;
    (void)state;
    if (user != NULL) { /* a reader's gate is not a lock that the user holds */
        lock_state_changed(user);
    }
}

static void on_deadline(void *user)
{
    if (user != NULL) {
        lock_deadline_changed(user);
    }
}

static void before_renewal(void *ctx)
{
    mailbox_deliver(ctx, true);
}

/* ---- the thread ---- */

static void on_bell(uv_async_t *bell)
{
    mailbox_deliver(bell->data, false);
}

static void turn(struct redlock_client *c)
{
    (void)uv_run(&c->loop, UV_RUN_ONCE);
    (void)pthread_mutex_lock(&c->mutex);
    if (c->renewing > 0 && --c->renewing == 0) {
        (void)pthread_cond_broadcast(&c->quiet);
    }
    (void)pthread_mutex_unlock(&c->mutex);
}

struct start {
    struct redlock_client *client;
    const struct redlock_options *options;
    struct redlock_error error;
    bool is_done; /* guarded by the client's mutex */
};

static int start_core(struct redlock_client *c, const struct redlock_options *o,
                      struct redlock_error *ret_error)
{
    const struct settings *s = &c->settings;
    const struct redlock_tls tls = {.ca_file = o->ca_file,
                                    .cert_file = o->cert_file,
                                    .key_file = o->key_file,
                                    .server_name = o->server_name};
    const struct redlock_async_options options = {.loop = &c->loop,
                                                  .nodes = s->nodes,
                                                  .node_count = s->node_count,
                                                  .tls = &tls,
                                                  .ttl_us = s->ttl_us,
                                                  .ttl_max_us = s->ttl_max_us,
                                                  .node_timeout_us = s->node_timeout_us,
                                                  .drift_ppm = s->drift_ppm,
                                                  .trust_fresh = o->trust_fresh,
                                                  .allow_unsafe = o->allow_unsafe,
                                                  .no_line = o->no_line,
                                                  .prefix = s->prefix,
                                                  .label =
                                                      o->label != NULL ? o->label : s->own_label,
                                                  .on_node = on_node,
                                                  .on_state = on_state,
                                                  .ctx = c};
    int code = redlock_async_open(&options, &c->core, ret_error);
    if (code == 0) {
        core_hook(c->core, &(struct core_hooks){.before_renewal = before_renewal,
                                                .on_deadline = on_deadline,
                                                .ctx = c});
    }
    return code;
}

static void on_core_closed(void *ctx)
{
    struct redlock_client *c = ctx;
    c->core = NULL;
    mailbox_close(c);
    uv_close((uv_handle_t *)&c->mailbox.bell, NULL); /* the last handle: the loop ends */
}

/* Called between two turns of the loop, when no callback runs. */
static void close_core(struct redlock_client *c)
{
    c->has_closed = true;
    lock_give_up_all(c);
    redlock_async_close(c->core, on_core_closed, c);
}

static void *run(void *arg)
{
    struct start *start = arg;
    struct redlock_client *c = start->client;
    if (start_core(c, start->options, &start->error) != 0) {
        mailbox_close(c);
        uv_close((uv_handle_t *)&c->mailbox.bell, NULL);
    }
    (void)pthread_mutex_lock(&c->mutex);
    start->is_done = true; /* `start` must not be used from now on: it is on the opener's stack */
    (void)pthread_cond_broadcast(&c->quiet);
    (void)pthread_mutex_unlock(&c->mutex);
    while (uv_loop_alive(&c->loop) != 0) {
        turn(c);
        if (c->is_closing && !c->has_closed) {
            close_core(c);
        }
    }
    return NULL;
}

/* Starts both threads with all signals blocked, so that a write to a closed connection raises no
 * signal, and neither these threads nor those that resolve names take signals for which the program
 * waits (lock.F2). */
static int start_threads(struct redlock_client *c, struct start *start)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = callbacks_start(c);
    if (r == 0 && (r = pthread_create(&c->thread, NULL, run, start)) != 0) {
        callbacks_stop(c);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

/* ---- open ---- */

static void init_sync(struct redlock_client *c)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&c->quiet, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutex_init(&c->mutex, NULL);
}

static enum status name_nodes(struct redlock_client *c, struct err *err)
{
    struct redis_endpoint endpoints[REDLOCK_NODES_MAX];
    enum status st = nodes_parse(c->settings.nodes, c->settings.node_count, endpoints, err);
    for (size_t i = 0; st == STATUS_OK && i < c->settings.node_count; i++) {
        redis_endpoint_text(&endpoints[i], c->node_names[i], sizeof c->node_names[i]);
    }
    return st;
}

static enum status open_loop(struct redlock_client *c, struct err *err)
{
    int r = uv_loop_init(&c->loop);
    if (r != 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "redlock: loop: %s", uv_strerror(r));
    }
    r = uv_async_init(&c->loop, &c->mailbox.bell, on_bell);
    if (r != 0) {
        (void)uv_loop_close(&c->loop);
        return err_fail(err, STATUS_UNAVAILABLE, "redlock: bell: %s", uv_strerror(r));
    }
    c->mailbox.bell.data = c;
    return STATUS_OK;
}

static void close_loop(struct redlock_client *c)
{
    uv_close((uv_handle_t *)&c->mailbox.bell, NULL);
    (void)uv_run(&c->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&c->loop);
}

static enum status client_new(const struct redlock_options *o, struct redlock_client **ret,
                              struct err *err)
{
    struct settings settings;
    enum status st = settings_read(o, &settings, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct redlock_client *c = calloc(1, sizeof *c);
    if (c == NULL) {
        free(settings.list);
        return err_fail(err, STATUS_NOMEM, "redlock: no memory for a client");
    }
    c->refs = 1;
    mark_process(c);
    c->settings = settings;
    c->mailbox.end = &c->mailbox.first;
    init_sync(c);
    st = name_nodes(c, err);
    if (st == STATUS_OK) {
        st = open_loop(c, err);
    }
    if (st != STATUS_OK) {
        client_unref(c);
        return st;
    }
    *ret = c;
    return STATUS_OK;
}

static struct timespec monotonic_after(int64_t us)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t ns = t.tv_nsec + us % US_PER_S * 1000;
    t.tv_sec += (time_t)(us / US_PER_S + ns / NS_PER_S);
    t.tv_nsec = (long)(ns % NS_PER_S);
    return t;
}

/* Waits until each node had an event, or until more nodes than allowed are found to be unsuitable
 * for good (lock.C8). */
static enum status wait_for_nodes(struct redlock_client *c, struct err *err)
{
    const struct timespec until = monotonic_after(c->settings.open_us);
    enum status st = STATUS_OK;
    int r = 0;
    size_t heard = 0;
    (void)pthread_mutex_lock(&c->mutex);
    while (r == 0 && st == STATUS_OK && heard < c->settings.node_count) {
        size_t refused = 0;
        heard = 0;
        for (size_t i = 0; i < c->settings.node_count && st == STATUS_OK; i++) {
            const struct node_news *news = &c->news[i];
            heard += news->is_any;
            refused += news->is_any && news->kind == REDLOCK_EVENT_REFUSED;
            if (refused > c->settings.refused_max) {
                st = err_fail(err, STATUS_INVALID, "redlock: %s", news->text);
            }
        }
        if (st == STATUS_OK && heard < c->settings.node_count) {
            r = pthread_cond_timedwait(&c->quiet, &c->mutex, &until);
        }
    }
    (void)pthread_mutex_unlock(&c->mutex);
    return st;
}

static enum status start_client(struct redlock_client *c, const struct redlock_options *options,
                                struct err *err)
{
    struct start start = {.client = c, .options = options};
    int r = start_threads(c, &start);
    if (r != 0) {
        err_set(err, STATUS_UNAVAILABLE, r, "redlock: thread");
        close_loop(c);
        client_unref(c);
        return STATUS_UNAVAILABLE;
    }
    (void)pthread_mutex_lock(&c->mutex);
    while (!start.is_done) {
        (void)pthread_cond_wait(&c->quiet, &c->mutex);
    }
    (void)pthread_mutex_unlock(&c->mutex);
    enum status st = STATUS_OK;
    if (start.error.code != 0) {
        st = err_fail(err, start.error.code == -EINVAL ? STATUS_INVALID : STATUS_UNAVAILABLE, "%s",
                      start.error.message);
    } else {
        st = wait_for_nodes(c, err);
    }
    if (st != STATUS_OK) {
        redlock_close(c);
    }
    return st;
}

enum redlock_result redlock_open(const struct redlock_options *options,
                                 struct redlock_client **ret_client,
                                 struct redlock_report *ret_report)
{
    struct err err = {0};
    struct redlock_client *c = NULL;
    enum status st = client_new(options, &c, &err);
    if (st == STATUS_OK) {
        st = start_client(c, options, &err);
    }
    *ret_client = st == STATUS_OK ? c : NULL;
    return report_status(st, &err, ret_report);
}

/* ---- close ---- */

static void deliver_close(struct redlock_client *c, struct mail *mail)
{
    (void)mail;
    c->is_closing = true;
    request_cancel(c, NULL);
}

void redlock_close(struct redlock_client *client)
{
    struct mail mail = {.deliver = deliver_close};
    if (client == NULL) {
        return;
    }
    if (client_is_forked(client)) {
        fork_close_descriptors(client);
        client_unref(client);
        return;
    }
    /* the mailbox is already closed if the client could not be opened */
    (void)mailbox_post(client, &mail);
    (void)pthread_join(client->thread, NULL);
    callbacks_stop(client);
    (void)uv_loop_close(&client->loop);
    (void)pthread_mutex_lock(&client->mutex);
    while (client->callers > 0) { /* they have their answers and are about to leave */
        (void)pthread_cond_wait(&client->quiet, &client->mutex);
    }
    (void)pthread_mutex_unlock(&client->mutex);
    client_unref(client);
}
