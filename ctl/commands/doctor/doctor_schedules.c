/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor: schedules that fail, that no scheduler fires, or that wait too long. */
#include "ctl/commands/doctor/doctor.h"
#include "ctl/core/ctl.h"
#include "sql/queries.h"

enum status doctor_schedules(struct report *r, struct admin *a, struct err *err)
{
    enum { SCHEDULES, FAILING, EXAMPLE, WAITING, BEYOND, BEYOND_EXAMPLE };
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_DOCTOR_SCHEDULES, NULL, &rows, err);
    if (st != STATUS_OK || admin_row_count(rows) != 1) {
        return st;
    }
    long long failing = (long long)doctor_number(rows, 0, FAILING);
    long long waiting = (long long)doctor_number(rows, 0, WAITING);
    long long beyond = (long long)doctor_number(rows, 0, BEYOND);
    if (failing > 0) {
        report_say(r, HEALTH_WARN, "schedules", "see claimctl schedules list",
                   "%lld can't make their jobs, such as %.200s", failing,
                   admin_value(rows, 0, EXAMPLE));
    }
    if (waiting > 0) {
        report_say(r, HEALTH_FAIL, "schedules",
                   "check that a scheduler leads; if one does, its log says why it fires nothing",
                   "%lld have been due for more than 60 s", waiting);
    }
    if (beyond > 0) {
        report_say(r, HEALTH_WARN, "schedules",
                   "the leading scheduler mends this within a minute or so; if it persists, see "
                   "its log, or pause and resume them",
                   "%lld wait beyond their next tick, such as %.64s", beyond,
                   admin_value(rows, 0, BEYOND_EXAMPLE));
    }
    if (failing == 0 && waiting == 0 && beyond == 0) {
        report_say(r, HEALTH_OK, "schedules", NULL, "%lld, none fails",
                   (long long)doctor_number(rows, 0, SCHEDULES));
    }
    return STATUS_OK;
}
