/* SPDX-License-Identifier: Apache-2.0
 *
 * Generates docs/config.md from the table of options. */
#ifndef CLAIMD_CONFIG_MANUAL_H
#define CLAIMD_CONFIG_MANUAL_H

#include "base/buf.h"

enum status config_manual(struct buf *out, struct err *err) MUST_USE;

#endif
