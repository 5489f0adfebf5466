/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor: do commits wait for the disk, and for a synchronous standby? */
#include "ctl/commands/doctor/doctor.h"
#include "ctl/core/ctl.h"
#include "sql/queries.h"

enum status doctor_commit(struct report *r, struct admin *a, struct err *err)
{
    enum { PLACE, VALUE, HAS_STANDBYS };
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_DOCTOR_COMMIT, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    int wrong = 0;
    for (int i = 0; i < admin_row_count(rows); i++) {
        const char *value = admin_value(rows, i, VALUE);
        bool has_standbys = strcmp(admin_value(rows, i, HAS_STANDBYS), "t") == 0;
        bool is_off = strcmp(value, "off") == 0;
        if (is_off || (has_standbys && strcmp(value, "local") == 0)) {
            wrong++;
            report_say(r, HEALTH_FAIL, "commits",
                       "set synchronous_commit to on there (ALTER DATABASE, ALTER ROLE or ALTER "
                       "SYSTEM … RESET synchronous_commit), and reconnect",
                       "synchronous_commit is %s for %s: %s loses what was acknowledged", value,
                       admin_value(rows, i, PLACE),
                       is_off ? "a crash of PostgreSQL" : "a failover to a synchronous standby");
        }
    }
    if (wrong == 0) {
        report_say(r, HEALTH_OK, "commits", NULL, "they wait for the disk");
    }
    return STATUS_OK;
}
