/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLAIMD_CTL_BATCHES_H
#define CLAIMD_CTL_BATCHES_H

#include "ctl/core/ctl.h"

/* INVALID: no id of a batch. */
enum status batches_check_id(const char *text, struct err *err) MUST_USE;

/* NOT_FOUND: there is no batch of this id. */
enum status batches_find(struct admin *a, const char *id, struct err *err) MUST_USE;

#endif
