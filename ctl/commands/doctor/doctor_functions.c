/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor: SQL functions of another release, or changed by hand. */
#include "ctl/commands/doctor/doctor.h"
#include "ctl/core/ctl.h"
#include "sql/queries.h"
#include "store/functions.h"

enum status doctor_functions(struct report *r, struct admin *a, struct err *err)
{
    enum { FUNCTION, FILE_NAME, IS_THERE };
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_DOCTOR_FUNCTIONS, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    bool differ = false;
    st = functions_differ(a, &differ, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (differ) {
        report_say(r, HEALTH_WARN, "functions", "claimctl db migrate, of the newest release",
                   "the SQL functions that were loaded are not those of this claimctl");
    }
    for (int i = 0; i < admin_row_count(rows); i++) {
        bool is_there = admin_value(rows, i, IS_THERE)[0] == 't';
        report_say(r, HEALTH_WARN, "functions", "claimctl db migrate --functions",
                   "claimd.%s was %s by hand since it was loaded from %s.sql",
                   admin_value(rows, i, FUNCTION), is_there ? "changed" : "dropped",
                   admin_value(rows, i, FILE_NAME));
    }
    return STATUS_OK;
}
