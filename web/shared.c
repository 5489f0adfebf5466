/* SPDX-License-Identifier: Apache-2.0 */
#include "web/shared.h"

#include "base/clock.h"

#include <assert.h>
#include <pthread.h>
#include <time.h>

#define AGE_US (2 * US_PER_S)
#define COST_FACTOR 33
#define WAIT_S 5
#define KEPT_US (60 * US_PER_S) /* a failure to make a new one leaves the answer, this long */

struct answer {
    const void *key; /* NULL: unused */
    char *text;      /* NULL: there is none yet, or it could not be made */
    size_t len;
    int64_t made_us;
    int64_t text_us; /* when the text was made */
    int64_t good_us; /* how long it is given out */
    bool is_making;
    struct err err; /* of the last making */
};

struct shared {
    pthread_mutex_t mutex; /* guards the answers */
    pthread_cond_t made;
    shared_make *make;
    void *ctx;
    uint64_t change; /* counts calls of shared_forget() */
    struct answer answers[SHARED_ANSWERS_MAX];
};

enum status shared_open(shared_make *make, void *ctx, struct shared **ret, struct err *err)
{
    pthread_condattr_t monotonic;
    struct shared *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    s->make = make;
    s->ctx = ctx;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&s->mutex, NULL);
    (void)pthread_cond_init(&s->made, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    *ret = s;
    return STATUS_OK;
}

void shared_close(struct shared *s)
{
    if (s != NULL) {
        for (size_t i = 0; i < SHARED_ANSWERS_MAX; i++) {
            free(s->answers[i].text);
        }
        (void)pthread_cond_destroy(&s->made);
        (void)pthread_mutex_destroy(&s->mutex);
        free(s);
    }
}

static struct answer *answer_of(struct shared *s, const void *key)
{
    size_t i = 0;
    while (i < SHARED_ANSWERS_MAX && s->answers[i].key != NULL && s->answers[i].key != key) {
        i++;
    }
    assert(i < SHARED_ANSWERS_MAX);
    s->answers[i].key = key;
    return &s->answers[i];
}

static bool is_good(const struct answer *a)
{
    return a->made_us != 0 && clock_boot_us() < a->made_us + a->good_us;
}

/* Makes the answer without the mutex, so that others can wait with a deadline. */
static void make(struct shared *s, struct answer *a)
{
    autotext struct text text = TEXT_INIT((size_t)16 << 20);
    struct err err = {0};
    uint64_t change = s->change;
    a->is_making = true;
    (void)pthread_mutex_unlock(&s->mutex);
    int64_t begun_us = clock_boot_us();
    enum status st = s->make(s->ctx, a->key, &text, &err);
    if (st == STATUS_OK) {
        st = text_end(&text, &err);
    }
    char *copy = st == STATUS_OK ? strdup(text_str(&text)) : NULL;
    if (st == STATUS_OK && copy == NULL) {
        err_set(&err, STATUS_NOMEM, 0, "out of memory");
    }
    int64_t took_us = clock_boot_us() - begun_us;
    (void)pthread_mutex_lock(&s->mutex);
    bool is_kept = copy == NULL && a->text != NULL && clock_boot_us() < a->text_us + KEPT_US;
    if (!is_kept) {
        free(a->text);
        a->text = copy;
        a->len = copy == NULL ? 0 : text.buf.len;
        a->text_us = clock_boot_us();
    }
    a->err = err;
    a->made_us = change == s->change ? clock_boot_us() : 0;
    a->good_us = took_us * COST_FACTOR > AGE_US ? took_us * COST_FACTOR : AGE_US;
    a->is_making = false;
    (void)pthread_cond_broadcast(&s->made);
}

static enum status wait_made(struct shared *s, const struct answer *a, struct err *err)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WAIT_S;
    while (a->is_making) {
        if (pthread_cond_timedwait(&s->made, &s->mutex, &until) != 0 && a->is_making) {
            return err_fail(err, STATUS_TIMEOUT, "the answer is still being made");
        }
    }
    return STATUS_OK;
}

enum status shared_get(struct shared *s, const void *key, struct text *out, struct err *err)
{
    enum status st = STATUS_OK;
    (void)pthread_mutex_lock(&s->mutex);
    struct answer *a = answer_of(s, key);
    if (!is_good(a) && a->is_making) {
        st = wait_made(s, a, err);
    } else if (!is_good(a)) {
        make(s, a);
    }
    if (st == STATUS_OK && a->text == NULL) {
        st = a->err.status;
        *err = a->err;
    } else if (st == STATUS_OK) {
        text_put_bytes(out, a->text, a->len);
    }
    (void)pthread_mutex_unlock(&s->mutex);
    return st;
}

void shared_forget(struct shared *s)
{
    (void)pthread_mutex_lock(&s->mutex);
    s->change++;
    for (size_t i = 0; i < SHARED_ANSWERS_MAX; i++) {
        s->answers[i].made_us = 0;
    }
    (void)pthread_mutex_unlock(&s->mutex);
}
