/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/stage.h"

#include "soak/hosts.h"
#include "soak/script.h"

#include <stdlib.h>

static const struct world_plan plan = {
    .is_bare = true,
    .log_level = "warn",
    .queues = {"default", "soak_five", "soak_rate", "soak_long", "soak_edit", "soak_cancel"},
    .plugins = {{.folder = "plugins", .path = SOAK_PLUGIN_DIR "/soak.so"},
                {.folder = "more", .path = SOAK_PLUGIN_DIR "/soak.so"},
                {.folder = "more", .path = SOAK_PLUGIN_DIR "/soak_rare.so"}}};

enum status stage_open(struct world *w, const struct options *kit, struct err *err)
{
    char ledger[SERVER_PATH_MAX + 64];
    enum status st = world_open(w, kit, &plan, err);
    if (st != STATUS_OK) {
        return st;
    }
    folder_at(&w->folder, "ledger", ledger, sizeof ledger);
    if (setenv("TMPDIR", ledger, 1) != 0) { /* handlers have it from us */
        return err_fail_sys(err, STATUS_NOMEM, errno, "set TMPDIR");
    }
    hosts_equip(w);
    return script_run(&w->sql, "schema.sql", NULL, err);
}
