/* SPDX-License-Identifier: Apache-2.0
 *
 * A live view on the terminal's alternate screen. It is drawn again at an interval, when the size
 * changes and on a key; q or Ctrl-C ends it. The terminal is always restored. */
#ifndef CLAIMD_CTL_SCREEN_H
#define CLAIMD_CTL_SCREEN_H

#include "ctl/core/table_text.h"

struct screen_size {
    struct table_style style;
    size_t rows;
};

/* Writes one picture. A line that begins with SCREEN_HEADING is emphasized. UNAVAILABLE and TIMEOUT
 * are shown, and the picture is tried again; any other failure ends the view. */
#define SCREEN_HEADING '\x01'
typedef enum status screen_draw(void *ctx, const struct screen_size *size, FILE *out,
                                struct err *err);

/* True if standard output is a terminal that supports the view. */
bool screen_is_there(void);
enum status screen_run(int64_t every_us, screen_draw *draw, void *ctx, struct err *err) MUST_USE;

#endif
