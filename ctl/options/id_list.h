/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids as an array literal of PostgreSQL, built one by one in a buffer that was empty. */
#ifndef CLAIMD_CTL_ID_LIST_H
#define CLAIMD_CTL_ID_LIST_H

#include "base/buf.h"

#include <stdint.h>

enum status id_list_add(struct buf *list, int64_t id, struct err *err) MUST_USE;
enum status id_list_end(struct buf *list, struct err *err) MUST_USE;

#endif
