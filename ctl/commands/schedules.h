/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the verbs of claimctl schedules and by claimctl apply. */
#ifndef CLAIMD_CTL_SCHEDULES_H
#define CLAIMD_CTL_SCHEDULES_H

#include "base/buf.h"
#include "ctl/commands/file_apply.h"
#include "ctl/core/ctl.h"

#include <jansson.h>

/* The fields of a schedule, in the order of sql/queries/admin_schedule_set.sql. */
enum schedule_field {
    SCHEDULE_NAME,
    SCHEDULE_KIND,
    SCHEDULE_CRON,
    SCHEDULE_ARGS,
    SCHEDULE_QUEUE,
    SCHEDULE_PRIORITY,
    SCHEDULE_ZONE,
    SCHEDULE_MAX_ATTEMPTS,
    SCHEDULE_TIMEOUT,
    SCHEDULE_TAGS,
    SCHEDULE_METADATA,
    SCHEDULE_MISSED,
    SCHEDULE_MISSED_WINDOW,
    SCHEDULE_OVERLAP,
    SCHEDULE_EXCLUSIVE_KEY,
    SCHEDULE_SHARE_KEY,
    SCHEDULE_BACKOFF,
    SCHEDULE_UNIQUE_KEY,
    SCHEDULE_UNIQUE_BY,
    SCHEDULE_UNIQUE_FOR,
    SCHEDULE_UNIQUE_STATES,
    SCHEDULE_ON_CONFLICT,
    SCHEDULE_JITTER,
    SCHEDULE_SECOND_KEY,
    SCHEDULE_GRACE,
    SCHEDULE_FIELDS
};

#define SCHEDULE_INTERVAL_MAX 48
#define SCHEDULE_JITTER_MAX_US (INT64_C(86400) * 1000000)

/* True if the field is a duration, such as "90s". */
bool schedule_is_interval(enum schedule_field field);

/* Converts a duration to an interval of PostgreSQL. A refusal calls it `name`, the option or
 * key. */
enum status schedule_interval(enum schedule_field field, const char *name, const char *text,
                              char ret_text[SCHEDULE_INTERVAL_MAX], struct err *err) MUST_USE;

/* ---- the file of schedules apply: pure ---- */

/* Checks the text of a file: duplicate and unknown keys, types, names that occur twice, durations.
 * INVALID names the place. Leaves to the schema what it checks better (cron, zones, ranges). */
enum status schedule_file_check(const char *text, size_t len, struct err *err) MUST_USE;

/* As above, for its list alone. */
enum status schedule_list_check(const json_t *list, struct err *err) MUST_USE;

/* Returns the key of a field in a file: "max_attempts". */
const char *schedule_field_key(enum schedule_field field);

/* ---- the schedules of a file, in the transaction of file_apply() ---- */

/* A schedule before and after, as rows of admin_schedule_values.sql. */
struct schedule_change {
    const char *name;
    const char *next_at;
    const struct admin_rows *before; /* NULL: it is new */
    const struct admin_rows *after;  /* NULL: --prune has deleted it */
};
typedef enum status schedule_seen(struct file_apply *p, const struct schedule_change *c,
                                  struct err *err);

/* Writes the schedules, if the file has a list of them. */
enum status schedules_write(struct file_apply *p, schedule_seen *seen, struct err *err) MUST_USE;

/* True if a field of a schedule that existed before and after has changed. A field without a value
 * is "none". */
bool schedule_differs(const struct schedule_change *c, enum schedule_field field,
                      const char **ret_was, const char **ret_is);

#endif
