/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a runner's hello (protocol/protocol.h) as untrusted input: code that runs while plugins are
 * loaded can write in its runner's name. Pure. */
#ifndef CLAIMD_WORKER_MEMBERSHIP_HELLO_H
#define CLAIMD_WORKER_MEMBERSHIP_HELLO_H

#include "worker/membership/kind_set.h"

#include <jansson.h>

#define HELLO_REFUSED_MAX 1000 /* files; the rest of a longer list is ignored */

/* Reads the kinds that PostgreSQL would accept, each name once, and returns how many there are.
 * Texts are borrowed. */
size_t hello_kinds(const json_t *hello, struct worker_kind ret_kinds[KIND_SET_MAX]);

/* Returns how many of the refused files to look at. */
size_t hello_refused_count(const json_t *refused);

#endif
