/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder (docs/reliability.md): what this process asked of PostgreSQL, Redis and its runners,
 * and their replies, for a checker to judge afterwards. Off unless CLAIMD_HISTORY names a folder;
 * then one file per process there, one JSON object per line, each written by one write(2) on an
 * O_APPEND descriptor, so that a kill -9 loses none. `inv` is recorded before a request leaves; its
 * end is `ok`, `fail`, or `info` where the outcome is unknown. Times are CLOCK_BOOTTIME in
 * nanoseconds by the raw system call, which no clock shim touches.
 *
 * A history is complete up to the end of its process: a line that can't be written ends the
 * process.
 *
 *     record("claim", "inv", RECORD_I64("job", id)); */
#ifndef CLAIMD_BASE_RECORDER_H
#define CLAIMD_BASE_RECORDER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct recorder_field {
    const char *name;
    const char *text; /* NULL: the number counts */
    size_t len;
    int64_t number;
    bool is_json; /* the text is written as it is */
};

#define RECORD_I64(field_name, value) \
    ((struct recorder_field){.name = (field_name), .number = (int64_t)(value)})
#define RECORD_BYTES(field_name, value, value_len) \
    ((struct recorder_field){.name = (field_name), .text = (value), .len = (value_len)})
#define RECORD_TEXT(field_name, value) RECORD_BYTES(field_name, value, strlen(value))
#define RECORD_JSON(field_name, value) \
    ((struct recorder_field){          \
        .name = (field_name), .text = (value), .len = strlen(value), .is_json = true})

/* Reads CLAIMD_HISTORY once, in main(), and records the start. INVALID when no file can be made in
 * that folder. `program` must outlive the process. */
enum status recorder_open(const char *program, struct err *err) MUST_USE;
bool recorder_is_on(void);
void recorder_write(const char *op, const char *phase, const struct recorder_field *fields,
                    size_t count);

#define record(op, phase, ...)                                            \
    do {                                                                  \
        if (recorder_is_on()) {                                           \
            const struct recorder_field record_[] = {__VA_ARGS__};        \
            recorder_write((op), (phase), record_, ARRAY_COUNT(record_)); \
        }                                                                 \
    } while (0)

#endif
