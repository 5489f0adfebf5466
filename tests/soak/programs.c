/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/programs.h"

#include "soak/script.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>

#define PATH_SIZE (SERVER_PATH_MAX + 64)
/* The soak kills runners itself: that must not use up a job's attempts and crashes. */
#define MANY 1000

static json_t *kind_json(void)
{
    return json_pack("{s:i, s:i, s:s}", "max_attempts", MANY, "max_crashes", MANY, "backoff",
                     "exponential:100ms:2s~20%");
}

static enum status write_file(const struct world *w, const char *mode, const char *plain,
                              const char *flaky, struct err *err)
{
    char path[PATH_SIZE];
    char script[PATH_SIZE];
    char programs[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/handlers/soak_%s.json", w->dir, mode);
    (void)snprintf(programs, sizeof programs, "%s/programs", w->dir);
    (void)snprintf(script, sizeof script, "%s/programs/handlers.py", w->dir);
    json_auto_t *file =
        json_pack("{s:[s, s, s, s, s], s:s, s:{s:s}, s:{s:o, s:o}}", "command", "/usr/bin/python3",
                  script, mode, plain, flaky, "mode", mode, "env", "PYTHONPATH", programs, "kinds",
                  plain, kind_json(), flaky, kind_json());
    if (file == NULL || json_dump_file(file, path, JSON_INDENT(4)) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
    }
    return STATUS_OK;
}

enum status programs_set(struct world *w, struct err *err)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/handlers", w->dir);
    if (mkdir(path, 0755) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "make %s", path);
    }
    enum status st = write_file(w, "serve", "p_plain", "p_flaky", err);
    if (st == STATUS_OK) {
        st = write_file(w, "once", "o_plain", "o_flaky", err);
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
