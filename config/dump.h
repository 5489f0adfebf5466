/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the effective configuration as a file that has the same effect, and the schema of such
 * files. */
#ifndef CLAIMD_CONFIG_DUMP_H
#define CLAIMD_CONFIG_DUMP_H

#include "base/buf.h"
#include "config/options.h"

#include <jansson.h>

/* Returns a value as a new reference; NULL if out of memory. `c` comes from config_read(). A secret
 * is only ever shown as the name of its file; a password in a URL is masked, and *ret_is_masked
 * set. */
json_t *config_value(const struct option_def *o, const struct config *c, bool *ret_is_masked);

/* Writes one document with all keys. Relative paths are made absolute, so that the file works in
 * any directory. */
enum status config_dump(const struct config *c, struct buf *out, bool *ret_is_masked,
                        struct err *err) MUST_USE;

/* Writes the JSON Schema (draft 2020-12): config/claimd.schema.json. */
enum status config_schema(struct buf *out, struct err *err) MUST_USE;

#endif
