/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that runs the user's callbacks, one at a time: a slow one delays other callbacks, but
 * no lease. */
#include "redlock/client/client.h"

#include <stdio.h>

/* ---- pending callbacks; under the mutex ---- */

static struct redlock_lock *take_changed(struct callbacks *b)
{
    struct redlock_lock *l = b->changed;
    if (l != NULL) {
        b->changed = l->next_changed;
        if (b->changed == NULL) {
            b->changed_end = &b->changed;
        }
        l->is_changed = false;
    }
    return l;
}

static void drop_changed(struct callbacks *b, struct redlock_lock *l)
{
    struct redlock_lock **link = &b->changed;
    if (!l->is_changed) {
        return;
    }
    while (*link != l) {
        link = &(*link)->next_changed;
    }
    *link = l->next_changed;
    if (b->changed_end == &l->next_changed) {
        b->changed_end = link;
    }
    l->is_changed = false;
}

static bool take_event(struct callbacks *b, struct node_event *ret)
{
    if (b->event_count == 0) {
        return false;
    }
    *ret = b->events[b->event_first];
    b->event_first = (b->event_first + 1) % EVENTS_MAX;
    b->event_count--;
    return true;
}

/* ---- calling back: the mutex is held before and after, but not during a callback ---- */

static void tell_changed(struct redlock_client *c, struct redlock_lock *l)
{
    struct callbacks *b = &c->callbacks;
    enum redlock_state state = l->state;
    b->telling = l;
    (void)pthread_mutex_unlock(&c->mutex);
    l->on_change(l->ctx, l, state);
    (void)pthread_mutex_lock(&c->mutex);
    b->telling = NULL;
    if (l->is_over) { /* it was unlocked during the callback */
        (void)pthread_mutex_unlock(&c->mutex);
        lock_retire(l);
        (void)pthread_mutex_lock(&c->mutex);
    }
}

static void tell_done(struct redlock_client *c)
{
    struct callbacks *b = &c->callbacks;
    struct mail *done = b->done;
    b->done = done->next;
    if (b->done == NULL) {
        b->done_end = &b->done;
    }
    (void)pthread_mutex_unlock(&c->mutex);
    done->deliver(c, done);
    (void)pthread_mutex_lock(&c->mutex);
}

static void tell_event(struct redlock_client *c, const struct node_event *e)
{
    const struct redlock_event event = {
        .size = sizeof event, .node = e->node, .kind = e->kind, .text = e->text};
    (void)pthread_mutex_unlock(&c->mutex);
    c->settings.on_event(c->settings.ctx, &event);
    (void)pthread_mutex_lock(&c->mutex);
}

static void *run(void *arg)
{
    struct redlock_client *c = arg;
    struct callbacks *b = &c->callbacks;
    struct node_event event;
    (void)pthread_mutex_lock(&c->mutex);
    for (;;) {
        if (b->done != NULL) {
            tell_done(c);
        } else if (b->is_closing) {
            break; /* callbacks that must not be left out have been called */
        } else if (b->changed != NULL) {
            tell_changed(c, take_changed(b));
        } else if (take_event(b, &event)) {
            tell_event(c, &event);
        } else {
            (void)pthread_cond_wait(&b->cond, &c->mutex);
        }
    }
    (void)pthread_mutex_unlock(&c->mutex);
    return NULL;
}

/* ---- interface for other threads ---- */

void callbacks_add_event(struct redlock_client *c, size_t node, enum redlock_event_kind kind,
                         const char *text)
{
    struct callbacks *b = &c->callbacks;
    if (c->settings.on_event == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&c->mutex);
    if (b->event_count == EVENTS_MAX) {
        b->event_first = (b->event_first + 1) % EVENTS_MAX;
        b->event_count--;
    }
    struct node_event *e = &b->events[(b->event_first + b->event_count++) % EVENTS_MAX];
    e->node = node;
    e->kind = kind;
    (void)snprintf(e->text, sizeof e->text, "%s", text[0] != '\0' ? text : c->node_names[node]);
    (void)pthread_cond_signal(&b->cond);
    (void)pthread_mutex_unlock(&c->mutex);
}

void callbacks_add_change(struct redlock_client *c, struct redlock_lock *l)
{
    struct callbacks *b = &c->callbacks;
    if (l->on_change == NULL || l->is_changed || l->is_silent) {
        return;
    }
    l->is_changed = true;
    l->next_changed = NULL;
    *b->changed_end = l;
    b->changed_end = &l->next_changed;
    (void)pthread_cond_signal(&b->cond);
}

void callbacks_add_done(struct redlock_client *c, struct mail *done)
{
    struct callbacks *b = &c->callbacks;
    (void)pthread_mutex_lock(&c->mutex);
    done->next = NULL;
    *b->done_end = done;
    b->done_end = &done->next;
    (void)pthread_cond_signal(&b->cond);
    (void)pthread_mutex_unlock(&c->mutex);
}

void callbacks_silence(struct redlock_lock *l)
{
    struct redlock_client *c = l->client;
    (void)pthread_mutex_lock(&c->mutex);
    drop_changed(&c->callbacks, l);
    l->is_silent = true;
    (void)pthread_mutex_unlock(&c->mutex);
}

bool callbacks_let_go(struct redlock_lock *l)
{
    struct redlock_client *c = l->client;
    (void)pthread_mutex_lock(&c->mutex);
    drop_changed(&c->callbacks, l);
    bool is_free = c->callbacks.telling != l;
    l->is_over = !is_free;
    (void)pthread_mutex_unlock(&c->mutex);
    return is_free;
}

int callbacks_start(struct redlock_client *c)
{
    struct callbacks *b = &c->callbacks;
    b->changed_end = &b->changed;
    b->done_end = &b->done;
    (void)pthread_cond_init(&b->cond, NULL);
    return pthread_create(&b->thread, NULL, run, c);
}

void callbacks_stop(struct redlock_client *c)
{
    struct callbacks *b = &c->callbacks;
    (void)pthread_mutex_lock(&c->mutex);
    b->is_closing = true;
    (void)pthread_cond_signal(&b->cond);
    (void)pthread_mutex_unlock(&c->mutex);
    (void)pthread_join(b->thread, NULL);
    (void)pthread_cond_destroy(&b->cond);
}
