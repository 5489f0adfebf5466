/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in effect, as a file that has the same effect, and the schema of such files. */
#ifndef CLAIMD_CONFIG_DUMP_H
#define CLAIMD_CONFIG_DUMP_H

#include "base/buf.h"
#include "config/options.h"

#include <jansson.h>

/* `c` is that of config_read(). A new reference, NULL without memory. Secrets are only ever the
 * names of their files; a password in a URL is masked, and *ret_is_masked set. */
json_t *config_value(const struct option_def *o, const struct config *c, bool *ret_is_masked);

/* One document with all keys. Relative paths are made absolute, so it may lie anywhere. */
enum status config_dump(const struct config *c, struct buf *out, bool *ret_is_masked,
                        struct err *err) MUST_USE;

/* JSON Schema, draft 2020-12: config/claimd.schema.json. */
enum status config_schema(struct buf *out, struct err *err) MUST_USE;

#endif
