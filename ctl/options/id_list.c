/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/options/id_list.h"

void id_list_add(struct text *list, int64_t id)
{
    text_put(list, "%s%lld", list->buf.len > 0 ? "," : "{", (long long)id);
}

void id_list_end(struct text *list)
{
    text_put(list, list->buf.len > 0 ? "}" : "{}");
}
