/* SPDX-License-Identifier: Apache-2.0
 *
 * A handle by which another thread ends a wait for a lock. */
#include "redlock/client.h"

#include <errno.h>

struct redlock_cancel {
    struct mail mail; /* first */
    struct redlock *client;
    atomic_bool is_fired;
    bool is_posted; /* guarded by the client's mutex */
    bool is_freed;  /* guarded: by its user while it was posted */
};

bool cancel_is_fired(const struct redlock_cancel *cancel)
{
    return cancel != NULL && atomic_load(&cancel->is_fired);
}

const struct redlock *cancel_client(const struct redlock_cancel *cancel)
{
    return cancel->client;
}

static void cancel_free(struct redlock_cancel *cancel)
{
    struct redlock *c = cancel->client;
    free(cancel);
    client_unref(c);
}

static void deliver_cancel(struct redlock *c, struct mail *mail)
{
    struct redlock_cancel *cancel = (struct redlock_cancel *)(void *)mail; /* its first member */
    (void)pthread_mutex_lock(&c->mutex);
    cancel->is_posted = false;
    bool is_freed = cancel->is_freed;
    (void)pthread_mutex_unlock(&c->mutex);
    if (is_freed) {
        cancel_free(cancel);
    } else {
        ask_cancel(c, cancel);
    }
}

int redlock_cancel_new(struct redlock *client, struct redlock_cancel **ret_cancel)
{
    if (client_is_forked(client)) {
        return -EOWNERDEAD;
    }
    struct redlock_cancel *cancel = calloc(1, sizeof *cancel);
    if (cancel == NULL) {
        return -ENOMEM;
    }
    cancel->mail.deliver = deliver_cancel;
    cancel->client = client;
    client_ref(client);
    *ret_cancel = cancel;
    return 0;
}

void redlock_cancel_fire(struct redlock_cancel *cancel)
{
    struct redlock *c = cancel->client;
    if (client_is_forked(c)) {
        return;
    }
    atomic_store(&cancel->is_fired, true); /* for calls that begin later */
    (void)pthread_mutex_lock(&c->mutex);
    if (!cancel->is_posted) {
        cancel->is_posted = mailbox_put(c, &cancel->mail);
    }
    (void)pthread_mutex_unlock(&c->mutex);
}

void redlock_cancel_free(struct redlock_cancel *cancel)
{
    if (cancel == NULL) {
        return;
    }
    struct redlock *c = cancel->client;
    bool is_posted = false;
    if (!client_is_forked(c)) {
        (void)pthread_mutex_lock(&c->mutex);
        cancel->is_freed = true;
        is_posted = cancel->is_posted;
        (void)pthread_mutex_unlock(&c->mutex);
    }
    if (!is_posted) {
        cancel_free(cancel);
    }
}
