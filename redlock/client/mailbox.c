/* SPDX-License-Identifier: Apache-2.0
 *
 * The list through which other threads pass requests to the client's thread. */
#include "redlock/client/client.h"

/* Bytes that one turn of the loop puts into a connection's buffer are written in the next turn. */
#define TURNS_OF_RENEWING 2

static void push(struct redlock_client *c, struct mail *mail)
{
    struct mailbox *box = &c->mailbox;
    bool was_empty = box->first == NULL;
    mail->next = NULL;
    *box->end = mail;
    box->end = &mail->next;
    if (was_empty) {
        (void)uv_async_send(&box->bell);
    }
}

static struct mail *take_all(struct redlock_client *c)
{
    struct mail *list = TAKE(c->mailbox.first);
    c->mailbox.end = &c->mailbox.first;
    return list;
}

static void deliver(struct redlock_client *c, struct mail *list)
{
    while (list != NULL) {
        struct mail *mail = list;
        list = mail->next;
        mail->deliver(c, mail);
    }
}

bool mailbox_put(struct redlock_client *c, struct mail *mail)
{
    if (c->mailbox.is_closed) {
        return false;
    }
    push(c, mail);
    return true;
}

static void leave(struct redlock_client *c)
{
    if (--c->callers == 0) {
        (void)pthread_cond_broadcast(&c->quiet);
    }
}

bool mailbox_post(struct redlock_client *c, struct mail *mail)
{
    (void)pthread_mutex_lock(&c->mutex);
    bool is_open = mailbox_put(c, mail);
    if (is_open) {
        c->callers++;
        while (c->renewing > 0) {
            (void)pthread_cond_wait(&c->quiet, &c->mutex);
        }
        leave(c);
    }
    (void)pthread_mutex_unlock(&c->mutex);
    return is_open;
}

bool call_make(struct redlock_client *c, struct call *call,
               void (*deliver_call)(struct redlock_client *c, struct mail *mail))
{
    call->mail = (struct mail){.deliver = deliver_call};
    call->is_answered = false;
    (void)pthread_cond_init(&call->cond, NULL);
    (void)pthread_mutex_lock(&c->mutex);
    bool is_open = mailbox_put(c, &call->mail);
    if (is_open) {
        c->callers++;
        while (!call->is_answered) {
            (void)pthread_cond_wait(&call->cond, &c->mutex);
        }
        leave(c);
    }
    (void)pthread_mutex_unlock(&c->mutex);
    (void)pthread_cond_destroy(&call->cond);
    return is_open;
}

void call_answer(struct redlock_client *c, struct call *call)
{
    (void)pthread_mutex_lock(&c->mutex);
    call->is_answered = true;
    (void)pthread_cond_signal(&call->cond);
    (void)pthread_mutex_unlock(&c->mutex);
}

void mailbox_deliver(struct redlock_client *c, bool is_renewing)
{
    (void)pthread_mutex_lock(&c->mutex);
    struct mail *list = take_all(c);
    if (is_renewing) {
        c->renewing = TURNS_OF_RENEWING;
        (void)uv_async_send(&c->mailbox.bell); /* makes these turns come soon */
    }
    (void)pthread_mutex_unlock(&c->mutex);
    deliver(c, list);
}

void mailbox_close(struct redlock_client *c)
{
    (void)pthread_mutex_lock(&c->mutex);
    struct mail *list = take_all(c);
    c->mailbox.is_closed = true;
    c->renewing = 0;
    (void)pthread_cond_broadcast(&c->quiet);
    (void)pthread_mutex_unlock(&c->mutex);
    deliver(c, list);
}
