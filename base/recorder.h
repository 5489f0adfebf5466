/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder (docs/reliability.md): records the requests of this process to PostgreSQL, Redis and
 * its runners, and their replies, for a checker to judge afterwards. It is off unless
 * CLAIMD_HISTORY names a directory. Then each process writes one file there, one JSON object per
 * line, each line with one write(2) to an O_APPEND descriptor, so that kill -9 loses no line. `inv`
 * is recorded before a request is sent; its end is `ok`, `fail`, or `info` if the outcome is
 * unknown. Times are CLOCK_BOOTTIME in nanoseconds, read with the raw system call, which no clock
 * shim intercepts.
 *
 * A history is complete up to the end of its process: if a line can't be written, the process
 * aborts.
 *
 *   record("claim", "inv", RECORD_I64("job", id)); */
#ifndef CLAIMD_BASE_RECORDER_H
#define CLAIMD_BASE_RECORDER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct recorder_field {
    const char *name;
    const char *text; /* NULL: the value is `number` */
    size_t len;
    int64_t number;
    bool is_json; /* `text` is JSON and is written unchanged */
};

#define RECORD_I64(field_name, value) \
    ((struct recorder_field){.name = (field_name), .number = (int64_t)(value)})
#define RECORD_BYTES(field_name, value, value_len) \
    ((struct recorder_field){.name = (field_name), .text = (value), .len = (value_len)})
#define RECORD_TEXT(field_name, value) RECORD_BYTES(field_name, value, strlen(value))
#define RECORD_JSON(field_name, value) \
    ((struct recorder_field){          \
        .name = (field_name), .text = (value), .len = strlen(value), .is_json = true})

/* Reads CLAIMD_HISTORY and records the start; call it once, in main(). Returns INVALID if no file
 * can be created in that directory. `program` must outlive the process. */
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
