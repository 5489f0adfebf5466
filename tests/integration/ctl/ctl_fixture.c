/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl_fixture.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define OUTPUT_MAX ((size_t)8 << 20)

struct ctl_output ctl;
struct sql *db;

void ctl_setup(void)
{
    world_setup();
    buf_init(&ctl.out, OUTPUT_MAX);
    (void)snprintf(ctl.conninfo, sizeof ctl.conninfo, "%s", world.conninfo);
    db = sql_open(world.conninfo);
}

void ctl_setup_empty(void)
{
    world_setup_empty();
    buf_init(&ctl.out, OUTPUT_MAX);
    (void)snprintf(ctl.conninfo, sizeof ctl.conninfo, "%s", world.conninfo);
    db = sql_open(world.conninfo);
}

void ctl_teardown(void)
{
    sql_close(db);
    buf_release(&ctl.out);
    world_teardown();
}

int ctl_run_words(const char *const *words)
{
    char program[SERVER_PATH_MAX];
    char conninfo[SERVER_PATH_MAX + 64];
    const char *argv[32] = {program};
    const char *env[ARRAY_COUNT(ctl.env) + 3] = {conninfo,
                                                 "CLAIMD_CONFIG="}; /* reads no file of this host */
    const char *folder = getenv("CLAIMD_BIN_DIR");
    struct err err = {0};
    int code = -1;
    (void)snprintf(program, sizeof program, "%s/claimctl", folder == NULL ? "bin" : folder);
    (void)snprintf(conninfo, sizeof conninfo, "CLAIMD_POSTGRES_CONNINFO=%s", ctl.conninfo);
    for (size_t i = 0; i < ARRAY_COUNT(ctl.env) && ctl.env[i] != NULL; i++) {
        env[i + 2] = ctl.env[i];
    }
    for (size_t i = 0; words[i] != NULL; i++) {
        ck_assert_uint_lt(i + 2, ARRAY_COUNT(argv));
        argv[i + 1] = words[i];
    }
    buf_reset(&ctl.out);
    enum status st = program_run(argv, env, LIMIT_US, &ctl.out, &code, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    return code;
}

const char *ctl_text(void)
{
    return ctl.out.len > 0 ? buf_at(&ctl.out) : "";
}

json_t *ctl_json(void)
{
    json_error_t where;
    json_t *root = json_loads(ctl_text(), JSON_REJECT_DUPLICATES, &where);
    ck_assert_msg(root != NULL, "not JSON: %s\n%s", where.text, ctl_text());
    return root;
}

const char *ctl_write_file(const char *name, const char *text, size_t len)
{
    static char path[SERVER_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%d-%s", world.dir, (int)getpid(), name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, len, f), len);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(chmod(path, 0644), 0);
    return path;
}

/* The message that N checks failed goes to stderr, which the fixture appends: cuts it off. */
int ctl_doctor(void)
{
    int code = ctl_exit("doctor", "--json");
    char *tail = strstr(buf_at(&ctl.out), "}\n{\"error\": ");
    if (tail != NULL) {
        tail[1] = '\0';
    }
    return code;
}

void ctl_assert_check(const char *result, const char *check, const char *part)
{
    char pattern[512];
    json_t *root = ctl_json();
    size_t i = 0;
    json_t *line = NULL;
    bool is_found = false;
    int n = snprintf(pattern, sizeof pattern, "*%s*", part);
    ck_assert_int_lt(n, (int)sizeof pattern);
    json_array_foreach(json_object_get(root, "checks"), i, line)
    {
        bool is_ok = strcmp(json_string_value(json_object_get(line, "result")), "ok") == 0;
        ck_assert_int_eq(is_ok, json_is_null(json_object_get(line, "action")));
        is_found = is_found ||
                   (strcmp(json_string_value(json_object_get(line, "result")), result) == 0 &&
                    strcmp(json_string_value(json_object_get(line, "check")), check) == 0 &&
                    fnmatch(pattern, json_string_value(json_object_get(line, "detail")), 0) == 0);
    }
    json_decref(root);
    ck_assert_msg(is_found, "no line %s %s …%s… in: %s", result, check, part, ctl_text());
}
