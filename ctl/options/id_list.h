/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids as an array literal of PostgreSQL, put one by one into a text that was empty. */
#ifndef CLAIMD_CTL_ID_LIST_H
#define CLAIMD_CTL_ID_LIST_H

#include "base/text.h"

void id_list_add(struct text *list, int64_t id);
void id_list_end(struct text *list);

#endif
