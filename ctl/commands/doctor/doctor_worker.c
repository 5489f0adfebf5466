/* SPDX-License-Identifier: Apache-2.0
 *
 * `claimctl doctor --worker`: has this worker a fresh heartbeat? One line and exit code 0 or 1, for
 * the health check of a container or a load balancer. Asks only PostgreSQL. */
#include "ctl/commands/doctor/doctor.h"
#include "ctl/core/ctl.h"
#include "sql/queries.h"

enum { ID, HOST, PID, STATE, BEAT_AGE };

static void judge(struct report *r, const struct admin_rows *rows, const char *who)
{
    if (admin_row_count(rows) == 0) {
        report_say(r, HEALTH_FAIL, "worker",
                   "start claimd-worker there; all: claimctl workers --all",
                   "no worker has the host or id '%s'", who);
        return;
    }
    const char *state = admin_value(rows, 0, STATE);
    bool is_well = strcmp(state, "live") == 0 || strcmp(state, "quiet") == 0;
    report_say(r, is_well ? HEALTH_OK : HEALTH_FAIL, "worker",
               "see its log; it claims nothing now, and its jobs are rescued",
               "%s (pid %s) is %s, last heartbeat %s s ago", admin_value(rows, 0, HOST),
               admin_value(rows, 0, PID), state, admin_value(rows, 0, BEAT_AGE));
}

void doctor_worker(struct report *r, const struct config *config, const char *who)
{
    struct err err = {0};
    auto_admin struct admin *a = NULL;
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = ctl_connect(config, false, &a, &err);
    if (st == STATUS_OK) {
        st = admin_query(a, &SQL_ADMIN_WORKER_HEARTBEAT, &who, &rows, &err);
    }
    if (st != STATUS_OK) {
        report_say(r, HEALTH_FAIL, "worker",
                   "check that PostgreSQL runs, and check postgres.conninfo", "not known: %s",
                   err.msg);
        return;
    }
    judge(r, rows, who);
}
