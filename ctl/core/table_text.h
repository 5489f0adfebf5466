/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables as claimctl prints them. */
#ifndef CLAIMD_CTL_CORE_TABLE_TEXT_H
#define CLAIMD_CTL_CORE_TABLE_TEXT_H

#include "verbs/verb.h"

#include <stdio.h>

enum status tables_print(const struct table *const *tables, size_t count, bool is_json, FILE *out,
                         struct err *err) MUST_USE;

enum status table_print(const struct table *t, bool is_json, FILE *out, struct err *err) MUST_USE;
/* Prints a record that does not come from a verb. */
enum status record_print(const char *name, const struct table_column *columns, size_t count,
                         const char *const *values, bool is_json, FILE *out,
                         struct err *err) MUST_USE;
#define PRINT_RECORD(ctl, name, columns, values, err)                                           \
    record_print((name), (columns), ARRAY_COUNT(columns), (values), (ctl)->is_json, (ctl)->out, \
                 (err))

enum status answer_print(const struct answer *answer, bool is_json, FILE *out,
                         struct err *err) MUST_USE;

/* The layout of text: as wide as it needs, or for this terminal. */
struct table_style {
    bool is_terminal;
    size_t width;
};
struct table_style table_style_of(FILE *out);
enum status tables_print_text(const struct table *const *tables, size_t count,
                              const struct table_style *style, FILE *out, struct err *err) MUST_USE;

#endif
