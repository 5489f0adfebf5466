/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/programs.h"

#include "chaos/handler_file.h"
#include "soak/script.h"

static json_t *kinds_json(const char *plain, const char *flaky)
{
    json_t *kind = json_pack("{s:i, s:i, s:s}", "max_attempts", HANDLER_FILE_MANY, "max_crashes",
                             HANDLER_FILE_MANY, "backoff", "exponential:100ms:2s~20%");
    return json_pack("{s:O, s:o}", plain, kind, flaky, kind);
}

enum status programs_set(struct world *w, struct err *err)
{
    enum status st = handler_file_write(w->dir, "serve", kinds_json("p_plain", "p_flaky"), err);
    if (st == STATUS_OK) {
        st = handler_file_write(w->dir, "once", kinds_json("o_plain", "o_flaky"), err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return script_run(&w->sql, "programs.sql", NULL, err);
}

enum status programs_count(struct world *w, int64_t *ret_serve, int64_t *ret_once, struct err *err)
{
    enum status st = session_i64(&w->sql, ret_serve, err,
                                 "SELECT count(*) FROM soak.job WHERE kind LIKE 'p\\_%%'");
    if (st != STATUS_OK) {
        return st;
    }
    return session_i64(&w->sql, ret_once, err,
                       "SELECT count(*) FROM soak.job WHERE kind LIKE 'o\\_%%'");
}
