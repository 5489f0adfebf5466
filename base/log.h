/* SPDX-License-Identifier: Apache-2.0
 *
 * One line per event on stderr, in logfmt: `ts=… level=info event=job_finished job=42 …`, or the
 * same fields as a JSON object. Event names are API: docs/operations.md lists them, and tests wait
 * for them. Values are valid UTF-8, quoted and escaped where needed. Lines have a bounded length (a
 * value that is too long is truncated), and the lines of several processes don't interleave.
 * Arguments of jobs, tokens and passwords are never logged.
 *
 *   log_info("job_finished", LOG_I64("job", id), LOG_TEXT("outcome", "done")); */
#ifndef CLAIMD_BASE_LOG_H
#define CLAIMD_BASE_LOG_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_LOGFMT, LOG_JSON };

struct log_field {
    const char *name;
    const char *text; /* NULL: the value is `number` */
    int64_t number;
};

/* The number of lines of this level so far, and the number of dropped lines of all levels. */
uint64_t log_count(enum log_level level);
uint64_t log_dropped(void);

#define LOG_TEXT(field_name, value) ((struct log_field){.name = (field_name), .text = (value)})
#define LOG_I64(field_name, value) \
    ((struct log_field){.name = (field_name), .number = (int64_t)(value)})

/* Sets the program's name and the level for the whole process, once in main(). `program` appears on
 * every line, so it must stay valid. */
void log_init(const char *program, enum log_level max_level);
/* Applies the configuration, at the start (until then, lines are logfmt) and at every reload. */
void log_set(enum log_level max_level, enum log_format format);
enum log_format log_format(void);
/* Logs to `fd` instead of stderr; call it before log_start(). */
void log_to(int fd);

/* For daemons: between these two calls logging never waits for the reader (fault.F5). Lines that
 * the reader does not take yet are kept in a ring of 256 KiB, the last quarter of which is reserved
 * for warnings and errors. A line that finds no room is dropped and counted; `event=log_dropped`
 * reports the count once the reader catches up. Outside these calls log_write() blocks until its
 * line is written. log_stop() waits at most a second for the ring to drain. */
void log_start(void);
void log_stop(void);

bool log_enabled(enum log_level level);
void log_write(enum log_level level, const char *event, const struct log_field *fields,
               size_t count);

#define log_at(level, event, ...)                                       \
    do {                                                                \
        if (log_enabled(level)) {                                       \
            const struct log_field fields_[] = {__VA_ARGS__};           \
            log_write((level), (event), fields_, ARRAY_COUNT(fields_)); \
        }                                                               \
    } while (0)
#define log_error(event, ...) log_at(LOG_ERROR, event, __VA_ARGS__)
#define log_warn(event, ...) log_at(LOG_WARN, event, __VA_ARGS__)
#define log_info(event, ...) log_at(LOG_INFO, event, __VA_ARGS__)
#define log_debug(event, ...) log_at(LOG_DEBUG, event, __VA_ARGS__)

/* Rate limit for an error that may repeat (a server is down): the first one is logged at once,
 * later ones at growing intervals, and log_recovered() logs one line at the end if there was any.
 * The zero value means that there was none yet. */
struct complaint {
    int64_t next_us;
    int64_t distance_us;
    int64_t count;
    int64_t last_us; /* when the last one occurred, logged or not */
};

/* counts one; true if it is to be logged */
bool complaint_due(struct complaint *c, int64_t now_us);
int64_t complaint_end(struct complaint *c); /* resets it; returns how many there were */
/* True if the last one occurred at least `quiet_us` ago. For errors without an event that ends
 * them, such as a runner that doesn't die. */
bool complaint_is_quiet(const struct complaint *c, int64_t now_us, int64_t quiet_us);
/* Resets it, and if there was any, logs one line: event=… after=N. */
void log_recovered(const char *event, struct complaint *c);

#endif
