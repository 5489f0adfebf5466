/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the soak's SQL scripts, which are files beside this one. */
#ifndef CLAIMD_TESTS_SOAK_SCRIPT_H
#define CLAIMD_TESTS_SOAK_SCRIPT_H

#include "base/buf.h"
#include "chaos/session.h"

/* A word $NAME of a script, and what replaces it. */
struct script_word {
    const char *name; /* with the dollar sign */
    const char *value;
};

/* Appends the file to `out` with its words replaced; `words` ends with a zeroed one. */
enum status script_read(const char *name, const struct script_word *words, struct buf *out,
                        struct err *err) MUST_USE;
enum status script_run(struct session *s, const char *name, const struct script_word *words,
                       struct err *err) MUST_USE;

#endif
