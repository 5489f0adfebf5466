/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the history's days ahead and drops old ones, and vacuums `job`: on a connection of its own,
 * because these statements may take long, and only while this scheduler leads. */
#ifndef CLAIMD_SCHEDULER_HISTORY_H
#define CLAIMD_SCHEDULER_HISTORY_H

#include "store/pg/pg.h"

#define HISTORY_DAYS_AHEAD 14

struct history;

struct history_options {
    uv_loop_t *loop;
    const char *conninfo; /* copied */
    int64_t timeout_us;   /* of connecting */
    int keep_days;
    int64_t partitions_every_us; /* between two checks of the days */
    int64_t vacuum_every_us;     /* … of the dead rows */
};

/* Connects and begins at once. */
enum status history_start(const struct history_options *options, struct history **ret,
                          struct err *err) MUST_USE;
void history_set_keep(struct history *h, int keep_days); /* takes effect at once */
/* What is under way is cancelled with its connection: an interrupted detach is finished by the next
 * leader. Accepts NULL. */
void history_stop(struct history *h);

#endif
