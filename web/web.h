/* SPDX-License-Identifier: Apache-2.0
 *
 * claimd-web: the page and the API over PostgreSQL. */
#ifndef CLAIMD_WEB_WEB_H
#define CLAIMD_WEB_WEB_H

#include "config/config.h"

/* Runs until SIGTERM or SIGINT; SIGHUP reads the tokens and the log settings again. Returns the
 * exit code. */
int web_main(const struct config *config);

#endif
