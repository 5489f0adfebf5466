/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor: foreign triggers on claimd's tables that have no search_path. */
#include "ctl/commands/doctor/doctor.h"
#include "ctl/core/ctl.h"
#include "sql/queries.h"

enum status doctor_triggers(struct report *r, struct admin *a, struct err *err)
{
    enum { TRIGGER, TABLE_NAME, FUNCTION };
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_TRIGGERS, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (int i = 0; i < admin_row_count(rows); i++) {
        report_say(r, HEALTH_WARN, "triggers",
                   "ALTER FUNCTION … SET search_path = pg_catalog, and the schemas that it needs",
                   "trigger %s of table claimd.%s calls %s, which has no search_path of its own: "
                   "within claimd it finds PostgreSQL's names only",
                   admin_value(rows, i, TRIGGER), admin_value(rows, i, TABLE_NAME),
                   admin_value(rows, i, FUNCTION));
    }
    return STATUS_OK;
}
