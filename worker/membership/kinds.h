/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds that this worker serves: those that all its runners have, once PostgreSQL knows
 * them. */
#ifndef CLAIMD_WORKER_MEMBERSHIP_KINDS_H
#define CLAIMD_WORKER_MEMBERSHIP_KINDS_H

#include "worker/membership/kind_set.h"
#include "worker/slots/slot.h"

struct membership;

struct kinds {
    struct kind_set served;    /* the kinds whose jobs are claimed, without paused ones */
    int64_t generation;        /* counts changes of `served`; 0 = no hello so far */
    bool has_any;              /* had any kind at some time, paused or not */
    struct kinds_state *state; /* what each runner announced; kinds.c */
};

enum status kinds_open(struct membership *m, struct err *err) MUST_USE;
void kinds_close(struct membership *m);

/* Returns how many kinds it can serve, including paused ones. */
size_t kinds_able(const struct membership *m);
/* Returns how many plugins are not served, according to the last hello and to runners that died. */
size_t kinds_refused(const struct membership *m);

/* Describes each of them as "FILE: why". The texts are valid until the next hello or death of a
 * runner. */
size_t kinds_refused_texts(const struct membership *m, const char *ret[WORKER_REFUSED_MAX]);

/* Returns the files that runners are started without. */
const struct slot_without *kinds_without(const struct membership *m);

/* Returns the files whose programs runners start before they send their hello. */
const struct slot_without *kinds_doubtful(const struct membership *m);

/* Reads the hello of a runner: the first of its child, or a later one. */
void kinds_take_hello(struct membership *m, size_t runner, int hellos, const char *json,
                      size_t len);

/* Call when a runner ended while it loaded this file. */
void kinds_load_died(struct membership *m, const char *file, const char *text, bool is_hung);

/* Registers kinds that are new, changed or back again in PostgreSQL; they are served after that. */
void kinds_announce(struct membership *m);

/* Takes the list of kinds that are paused in the cluster: they are not served until they are
 * resumed. */
void kinds_take_paused(struct membership *m, const char *const *names, size_t count);

/* Call when the plugins' files may have changed: replaces each runner as soon as it is idle. */
void kinds_refresh(struct membership *m);
void kinds_tick(struct membership *m, int64_t now_us);

#endif
