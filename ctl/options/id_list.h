/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds an array literal of PostgreSQL from ids, one by one, in an empty text. */
#ifndef CLAIMD_CTL_ID_LIST_H
#define CLAIMD_CTL_ID_LIST_H

#include "base/text.h"

void id_list_add(struct text *list, int64_t id);
void id_list_end(struct text *list);

#endif
