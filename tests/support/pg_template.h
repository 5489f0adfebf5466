/* SPDX-License-Identifier: Apache-2.0
 *
 * Servers with data that are made once for all tests: making them takes longer than most tests. */
#ifndef CLAIMD_TESTS_SUPPORT_PG_TEMPLATE_H
#define CLAIMD_TESTS_SUPPORT_PG_TEMPLATE_H

#include "cluster/servers.h"

/* Fills the new server that pg_template_start() has started; it may leave no connections. */
typedef enum status pg_template_make(void *ctx, struct err *err);

/* Starts a server in `dir` with the data that were kept under `name`. If there are none yet, make()
 * makes them; then they are kept, as pg_data_keep() describes. If name is NULL, nothing is kept.
 * `env`: of the server, as for pg_server_start_env(). */
enum status pg_template_start(const char *dir, const char *name, const char *const *env,
                              pg_template_make *make, void *ctx, struct pg_server *ret,
                              struct err *err) MUST_USE;

#endif
