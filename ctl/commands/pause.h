/* SPDX-License-Identifier: Apache-2.0
 *
 * Pausing and resuming what has a name: queues and kinds. */
#ifndef CLAIMD_CTL_PAUSE_H
#define CLAIMD_CTL_PAUSE_H

#include "ctl/core/ctl.h"

/* `noun` is "queue" or "kind"; statement: $1 = name, $2 = pause it; true = something changed. */
enum status pause_set(struct ctl *ctl, const char *noun, const struct pg_statement *statement,
                      const char *name, bool is_paused, struct err *err) MUST_USE;

/* All of them: by a statement that gives the names of those that it changed. */
enum status pause_set_all(struct ctl *ctl, const char *noun, const struct pg_statement *statement,
                          bool is_paused, struct err *err) MUST_USE;

#endif
