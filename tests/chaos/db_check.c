/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/db_check.h"

#include "base/buf.h"

#define OUTPUT_MAX ((size_t)16 << 20)

static void export_one(struct journal *out, const json_t *row)
{
    json_t *job = json_object_get(row, "job");
    journal_write(out, json_pack("{s:O, s:i, s:O, s:O*}", "name", json_object_get(row, "check"),
                                 "rows", 1, "detail", json_object_get(row, "detail"), "job",
                                 json_is_integer(job) ? job : NULL));
}

static enum status export_all(struct world *w, const json_t *found, struct err *err)
{
    size_t i = 0;
    const json_t *row = NULL;
    struct journal out;
    enum status st = journal_open(&w->folder, "check.jsonl", &out, err);
    if (st != STATUS_OK) {
        return st;
    }
    json_array_foreach(found, i, row)
    {
        export_one(&out, row);
    }
    journal_close(&out);
    return STATUS_OK;
}

/* claimctl exits with 0 if it found nothing, and with 1 for violations; in both cases it prints
 * JSON. */
enum status db_check_export(struct world *w, struct err *err)
{
    static const char *const words[] = {"--json", "db", "verify", NULL};
    int code = -1;
    autobuf struct buf text = BUF_INIT(OUTPUT_MAX);
    enum status st = world_claimctl(w, words, &text, &code, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *bytes = text.len > 0 ? buf_at(&text) : "";
    /* The output of stderr follows the JSON. */
    json_t *told = json_loadb(bytes, text.len, JSON_DISABLE_EOF_CHECK, NULL);
    const json_t *found = json_object_get(told, "violations");
    if (json_is_array(found)) {
        st = export_all(w, found, err);
    } else {
        st = err_fail(err, STATUS_UNAVAILABLE, "claimctl db verify: exit %d: %.300s", code, bytes);
    }
    json_decref(told);
    return st;
}
