/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/core/wrap.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

size_t wrap_char_width(const char *at, size_t *ret_len)
{
    mbstate_t state = {0};
    wchar_t wide = 0;
    size_t len = mbrtowc(&wide, at, MB_CUR_MAX, &state);
    *ret_len = len == 0 || len > MB_CUR_MAX ? 1 : len;
    int width = len == 0 || len > MB_CUR_MAX || !iswprint((wint_t)wide) ? -1 : wcwidth(wide);
    return width < 0 ? 4 * *ret_len : (size_t)width;
}

size_t wrap_text_width(const char *text)
{
    size_t width = 0;
    size_t len = 0;
    for (const char *p = text; *p != '\0'; p += len) {
        width += wrap_char_width(p, &len);
    }
    return width;
}

size_t wrap_line(const char *text, size_t width, bool at_commas, size_t *ret_skip)
{
    size_t used = 0;
    size_t len = 0;
    size_t end = 0; /* where the line may end, and what to skip there */
    size_t skip = 0;
    for (size_t at = 0; text[at] != '\0'; at += len) {
        if (text[at] == '\n') {
            *ret_skip = 1;
            return at;
        }
        used += wrap_char_width(text + at, &len);
        if (text[at] == ' ' && at > 0) {
            end = at;
            skip = 1;
        } else if (at_commas && text[at] == ',' && used <= width) {
            end = at + 1;
            skip = 0;
        }
        if (used > width && at > 0) {
            *ret_skip = end > 0 ? skip : 0;
            return end > 0 ? end : at;
        }
    }
    *ret_skip = 0;
    return strlen(text);
}

size_t wrap_print(FILE *out, const char *text, size_t width, size_t indent)
{
    size_t lines = 0;
    do {
        size_t skip = 0;
        size_t len = wrap_line(text, width, false, &skip);
        int spaces = lines > 0 && len > 0 ? (int)indent : 0;
        (void)fprintf(out, "%*s%.*s\n", spaces, "", (int)len, text);
        text += len + skip;
        lines++;
    } while (*text != '\0');
    return lines;
}
