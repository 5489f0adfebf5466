/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl owners: do jobs belong to the roles that make them? */
#include "ctl/core/ctl.h"
#include "ctl/core/table.h"
#include "sql/queries.h"

static enum status check(const char *word, struct err *err)
{
    return strcmp(word, "on") == 0 || strcmp(word, "off") == 0
               ? STATUS_OK
               : err_fail(err, STATUS_INVALID, "'%.40s' is not allowed; allowed: on, off", word);
}

static enum status set(struct admin *a, const char *word, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    return ctl_written(admin_query(a, &SQL_ADMIN_OWNERS_SET, &word, &rows, err), err);
}

enum status owners(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {{"owners", CELL_TEXT}};
    auto_admin struct admin *a = NULL;
    auto_table struct table table = TABLE("cluster", columns);
    const struct table *const tables[] = {&table};
    table.is_record = true;
    const char *word = args->word_count > 0 ? args->words[0] : NULL;
    enum status st = word == NULL ? STATUS_OK : check(word, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = ctl_session(ctl, &a, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = word == NULL ? STATUS_OK : set(a, word, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = table_query(&table, a, &SQL_ADMIN_OWNERS, NULL, err);
    if (st != STATUS_OK) {
        return st;
    }
    return tables_print(tables, 1, ctl->is_json, ctl->out, err);
}
