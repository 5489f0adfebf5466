/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/client.h"

#include "base/clock.h"
#include "redlock/core.h"
#include "redlock/error.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

/* ---- who calls ---- */

/* A child in a PID namespace of its own may have its parent's pid. */
bool client_is_forked(const struct redlock *c)
{
    return c->fork_mark != NULL ? *c->fork_mark == 0 : c->pid != getpid();
}

static void mark_process(struct redlock *c)
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

static void unmark_process(struct redlock *c)
{
    if (c->fork_mark != NULL) {
        (void)munmap(c->fork_mark, (size_t)sysconf(_SC_PAGESIZE));
    }
}

bool client_is_thread(const struct redlock *c)
{
    return pthread_equal(c->thread_self, pthread_self()) != 0;
}

void client_ref(struct redlock *c)
{
    (void)atomic_fetch_add(&c->refs, 1);
}

void client_unref(struct redlock *c)
{
    if (atomic_fetch_sub(&c->refs, 1) > 1) {
        return;
    }
    if (!client_is_forked(c)) { /* else another thread may have been at them when it was copied */
        lock_free_spare(c);
        (void)pthread_cond_destroy(&c->quiet);
        (void)pthread_mutex_destroy(&c->mutex);
    }
    unmark_process(c);
    free(c);
}

/* ---- what the core tells ---- */

static void note_news(struct redlock *c, size_t node, enum redlock_node_event event,
                      const char *why)
{
    struct node_news *news = &c->news[node];
    (void)pthread_mutex_lock(&c->mutex);
    news->is_any = true;
    news->event = event;
    (void)snprintf(news->why, sizeof news->why, "%s", why);
    (void)pthread_cond_broadcast(&c->quiet); /* redlock_open() waits for them */
    (void)pthread_mutex_unlock(&c->mutex);
}

static void on_node(void *ctx, size_t node, enum redlock_node_event event, int64_t until_us,
                    const char *why)
{
    struct redlock *c = ctx;
    (void)until_us;
    note_news(c, node, event, why);
    if (c->settings.on_node == NULL) {
        return;
    }
    if (c->event_count == EVENTS_MAX) {
        c->event_first = (c->event_first + 1) % EVENTS_MAX;
        c->event_count--;
    }
    struct node_event *e = &c->events[(c->event_first + c->event_count++) % EVENTS_MAX];
    e->node = node;
    e->event = event;
    (void)snprintf(e->why, sizeof e->why, "%s", why);
}

static void tell_events(struct redlock *c)
{
    while (c->event_count > 0 && !c->is_closing) {
        const struct node_event e = c->events[c->event_first];
        c->event_first = (c->event_first + 1) % EVENTS_MAX;
        c->event_count--;
        c->settings.on_node(c->settings.ctx, e.node, e.event, e.why);
    }
}

static void on_state(void *ctx, struct redlock_batch *batch, size_t index, void *user,
                     enum redlock_state state)
{
    (void)ctx;
    (void)batch;
    (void)index;
    (void)state;
    lock_state_changed(user);
}

static void on_deadline(void *user)
{
    lock_deadline_changed(user);
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

void client_turn(struct redlock *c)
{
    (void)uv_run(&c->loop, UV_RUN_ONCE);
    (void)pthread_mutex_lock(&c->mutex);
    if (c->renewing > 0 && --c->renewing == 0) {
        (void)pthread_cond_broadcast(&c->quiet);
    }
    (void)pthread_mutex_unlock(&c->mutex);
}

struct start {
    struct redlock *client;
    const struct redlock_options *options;
    struct redlock_error error;
    bool is_done; /* guarded by the client's mutex */
};

static int start_core(struct redlock *c, const struct redlock_options *o,
                      struct redlock_error *ret_error)
{
    const struct settings *s = &c->settings;
    const char *prefix = o->wake_prefix != NULL ? o->wake_prefix : "redlock:";
    const struct redlock_async_options options = {.loop = &c->loop,
                                                  .nodes = o->nodes,
                                                  .node_count = o->node_count,
                                                  .tls = o->tls,
                                                  .ttl_us = s->ttl_us,
                                                  .ttl_max_us = s->ttl_max_us,
                                                  .node_timeout_us = s->node_timeout_us,
                                                  .min_validity_us = s->min_validity_us,
                                                  .drift_ppm = o->drift_ppm,
                                                  .trust_fresh = o->trust_fresh,
                                                  .allow_unsafe = o->allow_unsafe,
                                                  .wake_prefix = o->no_wakeups ? NULL : prefix,
                                                  .prefix = prefix,
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
    struct redlock *c = ctx;
    c->core = NULL;
    mailbox_close(c);
    uv_close((uv_handle_t *)&c->mailbox.bell, NULL); /* the last handle: the loop ends */
}

/* Between two turns, when no callback runs. */
static void close_core(struct redlock *c)
{
    c->has_closed = true;
    lock_give_up_all(c);
    redlock_async_close(c->core, on_core_closed, c);
}

static void *run(void *arg)
{
    struct start *start = arg;
    struct redlock *c = start->client;
    c->thread_self = pthread_self();
    if (start_core(c, start->options, &start->error) != 0) {
        mailbox_close(c);
        uv_close((uv_handle_t *)&c->mailbox.bell, NULL);
    }
    (void)pthread_mutex_lock(&c->mutex);
    start->is_done = true; /* and gone: it lies on the opener's stack */
    (void)pthread_cond_broadcast(&c->quiet);
    (void)pthread_mutex_unlock(&c->mutex);
    while (uv_loop_alive(&c->loop) != 0) {
        client_turn(c);
        /* Who unlocks may wait for that, and a callback for him. */
        if (!c->is_closing && c->renewing == 0) {
            tell_events(c);
            lock_tell_changed(c);
        }
        if (c->is_closing && !c->has_closed) {
            close_core(c);
        }
    }
    return NULL;
}

/* With every signal blocked: a write to a closed connection raises none, and neither this thread
 * nor those that resolve names take what the program waits for (lock.F2). */
static int start_thread(struct redlock *c, struct start *start)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&c->thread, NULL, run, start);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

/* ---- open ---- */

static void init_sync(struct redlock *c)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&c->quiet, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutex_init(&c->mutex, NULL);
}

static enum status name_nodes(struct redlock *c, const struct redlock_options *o, struct err *err)
{
    struct redis_endpoint e;
    for (size_t i = 0; i < o->node_count; i++) {
        const char *url = o->nodes[i].url == NULL ? "" : o->nodes[i].url;
        enum status st = redis_endpoint_parse(url, &e, err);
        if (st != STATUS_OK) {
            err_prefix(err, "redlock: node %zu", i + 1);
            return st;
        }
        redis_endpoint_text(&e, c->node_names[i], sizeof c->node_names[i]);
    }
    return STATUS_OK;
}

static enum status open_loop(struct redlock *c, struct err *err)
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

static void close_loop(struct redlock *c)
{
    uv_close((uv_handle_t *)&c->mailbox.bell, NULL);
    (void)uv_run(&c->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&c->loop);
}

static enum status client_new(const struct redlock_options *o, struct redlock **ret,
                              struct err *err)
{
    struct settings settings;
    enum status st = settings_read(o, &settings, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct redlock *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return err_fail(err, STATUS_NOMEM, "redlock: no memory for a client");
    }
    c->refs = 1;
    mark_process(c);
    c->settings = settings;
    c->mailbox.end = &c->mailbox.first;
    c->changed_end = &c->changed;
    init_sync(c);
    st = name_nodes(c, o, err);
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

/* Until each node was heard of once, or one too many says that it will never do (lock.C8). */
static int wait_for_nodes(struct redlock *c, struct redlock_error *ret_error)
{
    const struct timespec until = monotonic_after(c->settings.open_timeout_us);
    int r = 0;
    int code = 0;
    size_t heard = 0;
    (void)pthread_mutex_lock(&c->mutex);
    while (r == 0 && code == 0 && heard < c->settings.node_count) {
        size_t refused = 0;
        heard = 0;
        for (size_t i = 0; i < c->settings.node_count && code == 0; i++) {
            const struct node_news *news = &c->news[i];
            heard += news->is_any;
            refused += news->is_any && news->event == REDLOCK_NODE_REFUSED;
            if (refused > c->settings.refused_max) {
                code = -EINVAL;
                (void)snprintf(ret_error->message, sizeof ret_error->message, "redlock: %.*s",
                               REDLOCK_MESSAGE_SIZE - 16, news->why);
            }
        }
        if (code == 0 && heard < c->settings.node_count) {
            r = pthread_cond_timedwait(&c->quiet, &c->mutex, &until);
        }
    }
    (void)pthread_mutex_unlock(&c->mutex);
    ret_error->code = code;
    return code;
}

static int start_client(struct redlock *c, const struct redlock_options *options,
                        struct redlock_error *ret_error)
{
    struct start start = {.client = c, .options = options};
    int r = start_thread(c, &start);
    if (r != 0) {
        struct err err = {0};
        err_set(&err, STATUS_UNAVAILABLE, r, "redlock: thread");
        close_loop(c);
        client_unref(c);
        return error_tell(STATUS_UNAVAILABLE, &err, ret_error);
    }
    (void)pthread_mutex_lock(&c->mutex);
    while (!start.is_done) {
        (void)pthread_cond_wait(&c->quiet, &c->mutex);
    }
    (void)pthread_mutex_unlock(&c->mutex);
    *ret_error = start.error;
    int code = start.error.code;
    if (code == 0) {
        code = wait_for_nodes(c, ret_error);
    }
    if (code != 0) {
        redlock_close(c);
    }
    return code;
}

static int open_client(const struct redlock_options *options, struct redlock **ret,
                       struct redlock_error *ret_error)
{
    struct err err = {0};
    struct redlock *c = NULL;
    enum status st = client_new(options, &c, &err);
    if (st != STATUS_OK) {
        return error_tell(st, &err, ret_error);
    }
    int code = start_client(c, options, ret_error);
    if (code == 0) {
        *ret = c;
    }
    return code;
}

int redlock_open(const struct redlock_options *options, struct redlock **ret_client,
                 struct redlock_error *ret_error)
{
    struct redlock_error error = {0};
    *ret_client = NULL;
    int code = open_client(options, ret_client, &error);
    if (ret_error != NULL) {
        *ret_error = error;
    }
    return code;
}

/* ---- close ---- */

static void deliver_close(struct redlock *c, struct mail *mail)
{
    (void)mail;
    c->is_closing = true;
    ask_cancel(c, NULL); /* a callback may be one of those who wait */
}

void redlock_close(struct redlock *client)
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
    (void)mailbox_post(client, &mail); /* not when it could not be opened */
    (void)pthread_join(client->thread, NULL);
    (void)uv_loop_close(&client->loop);
    (void)pthread_mutex_lock(&client->mutex);
    while (client->callers > 0) { /* they have their answers, and are about to leave */
        (void)pthread_cond_wait(&client->quiet, &client->mutex);
    }
    (void)pthread_mutex_unlock(&client->mutex);
    client_unref(client);
}
