/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the hint nodes whether these jobs have hints now. Blocks, for at most 4 s; reads only. */
#ifndef CLAIMD_CTL_HINT_LOOK_H
#define CLAIMD_CTL_HINT_LOOK_H

#include "config/config.h"

#define HINT_LOOK_MAX 100

struct hint_look {
    int64_t id;
    char queue[65];
    char kind[65];
    int priority;
    bool has_hint;  /* on any node that answered */
    int64_t others; /* hints of its queue and priority, where most are */
};

/* Fills in the last two. UNAVAILABLE: no node answered; INVALID: one refused to, e.g. for want of
 * rights. */
enum status hint_look(const struct config *config, struct hint_look *list, size_t count,
                      struct err *err) MUST_USE;

#endif
