/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/programs.h"

#include "base/cleanup.h"
#include "cluster/servers.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_SIZE (SERVER_PATH_MAX + 64)
/* The kit kills runners itself: those crashes must not use up the attempts of an ordinary job. */
#define MANY 1000

static const struct program_kind {
    const char *name;
    int max_attempts; /* 0 = the default */
    int max_crashes;
    bool at_most_once;
    const char *timeout;
} kinds[] = {{"short", MANY, MANY, false, NULL},   {"long", MANY, MANY, false, NULL},
             {"big", MANY, MANY, false, NULL},     {"retry", MANY, MANY, false, NULL},
             {"crash", MANY, MANY, false, NULL},   {"fail", MANY, MANY, false, NULL},
             {"poison", 3, 2, false, NULL}, /* in "once" mode its death is no crash */
             {"tired", 3, MANY, false, NULL},      {"once", 0, MANY, true, NULL},
             {"hang", MANY, MANY, false, "1500ms"}};

static json_t *kinds_json(char prefix, char *ret_names, size_t size)
{
    json_t *all = json_object();
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        const struct program_kind *k = &kinds[i];
        char name[32];
        (void)snprintf(name, sizeof name, "%c_%s", prefix, k->name);
        size_t len = strlen(ret_names);
        (void)snprintf(ret_names + len, size - len, "%s%s", i == 0 ? "" : ",", name);
        json_t *kind = json_pack("{s:i}", "max_crashes", k->max_crashes);
        if (k->at_most_once) {
            (void)json_object_set_new(kind, "at_most_once", json_true());
        } else {
            (void)json_object_set_new(kind, "max_attempts", json_integer(k->max_attempts));
            (void)json_object_set_new(kind, "backoff", json_string("fixed:100ms"));
        }
        if (k->timeout != NULL) {
            (void)json_object_set_new(kind, "timeout", json_string(k->timeout));
        }
        (void)json_object_set_new(all, name, kind);
    }
    return all;
}

static enum status write_file(const char *dir, const char *mode, char prefix, struct err *err)
{
    char path[PATH_SIZE];
    char script[PATH_SIZE];
    char programs[PATH_SIZE];
    char names[512] = "";
    json_t *of_kinds = kinds_json(prefix, names, sizeof names);
    (void)snprintf(path, sizeof path, "%s/handlers/chaos_%s.json", dir, mode);
    (void)snprintf(programs, sizeof programs, "%s/programs", dir);
    (void)snprintf(script, sizeof script, "%s/programs/handlers.py", dir);
    json_auto_t *file = json_pack("{s:[s, s, s], s:s, s:{s:s, s:s}, s:o}", "command",
                                  "/usr/bin/python3", script, mode, "mode", mode, "env",
                                  "PYTHONPATH", programs, "CHAOS_KINDS", names, "kinds", of_kinds);
    if (file == NULL || json_dump_file(file, path, JSON_INDENT(4)) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
    }
    return STATUS_OK;
}

enum status programs_write(const char *dir, struct err *err)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/handlers", dir);
    if (mkdir(path, 0755) != 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "make %s", path);
    }
    enum status st = write_file(dir, "serve", 'p', err);
    if (st != STATUS_OK) {
        return st;
    }
    return write_file(dir, "once", 'o', err);
}
