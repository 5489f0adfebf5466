/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the hint nodes whether these jobs have hints now. Blocks, for at most 4 s; reads only. */
#ifndef CLAIMD_CTL_HINT_LOOKUP_H
#define CLAIMD_CTL_HINT_LOOKUP_H

#include "config/config.h"

#define HINT_LOOKUP_MAX 100

struct hint_lookup {
    int64_t id;
    char queue[65];
    char kind[65];
    int priority;
    bool has_hint;  /* on any node that answered */
    int64_t others; /* hints of its queue and priority, on the node with the most of them */
};

/* Fills in the last two fields. UNAVAILABLE: no node answered. INVALID: a node refused the request,
 * for example because of missing rights. */
enum status hint_lookup(const struct config *config, struct hint_lookup *list, size_t count,
                        struct err *err) MUST_USE;

#endif
