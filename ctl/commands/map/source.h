/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows that a map is made of: a query of the caller's, read in chunks by its key, in
 * transactions that can't write, with the caller's rights and search_path. No snapshot is older
 * than a chunk. INVALID: the query is refused, and err says why. */
#ifndef CLAIMD_CTL_MAP_SOURCE_H
#define CLAIMD_CTL_MAP_SOURCE_H

#include "base/text.h"
#include "store/admin.h"

#include <jansson.h>

#define SOURCE_CHUNK 5000
#define SOURCE_QUERY_MAX ((size_t)256 << 10)

struct source {
    struct admin *admin; /* borrowed */
    const char *query;   /* borrowed, as the key */
    const char *key;     /* NULL, until it is opened: the first column */
    char key_room[64];
    struct text first; /* the statements of chunks */
    struct text next;
};

/* Checks all that can be said before a row is read: the columns, those that the command (may be
 * NULL) names, that no key is NULL, and that an index leads from key to key unless `is_slow`. */
enum status source_open(struct source *s, const json_t *command, bool is_slow,
                        struct err *err) MUST_USE;
void source_release(struct source *s);

/* How many rows there are. Reads them all. */
enum status source_count(const struct source *s, char ret_count[24], struct err *err) MUST_USE;

/* Rows behind that key; NULL: the first. Keys are text, rows JSON objects; one that is too long is
 * its size. INVALID: a key is there twice. */
enum source_column { SOURCE_KEY, SOURCE_ROW };
enum status source_read(const struct source *s, const char *behind, struct admin_rows **ret,
                        bool *ret_is_last, struct err *err) MUST_USE;

#endif
