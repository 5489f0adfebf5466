/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of `claimctl doctor`: each adds lines to one report, and none stops the others. */
#ifndef CLAIMD_CTL_DOCTOR_H
#define CLAIMD_CTL_DOCTOR_H

#include "config/config.h"
#include "ctl/core/table_text.h"
#include "store/admin.h"

enum health { HEALTH_OK, HEALTH_WARN, HEALTH_FAIL };

struct report {
    struct table table;
    int64_t t_max_us;      /* of the cluster's row; 0 = unknown */
    char lock_nodes[4096]; /* its fingerprint; "" = none */
    int64_t lanes;         /* that the leader knows */
    int failures;
    bool is_full; /* a line could not be added: out of memory */
};

/* `action`: what to do about it; only where all is well it may be NULL. */
void report_say(struct report *r, enum health health, const char *what, const char *action,
                const char *format, ...) PRINTF_LIKE(5, 6);

/* A row of a result as a number; 0 for NULL. */
int64_t doctor_number(const struct admin_rows *rows, int row, int column);

/* What daemons said of themselves, PostgreSQL's clock and disk, jobs without hints. */
enum status doctor_daemons(struct report *r, const struct config *config, struct admin *a,
                           struct err *err) MUST_USE;
/* Settings by which PostgreSQL acknowledges what it may lose. */
enum status doctor_commit(struct report *r, struct admin *a, struct err *err) MUST_USE;
/* Schedules that fail, that no scheduler fires, or that wait beyond their next tick. */
enum status doctor_schedules(struct report *r, struct admin *a, struct err *err) MUST_USE;
/* Triggers of others on claimd's tables that would find their tables by the session's path. */
enum status doctor_triggers(struct report *r, struct admin *a, struct err *err) MUST_USE;
/* SQL functions of another release, and functions edited by hand. */
enum status doctor_functions(struct report *r, struct admin *a, struct err *err) MUST_USE;
void doctor_redis(struct report *r, const struct config *config);
void doctor_plugins(struct report *r, const struct config *config);
void doctor_worker(struct report *r, const struct config *config, const char *who);

#endif
