/* SPDX-License-Identifier: Apache-2.0 */
#include "redis/stale.h"

#include <inttypes.h>
#include <stdio.h>

void stale_add(struct stale *s, const struct redis_server_info *info)
{
    if (info->client_id == 0 || s->count == STALE_MAX) {
        s->is_incomplete = true;
        return;
    }
    s->ids[s->count++] = info->client_id;
}

void stale_judge(struct stale *s, struct redis_server_info *info, bool may_kill)
{
    if (strcmp(s->run_id, info->run_id) != 0) {
        *s = (struct stale){0};
        memcpy(s->run_id, info->run_id, sizeof s->run_id);
    }
    info->can_kill = may_kill && info->client_id != 0 && !s->is_incomplete;
}

enum status stale_append(const struct stale *s, struct buf *out, struct err *err)
{
    for (size_t i = 0; i < s->count; i++) {
        char id[24];
        int len = snprintf(id, sizeof id, "%" PRId64, s->ids[i]);
        const struct redis_arg words[] = {{"CLIENT", 6}, {"KILL", 4}, {"ID", 2}, {id, (size_t)len}};
        enum status st = redis_command(out, words, ARRAY_COUNT(words), err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}
