/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that nobody will run as things are: of which queues and kinds, and what to say of them
 * before they are stored. */
#ifndef CLAIMD_CTL_SERVED_H
#define CLAIMD_CTL_SERVED_H

#include "store/admin.h"

#include <stdbool.h>

#define SERVED_MAX 256

struct served {
    struct {
        char queue[65];
        char kind[65];
    } pairs[SERVED_MAX];
    size_t count;
    size_t left_out; /* further ones, not looked at */
};

/* Notes a pair once. Names of the right form only. */
void served_note(struct served *s, const char *queue, size_t queue_len, const char *kind,
                 size_t kind_len);

/* Warns on standard error of each pair that no live worker serves. CONFLICT where `is_strict`: the
 * first of them. */
enum status served_check(const struct served *s, struct admin *a, bool is_strict,
                         struct err *err) MUST_USE;

#endif
