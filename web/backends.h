/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of PostgreSQL, shared by the threads of requests. There are few of them, opened when
 * they are needed; a statement of theirs ends after 2 s. */
#ifndef CLAIMD_WEB_BACKENDS_H
#define CLAIMD_WEB_BACKENDS_H

#include "config/config.h"
#include "store/admin.h"

struct backends;

/* Opens one session, to see that PostgreSQL and its schema are there. CONFLICT: another schema. */
enum status backends_open(const struct config *config, struct backends **ret,
                          struct err *err) MUST_USE;
void backends_close(struct backends *p); /* accepts NULL; no session may be taken */

/* Takes a session, for the caller alone. Waits up to 2 s for one to be free: UNAVAILABLE. */
enum status backends_take(struct backends *p, struct admin **ret, struct err *err) MUST_USE;
/* Gives it back. `why` is the last error of the caller: after some the session is closed. */
void backends_give(struct backends *p, struct admin *a, const struct err *why);

#endif
