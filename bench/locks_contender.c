/* SPDX-License-Identifier: Apache-2.0
 *
 * A client of a contest: repeatedly waits for its lock, holds it for a while, and releases it. */
#include "base/clock.h"
#include "bench/locks_contest.h"

#include <stdio.h>
#include <time.h>

#define LOOK_MS 1
#define WAIT_MS 60000 /* longer than any contest lasts */
#define KEY_SIZE 64

/* The keys that each client of a contest with pairs wants, by index. */
static const unsigned wishes[] = {1, 2, 4, 1 | 2, 2 | 4, 4 | 1};

static void pause_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&t, &t) != 0) {
    }
}

static void note_wait(struct contest_client *me)
{
    int64_t waited_us = clock_boot_us() - me->since_us;
    me->since_us = 0;
    if (waited_us > me->longest_us) {
        me->longest_us = waited_us;
    }
}

static bool is_reader(const struct contest_entrant *self)
{
    return self->contest->has_readers && self->index > 0;
}

/* Enters the critical section of each key, which only one client may be in at a time, or several
 * readers. */
static void enter(const struct contest_entrant *self, unsigned keys)
{
    struct contest_share *s = self->share;
    int64_t id = (int64_t)self->index + 1;
    if (is_reader(self)) {
        s->readers++;
        s->overlaps += s->inside[0] != 0;
        return;
    }
    for (size_t k = 0; k < CONTEST_KEYS; k++) {
        int64_t none = 0;
        if ((keys & 1U << k) != 0 && !atomic_compare_exchange_strong(&s->inside[k], &none, id)) {
            s->overlaps++;
        }
    }
    s->overlaps += s->readers > 0;
}

static void leave(const struct contest_entrant *self, unsigned keys)
{
    struct contest_share *s = self->share;
    if (is_reader(self)) {
        s->readers--;
        return;
    }
    for (size_t k = 0; k < CONTEST_KEYS; k++) {
        int64_t mine = (int64_t)self->index + 1;
        if ((keys & 1U << k) != 0) {
            (void)atomic_compare_exchange_strong(&s->inside[k], &mine, 0);
        }
    }
}

static void be_inside(const struct contest_entrant *self, unsigned keys)
{
    struct contest_share *s = self->share;
    struct contest_client *me = &s->clients[self->index];
    int64_t id = (int64_t)self->index + 1;
    enter(self, keys);
    s->entries++;
    note_wait(me);
    if (s->last != id) {
        s->last = id;
        s->changes++;
    }
    me->wins++;
    pause_ms(self->contest->hold_ms);
    leave(self, keys);
}

static enum redlock_result acquire(const struct contest_entrant *self,
                                   struct redlock_client *client, unsigned keys,
                                   struct redlock_lock **ret_lock)
{
    static char names[CONTEST_KEYS][KEY_SIZE];
    struct redlock_key list[CONTEST_KEYS];
    struct redlock_request request = {.key = self->key, .wait_ms = WAIT_MS};
    if (self->contest->has_readers) {
        request.mode = is_reader(self) ? REDLOCK_MODE_SHARED : REDLOCK_MODE_EXCLUSIVE;
    }
    if (!self->contest->has_pairs) {
        return redlock_acquire(client, &request, ret_lock, NULL);
    }
    for (size_t k = 0; k < CONTEST_KEYS; k++) {
        if ((keys & 1U << k) != 0) {
            (void)snprintf(names[k], KEY_SIZE, "%s:%c", self->key, (char)('a' + k));
            list[request.count++] = (struct redlock_key){.bytes = names[k]};
        }
    }
    request.key = NULL;
    request.keys = list;
    return redlock_acquire(client, &request, ret_lock, NULL);
}

static void contend(const struct contest_entrant *self, struct redlock_client *client)
{
    struct contest_share *s = self->share;
    struct contest_client *me = &s->clients[self->index];
    unsigned keys =
        self->contest->has_pairs ? wishes[self->index % (sizeof wishes / sizeof *wishes)] : 1;
    while (s->phase != CONTEST_STOP) {
        struct redlock_lock *lock = NULL;
        if (me->since_us == 0) {
            me->since_us = clock_boot_us();
        }
        if (acquire(self, client, keys, &lock) != REDLOCK_OK) {
            s->failures++;
            continue;
        }
        be_inside(self, keys);
        (void)redlock_unlock(lock, NULL);
    }
}

_Noreturn void contest_enter(const struct contest_entrant *self)
{
    struct redlock_report report = {0};
    struct redlock_client *client = NULL;
    struct redlock_options options = self->world->cli.options;
    options.ttl_max_ms = options.ttl_ms;
    if (self->contest->has_kills) {
        options.ttl_ms = CONTEST_KILLS_TTL_MS;
        options.node_timeout_ms = CONTEST_KILLS_TTL_MS / 10;
    }
    if (redlock_open(&options, &client, &report) != REDLOCK_OK) {
        (void)fprintf(stderr, "bench: a client can't start: %s\n", report.message);
        _exit(EXIT_FAILURE);
    }
    self->share->ready++;
    while (self->share->phase == CONTEST_READY) {
        pause_ms(LOOK_MS);
    }
    contend(self, client);
    redlock_close(client);
    _exit(EXIT_SUCCESS);
}
