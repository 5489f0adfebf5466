/* SPDX-License-Identifier: Apache-2.0
 *
 * The SQL of the soak, files beside this one. */
#ifndef CLAIMD_TESTS_SOAK_SCRIPT_H
#define CLAIMD_TESTS_SOAK_SCRIPT_H

#include "base/buf.h"
#include "chaos/session.h"

/* $NAME in a script stands for this. */
struct script_word {
    const char *name; /* with the dollar sign */
    const char *value;
};

/* Appends the file, with its words (ended by a zeroed one) in their places. */
enum status script_read(const char *name, const struct script_word *words, struct buf *out,
                        struct err *err) MUST_USE;
enum status script_run(struct session *s, const char *name, const struct script_word *words,
                       struct err *err) MUST_USE;

#endif
