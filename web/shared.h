/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that are the same for all who ask and cost PostgreSQL something: made once, and given to
 * all who ask until they are 2 s old, or 33 times as old as it took to make them, so that all
 * viewers together take at most 3 % of one backend. If a new one cannot be made, for example
 * because its query took too long, the last one is given out for up to a minute. */
#ifndef CLAIMD_WEB_SHARED_H
#define CLAIMD_WEB_SHARED_H

#include "base/text.h"

#include <stdint.h>

#define SHARED_ANSWERS_MAX 8

struct shared;

/* Makes the answer of a key, and appends it to `out`. */
typedef enum status shared_make(void *ctx, const void *key, struct text *out, struct err *err);

enum status shared_open(shared_make *make, void *ctx, struct shared **ret,
                        struct err *err) MUST_USE;
void shared_close(struct shared *s); /* accepts NULL */

/* Appends the answer of the key, a pointer that stands for it. Waits up to 5 s if another thread is
 * just making it: TIMEOUT. The failure of a maker is that of all who wait for it. */
enum status shared_get(struct shared *s, const void *key, struct text *out,
                       struct err *err) MUST_USE;
/* Something has changed: each answer is made again when it is asked for. */
void shared_forget(struct shared *s);

#endif
