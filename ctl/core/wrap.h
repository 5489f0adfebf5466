/* SPDX-License-Identifier: Apache-2.0
 *
 * Text in lines of a width that is counted as a terminal does. */
#ifndef CLAIMD_CTL_WRAP_H
#define CLAIMD_CTL_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Columns of the character at `at`; its bytes in *ret_len. What can't be printed is shown as
 * \xNN. */
size_t wrap_char_width(const char *at, size_t *ret_len);
size_t wrap_text_width(const char *text);

/* Bytes of `text` that make one line of at most `width` columns; *ret_skip = those of the break
 * behind it. A line ends at a newline, a space or, if `at_commas`, after a comma; a longer word is
 * broken. */
size_t wrap_line(const char *text, size_t width, bool at_commas, size_t *ret_skip);

/* Prints lines of at most `width` columns, all but the first behind `indent` spaces; returns how
 * many. */
size_t wrap_print(FILE *out, const char *text, size_t width, size_t indent);

#endif
