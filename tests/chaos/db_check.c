/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/db_check.h"

#include "base/buf.h"
#include "base/clock.h"
#include "cluster/child.h"

#include <stdio.h>

#define VERIFY_US (120 * US_PER_S)
#define OUTPUT_MAX ((size_t)16 << 20)

static void export_one(struct journal *out, const json_t *row)
{
    json_t *job = json_object_get(row, "job");
    journal_write(out, json_pack("{s:O, s:i, s:O, s:O*}", "name", json_object_get(row, "check"),
                                 "rows", 1, "detail", json_object_get(row, "detail"), "job",
                                 json_is_integer(job) ? job : NULL));
}

/* Exit 0: nothing found; 1: violations; both say so in JSON. */
enum status db_check_export(struct world *w, struct err *err)
{
    char claimctl[SERVER_PATH_MAX + 16];
    int code = -1;
    size_t i = 0;
    const json_t *row = NULL;
    struct journal out = {.fd = -1};
    autobuf struct buf text = BUF_INIT(OUTPUT_MAX);
    (void)snprintf(claimctl, sizeof claimctl, "%s/claimctl", w->bin_dir);
    const char *const argv[] = {claimctl, "--config", w->config_path, "--json", "db",
                                "verify", NULL};
    enum status st = program_run(argv, NULL, VERIFY_US, &text, &code, err);
    /* What it says on stderr follows its JSON. */
    json_t *told = st == STATUS_OK && text.len > 0
                       ? json_loadb(buf_at(&text), text.len, JSON_DISABLE_EOF_CHECK, NULL)
                       : NULL;
    const json_t *found = json_object_get(told, "violations");
    if (st == STATUS_OK && !json_is_array(found)) {
        st = err_fail(err, STATUS_UNAVAILABLE, "claimctl db verify: exit %d: %.300s", code,
                      text.len > 0 ? buf_at(&text) : "");
    }
    st = st == STATUS_OK ? journal_open(&w->folder, "check.jsonl", &out, err) : st;
    if (st == STATUS_OK) {
        json_array_foreach(found, i, row)
        {
            export_one(&out, row);
        }
        journal_close(&out);
    }
    json_decref(told);
    return st;
}
