/* SPDX-License-Identifier: Apache-2.0
 *
 * What the verbs of claimctl schedules share, and claimctl apply. */
#ifndef CLAIMD_CTL_SCHEDULES_H
#define CLAIMD_CTL_SCHEDULES_H

#include "base/buf.h"
#include "ctl/commands/file_apply.h"
#include "ctl/core/ctl.h"

#include <jansson.h>

/* What can be set of a schedule, in the order of sql/queries/admin_schedule_set.sql. */
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

/* Is it a time, such as "90s"? */
bool schedule_is_interval(enum schedule_field field);

/* The text of a time to what PostgreSQL's interval takes. `name`: of the option or key, for the
 * refusal. */
enum status schedule_interval(enum schedule_field field, const char *name, const char *text,
                              char ret_text[SCHEDULE_INTERVAL_MAX], struct err *err) MUST_USE;

/* ---- the file of schedules apply: pure ---- */

/* Checks the text of a file: duplicate and unknown keys, types, names that occur twice, durations.
 * INVALID names the place. What the schema can check better (cron, zones, ranges) it does not. */
enum status schedule_file_check(const char *text, size_t len, struct err *err) MUST_USE;

/* The same of its list alone. */
enum status schedule_list_check(const json_t *list, struct err *err) MUST_USE;

/* The key of a field in a file: "max_attempts". */
const char *schedule_field_key(enum schedule_field field);

/* ---- the schedules of a file, in the transaction of file_apply() ---- */

/* As it was and as it is, by admin_schedule_values.sql. */
struct schedule_change {
    const char *name;
    const char *next_at;
    const struct admin_rows *before; /* NULL: it is new */
    const struct admin_rows *after;  /* NULL: --prune has deleted it */
};
typedef enum status schedule_seen(struct file_apply *p, const struct schedule_change *c,
                                  struct err *err);

/* Where the file has a list of schedules. */
enum status schedules_write(struct file_apply *p, schedule_seen *seen, struct err *err) MUST_USE;

/* Of one that was there, and is. What has no value is "none". */
bool schedule_differs(const struct schedule_change *c, enum schedule_field field,
                      const char **ret_was, const char **ret_is);

#endif
