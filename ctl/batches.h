/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLAIMD_CTL_BATCHES_H
#define CLAIMD_CTL_BATCHES_H

#include "ctl/ctl.h"

/* NOT_FOUND: there is no batch of this id. INVALID: it is none. */
enum status batches_find(struct ctl *ctl, const char *id, struct err *err) MUST_USE;

#endif
