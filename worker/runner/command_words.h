/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of a program that runs once: its template with a job's args filled in. Pure;
 * claimctl shows by it what `map` would run. */
#ifndef CLAIMD_WORKER_RUNNER_COMMAND_WORDS_H
#define CLAIMD_WORKER_RUNNER_COMMAND_WORDS_H

#include "base/buf.h"

#include <jansson.h>

#define COMMAND_WORDS_MAX 256
#define COMMAND_BYTES_MAX ((size_t)1 << 20) /* of all words */

/* What stands at a place of a template's word: an octet, "{name}" for a job's arg, "{name:json}"
 * for it as JSON, whatever it is, or "{{name}}" for "{name}" itself. */
enum command_piece { COMMAND_OCTET, COMMAND_ARG, COMMAND_JSON, COMMAND_BRACES };
/* Its size there; the text does not end at this place. Of an arg, the name has *ret_name octets
 * behind the brace. */
size_t command_piece(const char *at, enum command_piece *ret, size_t *ret_name);

struct command_words {
    struct buf bytes;             /* NUL-ended, one behind the other */
    size_t at[COMMAND_WORDS_MAX]; /* where each begins */
    size_t count;
};
#define COMMAND_WORDS_INIT                   \
    {                                        \
        .bytes = BUF_INIT(COMMAND_BYTES_MAX) \
    }

/* `template` is NULL-ended, with COMMAND_WORDS_MAX words at most; nothing is filled into the first.
 * INVALID, LIMIT: these args don't fit it, and err says why. Release w->bytes whatever the
 * status. */
enum status command_words_fill(struct command_words *w, const char *const *template,
                               const json_t *args, struct err *err) MUST_USE;

#endif
