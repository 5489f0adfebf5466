/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of a map: a query of the caller's, read in chunks in the order of its key, in read-only
 * transactions, with the caller's rights and search_path. Each chunk is read with a snapshot of its
 * own. INVALID: the query is refused; err says why. */
#ifndef CLAIMD_CTL_MAP_SOURCE_H
#define CLAIMD_CTL_MAP_SOURCE_H

#include "base/text.h"
#include "store/admin.h"

#include <jansson.h>

#define SOURCE_CHUNK 5000
#define SOURCE_QUERY_MAX ((size_t)256 << 10)

struct source {
    struct admin *admin; /* borrowed */
    const char *query;   /* borrowed, as is the key */
    const char *key;     /* a column; NULL before source_open(): the first one */
    char key_room[64];
    struct text first; /* statement for the first chunk */
    struct text next;  /* … for chunks after a key */
};

/* Runs one statement, as the caller would: in a read-only transaction, with the caller's
 * search_path. An error that is the statement's fault is INVALID; each begins with `what`. */
enum status source_ask(struct admin *admin, const struct pg_statement *statement,
                       const char *const *params, const char *what, struct admin_rows **ret,
                       struct err *err) MUST_USE;
/* Takes an error of a statement of the caller's: INVALID if it is the statement's fault. */
enum status source_refuse(enum status st, const char *what, const struct err *why,
                          struct err *err) MUST_USE;

/* Checks the query before its rows are read: that it has the key's column and those that the
 * command (may be NULL) names, that no key is NULL, that the first million rows or so have
 * different keys, and, unless `is_slow`, that an index returns rows in the order of the key. */
enum status source_open(struct source *s, const json_t *command, bool is_slow,
                        struct err *err) MUST_USE;
void source_release(struct source *s);

/* Counts the rows, which reads all of them. */
enum status source_count(const struct source *s, char ret_count[24], struct err *err) MUST_USE;

/* Reads the next rows after the key `behind`; NULL: the first rows. Keys are text and rows JSON
 * objects; in place of a row that is too long stands its size, a JSON string. INVALID: two rows
 * have the same key. */
enum source_column { SOURCE_KEY, SOURCE_ROW };
enum status source_read(const struct source *s, const char *behind, struct admin_rows **ret,
                        bool *ret_is_last, struct err *err) MUST_USE;

#endif
