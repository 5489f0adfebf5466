/* SPDX-License-Identifier: Apache-2.0
 *
 * What a runner's hello says (worker/protocol.h), read as if an enemy had written it: code that
 * runs while plugins are loaded can write in its runner's name. Pure. */
#ifndef CLAIMD_WORKER_HELLO_H
#define CLAIMD_WORKER_HELLO_H

#include "worker/kind_set.h"

#include <jansson.h>

#define HELLO_REFUSED_MAX 1000 /* files; those behind them are not read */

/* The kinds that are as PostgreSQL takes them, each name once; how many. Texts are borrowed. */
size_t hello_kinds(const json_t *hello, struct worker_kind ret_kinds[KIND_SET_MAX]);

/* How many of the refused files to look at. */
size_t hello_refused_count(const json_t *refused);

#endif
