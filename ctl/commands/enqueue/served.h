/* SPDX-License-Identifier: Apache-2.0
 *
 * Warns of jobs that no worker would run at present: collects their queues and kinds, and checks
 * them before the jobs are stored. */
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
    size_t left_out; /* further pairs, which are not checked */
};

/* Notes a pair once. The names must be valid. */
void served_note(struct served *s, const char *queue, size_t queue_len, const char *kind,
                 size_t kind_len);

/* Warns on standard error of each pair that no live worker serves. If `is_strict`, returns CONFLICT
 * for the first of them instead. */
enum status served_check(const struct served *s, struct admin *a, bool is_strict,
                         struct err *err) MUST_USE;

#endif
