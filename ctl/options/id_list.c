/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/options/id_list.h"

enum status id_list_add(struct buf *list, int64_t id, struct err *err)
{
    return buf_printf(list, err, "%s%lld", list->len > 0 ? "," : "{", (long long)id);
}

enum status id_list_end(struct buf *list, struct err *err)
{
    return buf_append_text(list, list->len > 0 ? "}" : "{}", err);
}
