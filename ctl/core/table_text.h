/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables as claimctl prints them. */
#ifndef CLAIMD_CTL_CORE_TABLE_TEXT_H
#define CLAIMD_CTL_CORE_TABLE_TEXT_H

#include "verbs/verb.h"

#include <stdio.h>

enum status tables_print(const struct table *const *tables, size_t count, bool is_json, FILE *out,
                         struct err *err) MUST_USE;

enum status answer_print(const struct answer *answer, bool is_json, FILE *out,
                         struct err *err) MUST_USE;

/* How text is laid out: as wide as it wants, or for this terminal. */
struct table_style {
    bool is_terminal;
    size_t width;
};
struct table_style table_style_of(FILE *out);
enum status tables_print_text(const struct table *const *tables, size_t count,
                              const struct table_style *style, FILE *out, struct err *err) MUST_USE;

#endif
