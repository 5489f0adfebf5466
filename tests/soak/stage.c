/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/stage.h"

#include "soak/hosts.h"
#include "soak/programs.h"
#include "soak/script.h"

#include <stdio.h>
#include <stdlib.h>

static const struct world_plan plan = {
    .is_bare = true,
    .log_level = "warn",
    .queues = {"default", "soak_five", "soak_rate", "soak_long", "soak_edit", "soak_amend",
               "soak_cancel"},
    .plugins = {{.folder = "plugins", .path = SOAK_PLUGIN_DIR "/soak.so"},
                {.folder = "more", .path = SOAK_PLUGIN_DIR "/soak.so"},
                {.folder = "more", .path = SOAK_PLUGIN_DIR "/soak_rare.so"},
                {.folder = "more", .path = SOAK_EXAMPLE_DIR "/inventory.so"},
                {.folder = "programs", .path = SOAK_SOURCE_DIR "/programs/handlers.py"},
                {.folder = "programs", .path = SOAK_SDK}}};

/* Sets two variables that handlers inherit: where the ledger is written, and how the example
 * connects. */
static enum status set_variables(const struct world *w, struct err *err)
{
    char folder[SERVER_PATH_MAX + 64];
    char path[SERVER_PATH_MAX + 128];
    folder_at(&w->folder, "ledger", folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/.pg_service.conf", folder);
    if (setenv("TMPDIR", folder, 1) != 0 || setenv("HOME", folder, 1) != 0) {
        return err_fail_sys(err, STATUS_NOMEM, errno, "set TMPDIR and HOME");
    }
    FILE *f = fopen(path, "we");
    if (f == NULL) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
    }
    int n = fprintf(f, "[inventory]\nhost=%s/pg0\ndbname=claimd\nuser=inventory\n", w->dir);
    return fclose(f) == 0 && n > 0 ? STATUS_OK
                                   : err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
}

enum status stage_open(struct world *w, const struct options *kit, struct err *err)
{
    enum status st = world_open(w, kit, &plan, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = set_variables(w, err);
    if (st != STATUS_OK) {
        return st;
    }
    hosts_equip(w);
    st = script_run(&w->sql, "../../plugins/inventory.sql", NULL, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = script_run(&w->sql, "schema.sql", NULL, err);
    if (st != STATUS_OK || !kit->has_programs) {
        return st;
    }
    return programs_set(w, err);
}
