/* SPDX-License-Identifier: Apache-2.0
 *
 * A live view on the terminal's alternate screen: drawn again at an interval, on a change of its
 * size and on a key; q or Ctrl-C ends it. The terminal is always left as it was found. */
#ifndef CLAIMD_CTL_SCREEN_H
#define CLAIMD_CTL_SCREEN_H

#include "ctl/core/table_text.h"

struct screen_size {
    struct table_style style;
    size_t rows;
};

/* Writes one picture. A line that begins with SCREEN_HEADING stands out. UNAVAILABLE and TIMEOUT
 * are shown, and it is tried again; any other failure ends the view. */
#define SCREEN_HEADING '\x01'
typedef enum status screen_draw(void *ctx, const struct screen_size *size, FILE *out,
                                struct err *err);

/* Is standard output a terminal that can do it? */
bool screen_is_there(void);
enum status screen_run(int64_t every_us, screen_draw *draw, void *ctx, struct err *err) MUST_USE;

#endif
