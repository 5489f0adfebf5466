/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of tokens: lines `ROLE NAME TOKEN`, empty ones, and comments that begin with #. */
#ifndef CLAIMD_WEB_TOKENS_H
#define CLAIMD_WEB_TOKENS_H

#include "web/request.h"

#define TOKENS_MAX 64
#define TOKEN_LEN_MIN 20
#define TOKEN_SIZE 129 /* with the NUL, and filled up with NULs */

struct token {
    enum web_role role;
    char name[WEB_WHO_MAX];
    char text[TOKEN_SIZE];
};

struct tokens {
    struct token list[TOKENS_MAX];
    size_t count;
};

/* INVALID: the file is readable by all, or a line is not of the form; the error names it. */
enum status tokens_load(const char *path, struct tokens *ret, struct err *err) MUST_USE;
/* Reads the lines of a file's content. Pure. */
enum status tokens_parse(const char *text, struct tokens *ret, struct err *err) MUST_USE;

/* Returns the token with that text; NULL = none. Takes as long for each text, whether or not a
 * token begins like it. */
const struct token *tokens_find(const struct tokens *t, const char *text);

/* Compares without a difference in time; both have `size` bytes. */
bool is_same_secret(const char *a, const char *b, size_t size);

#endif
