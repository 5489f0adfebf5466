/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of a program that runs once: its template with a job's args filled in. Pure, so
 * that claimctl map --dry-run can show what would run. */
#ifndef CLAIMD_RUNNER_COMMAND_WORDS_H
#define CLAIMD_RUNNER_COMMAND_WORDS_H

#include "base/buf.h"

#include <jansson.h>

#define COMMAND_WORDS_MAX 256
#define COMMAND_BYTES_MAX ((size_t)1 << 20) /* of all words */

/* A piece of a template's word: an octet; "{name}", a job's arg; "{name:json}", an arg of any type
 * as JSON; or "{{name}}", which stands for the text "{name}". */
enum command_piece { COMMAND_OCTET, COMMAND_ARG, COMMAND_JSON, COMMAND_BRACES };
/* Returns the size of the piece at `at`, where the text must not end, and its type. The name of an
 * arg begins after the brace and has *ret_name bytes. */
size_t command_piece(const char *at, enum command_piece *ret, size_t *ret_name);

struct command_words {
    struct buf bytes;             /* all words, each ended by a NUL */
    size_t at[COMMAND_WORDS_MAX]; /* offset of each word */
    size_t count;
};
#define COMMAND_WORDS_INIT                   \
    {                                        \
        .bytes = BUF_INIT(COMMAND_BYTES_MAX) \
    }

/* Fills args into the words of `template`, except the first. `template` is NULL-ended and has at
 * most COMMAND_WORDS_MAX words. INVALID, LIMIT: the args don't fit it; err says why. Release
 * w->bytes whatever the status. */
enum status command_words_fill(struct command_words *w, const char *const *template,
                               const json_t *args, struct err *err) MUST_USE;

#endif
