/* SPDX-License-Identifier: Apache-2.0 */
#include "support/pg_template.h"

#include "cluster/pg_data.h"

#include <stdio.h>

enum status pg_template_start(const char *dir, const char *name, const char *const *env,
                              pg_template_make *make, void *ctx, struct pg_server *ret,
                              struct err *err)
{
    char data[SERVER_PATH_MAX + 16];
    (void)snprintf(data, sizeof data, "%s/data", dir);
    enum status st = dir_ensure(dir, 0755, err);
    if (st != STATUS_OK) {
        return st;
    }
    enum status kept = name != NULL ? pg_data_copy(data, name, err) : STATUS_NOT_FOUND;
    if (kept != STATUS_OK && kept != STATUS_NOT_FOUND) {
        return kept;
    }
    st = pg_server_start_env(dir, false, env, ret, err);
    if (st != STATUS_OK || kept == STATUS_OK) {
        return st;
    }
    st = make(ctx, err);
    if (st != STATUS_OK || name == NULL) {
        return st;
    }
    pg_server_stop(ret);
    st = pg_data_keep(data, name, err);
    return st == STATUS_OK ? pg_server_restart(ret, err) : st;
}
