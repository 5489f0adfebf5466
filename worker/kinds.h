/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds that this worker serves: those of all its runners, once PostgreSQL knows them. */
#ifndef CLAIMD_WORKER_KINDS_H
#define CLAIMD_WORKER_KINDS_H

#include "worker/kind_set.h"
#include "worker/slot.h"

struct worker;

struct kinds {
    struct kind_set served;  /* what is asked for: without what is paused */
    int64_t generation;      /* counts its changes; 0 = no runner has said hello */
    bool has_any;            /* since the start, at some time, paused or not */
    struct kinds_book *book; /* what each runner said; kinds.c */
};

enum status kinds_open(struct worker *w, struct err *err) MUST_USE;
void kinds_close(struct worker *w);

/* With those that are paused. */
size_t kinds_able(const struct worker *w);
/* Plugins that are not served, as the last hello and dead runners said. */
size_t kinds_refused(const struct worker *w);

/* Of each of those "FILE: why", until the next hello or death of a runner. */
size_t kinds_refused_texts(const struct worker *w, const char *ret[WORKER_REFUSED_MAX]);

/* Files that runners are started without. */
const struct slot_without *kinds_without(const struct worker *w);

/* Files whose programs runners start before they say hello. */
const struct slot_without *kinds_doubtful(const struct worker *w);

/* Reads the hello of a runner. */
void kinds_take_hello(struct worker *w, const struct slot *slot, const char *json, size_t len);

/* A runner ended while it loaded this file. */
void kinds_load_died(struct worker *w, const char *file, const char *text, bool is_hung);

/* Kinds that are new here, or came back, or changed, are served once PostgreSQL knows them. */
void kinds_announce(struct worker *w);

/* The kinds that are paused in the cluster: those of ours are not served until they are resumed. */
void kinds_take_paused(struct worker *w, const char *const *names, size_t count);

/* The plugins' files may have changed: every runner is replaced as soon as it is idle. */
void kinds_refresh(struct worker *w);
void kinds_tick(struct worker *w, int64_t now_us);

#endif
