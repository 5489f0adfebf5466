/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder (docs/reliability.md): what this process asked of PostgreSQL, Redis and its runners,
 * and what it was told, for a checker to judge afterwards. Off unless CLAIMD_HISTORY names a
 * folder; then one file per process there, one JSON object per line, each written by one write(2)
 * on an O_APPEND descriptor, so that a kill -9 loses none. `inv` is recorded before a request
 * leaves; its end is `ok`, `fail`, or `info` where the outcome is unknown. Times are CLOCK_BOOTTIME
 * in nanoseconds by the raw system call, which no clock shim touches.
 *
 * A history is whole up to the end of its process: a line that can't be written ends the process.
 *
 *     history("claim", "inv", HISTORY_I64("job", id));
 */
#ifndef CLAIMD_BASE_HISTORY_H
#define CLAIMD_BASE_HISTORY_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct history_field {
    const char *name;
    const char *text; /* NULL: the number counts */
    size_t len;
    int64_t number;
    bool is_json; /* the text is written as it is */
};

#define HISTORY_I64(field_name, value) \
    ((struct history_field){.name = (field_name), .number = (int64_t)(value)})
#define HISTORY_BYTES(field_name, value, value_len) \
    ((struct history_field){.name = (field_name), .text = (value), .len = (value_len)})
#define HISTORY_TEXT(field_name, value) HISTORY_BYTES(field_name, value, strlen(value))
#define HISTORY_JSON(field_name, value) \
    ((struct history_field){            \
        .name = (field_name), .text = (value), .len = strlen(value), .is_json = true})

/* Reads CLAIMD_HISTORY once, in main(), and records the start. INVALID when it is set to something
 * that no file can be made in. `program` must outlive the process. */
enum status history_open(const char *program, struct err *err) MUST_USE;
bool history_is_on(void);
void history_write(const char *op, const char *phase, const struct history_field *fields,
                   size_t count);

#define history(op, phase, ...)                                            \
    do {                                                                   \
        if (history_is_on()) {                                             \
            const struct history_field history_[] = {__VA_ARGS__};         \
            history_write((op), (phase), history_, ARRAY_COUNT(history_)); \
        }                                                                  \
    } while (0)

#endif
