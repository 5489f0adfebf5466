/* SPDX-License-Identifier: Apache-2.0
 *
 * Breaks text into lines of a given width, in columns as a terminal counts them. */
#ifndef CLAIMD_CTL_WRAP_H
#define CLAIMD_CTL_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Returns the columns of the character at `at`, and its bytes in *ret_len. An unprintable character
 * is shown as \xNN. */
size_t wrap_char_width(const char *at, size_t *ret_len);
size_t wrap_text_width(const char *text);

/* Returns how many bytes of `text` make one line of at most `width` columns; *ret_skip = bytes of
 * the break after it. A line ends at a newline, a space or, if `at_commas`, after a comma; a longer
 * word is broken. */
size_t wrap_line(const char *text, size_t width, bool at_commas, size_t *ret_skip);

/* Prints lines of at most `width` columns, all but the first indented by `indent` spaces. Returns
 * the number of lines. */
size_t wrap_print(FILE *out, const char *text, size_t width, size_t indent);

#endif
