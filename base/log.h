/* SPDX-License-Identifier: Apache-2.0
 *
 * One line per event on stderr, logfmt: `ts=… level=info event=job_finished job=42 …`, or the same
 * fields as a JSON object. Event names are API: the list is in docs/operations.md and tests wait
 * for them. Values are quoted and escaped where needed and are valid UTF-8, lines are bounded (the
 * value that is too long is cut), and lines of several processes are not mixed. Arguments of jobs,
 * tokens and passwords are never logged.
 *
 *     log_info("job_finished", LOG_I64("job", id), LOG_TEXT("outcome", "done")); */
#ifndef CLAIMD_BASE_LOG_H
#define CLAIMD_BASE_LOG_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_LOGFMT, LOG_JSON };

struct log_field {
    const char *name;
    const char *text; /* NULL: the number counts */
    int64_t number;
};

/* How many lines of this level there were so far, and how many of all lines were dropped. */
uint64_t log_count(enum log_level level);
uint64_t log_dropped(void);

#define LOG_TEXT(field_name, value) ((struct log_field){.name = (field_name), .text = (value)})
#define LOG_I64(field_name, value) \
    ((struct log_field){.name = (field_name), .number = (int64_t)(value)})

/* Process-wide, set once in main(). `program` is put on every line and must outlive it. */
void log_init(const char *program, enum log_level max_level);
/* Applies a configuration, at the start (before that: logfmt) and again when it is reloaded. */
void log_set(enum log_level max_level, enum log_format format);
enum log_format log_format(void);
/* The descriptor instead of stderr, before log_start(). */
void log_to(int fd);

/* Between these two calls, logging never waits for the reader (fault.F5): lines that the reader
 * does not take yet are kept in a ring of 256 KiB, the last quarter of which is for warnings and
 * errors. A line that has no room is dropped, counted, and reported by `event=log_dropped` once the
 * reader goes on. For daemons; without it, a line is written before log_write() returns, however
 * long that takes. log_stop() waits at most a second for the ring to be written. */
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

/* A complaint that may repeat (a server is down): the first is logged at once, later ones at
 * growing intervals, and log_recovered() logs one line at the end if there was any. Zero value =
 * none yet. */
struct complaint {
    int64_t next_us;
    int64_t distance_us;
    int64_t count;
    int64_t last_us; /* of the last one, logged or not */
};

bool complaint_due(struct complaint *c, int64_t now_us); /* true: log it now */
int64_t complaint_end(struct complaint *c);              /* how many there were; 0 = log nothing */
/* Was the last one at least `quiet_us` ago? For complaints that no success ends: a runner that
 * doesn't die. */
bool complaint_is_quiet(const struct complaint *c, int64_t now_us, int64_t quiet_us);
/* Ends it; if there was any, logs one line: event=… after=N. */
void log_recovered(const char *event, struct complaint *c);

#endif
