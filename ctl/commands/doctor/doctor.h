/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of `claimctl doctor`. Each adds lines to one report, and none stops the others. */
#ifndef CLAIMD_CTL_DOCTOR_H
#define CLAIMD_CTL_DOCTOR_H

#include "config/config.h"
#include "ctl/core/table_text.h"
#include "store/admin.h"

enum health { HEALTH_OK, HEALTH_WARN, HEALTH_FAIL };

struct report {
    struct table table;
    int64_t t_max_us;      /* from the row of the cluster; 0 = unknown */
    char lock_nodes[4096]; /* list of lock nodes that the cluster was made with; "" = none */
    int64_t lanes;         /* number of lanes that the leader knows */
    int failures;
    bool is_full;     /* out of memory: a line could not be added */
    bool is_frequent; /* set by the caller: leave out the check that writes 8 MB */
};

#define REPORT_COLUMNS 4
extern const struct table_column report_columns[REPORT_COLUMNS];
#define REPORT                                                                                  \
    {                                                                                           \
        .table = {.name = "checks", .columns = report_columns, .column_count = REPORT_COLUMNS } \
    }

/* Adds a line. `action` says what to do about it; may be NULL only if all is well. */
void report_say(struct report *r, enum health health, const char *what, const char *action,
                const char *format, ...) PRINTF_LIKE(5, 6);

/* Returns a value of a result as a number; 0 for NULL. */
int64_t doctor_number(const struct admin_rows *rows, int row, int column);

/* Checks the status reports of daemons, PostgreSQL's clock and disk, and jobs without hints. */
enum status doctor_daemons(struct report *r, const struct config *config, struct admin *a,
                           struct err *err) MUST_USE;
/* Checks settings that make PostgreSQL acknowledge commits which it may lose. */
enum status doctor_commit(struct report *r, struct admin *a, struct err *err) MUST_USE;
/* Checks for schedules that fail, that no scheduler fires, or that wait beyond their next tick. */
enum status doctor_schedules(struct report *r, struct admin *a, struct err *err) MUST_USE;
/* Checks foreign triggers on claimd's tables that would find their tables by the session's
 * search_path. */
enum status doctor_triggers(struct report *r, struct admin *a, struct err *err) MUST_USE;
/* Checks for SQL functions of another release, and functions edited by hand. */
enum status doctor_functions(struct report *r, struct admin *a, struct err *err) MUST_USE;
/* All checks that don't concern this host: of PostgreSQL, what is in it, and Redis. */
void doctor_servers(struct report *r, const struct config *config);
void doctor_redis(struct report *r, const struct config *config);

/* Asks each lock node of the configuration and adds a row for it: whether it votes, how fast it
 * answers, and its clock against this host's. `t_max_us`: as in struct report. No rows if none is
 * configured. Blocks for 0.3 s, and at most 4 s. NOMEM. */
#define LOCK_NODE_COLUMNS 8
extern const struct table_column lock_node_columns[LOCK_NODE_COLUMNS];
enum status doctor_lock_nodes(struct table *ret, const struct config *config, int64_t t_max_us,
                              struct err *err) MUST_USE;

void doctor_plugins(struct report *r, const struct config *config);
void doctor_worker(struct report *r, const struct config *config, const char *who);

#endif
