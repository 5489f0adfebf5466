/* SPDX-License-Identifier: Apache-2.0
 *
 * The handler files that this worker does not serve, and why, as each heartbeat reports them. */
#ifndef CLAIMD_WORKER_MEMBERSHIP_REFUSED_H
#define CLAIMD_WORKER_MEMBERSHIP_REFUSED_H

#include "store/worker_store.h"
#include "worker/slots/slot.h"

#include <jansson.h>

#define REFUSED_TEXT_SIZE 320 /* longer texts are cut; the log has all */

struct refused {
    char texts[WORKER_REFUSED_MAX][REFUSED_TEXT_SIZE]; /* "FILE: why" */
    size_t count;
};

/* `told`: the refusals of a hello, or NULL; `without`: files that runners are started without.
 * Files beyond WORKER_REFUSED_MAX are left out. */
void refused_fill(struct refused *ret, const json_t *told, const struct slot_without *without);

/* Returns how many texts there are; they are borrowed until the next refused_fill(). */
size_t refused_texts(const struct refused *r, const char *ret[WORKER_REFUSED_MAX]);

#endif
