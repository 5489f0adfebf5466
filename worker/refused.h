/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of handlers that this worker does not serve, and why, as each beat tells it. */
#ifndef CLAIMD_WORKER_REFUSED_H
#define CLAIMD_WORKER_REFUSED_H

#include "store/worker_store.h"
#include "worker/slot.h"

#include <jansson.h>

#define REFUSED_TEXT_SIZE 320 /* the rest is cut; the log has it */

struct refused {
    char texts[WORKER_REFUSED_MAX][REFUSED_TEXT_SIZE]; /* "FILE: why" */
    size_t count;
};

/* `told`: what a hello has said, or NULL; `without`: files that runners are started without. What
 * is beyond WORKER_REFUSED_MAX is left out. */
void refused_fill(struct refused *ret, const json_t *told, const struct slot_without *without);

/* Borrowed until the next refused_fill(). */
size_t refused_texts(const struct refused *r, const char *ret[WORKER_REFUSED_MAX]);

#endif
