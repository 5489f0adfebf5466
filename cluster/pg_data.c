/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/pg_data.h"

#include "base/clock.h"
#include "cluster/child.h"
#include "cluster/servers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOOL_US (120 * US_PER_S)
#define PATH_SIZE (SERVER_PATH_MAX + 64)
#define KEPT_ENV "CLAIMD_TEST_PG_TEMPLATE"
#define NEW "new" /* the name of a copy of what initdb makes, which takes a second of CPU time */

enum status pg_tool_run(const char *const *argv, struct buf *out, struct err *err)
{
    static const char *const env[] = {"LC_ALL=C", "TZ=UTC", NULL};
    int code = 0;
    enum status st = program_run(argv, env, TOOL_US, out, &code, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (code != 0) {
        const char *text = out->len > 0 ? buf_at(out) : "";
        return err_fail(err, STATUS_UNAVAILABLE, "%s ended with %d: %s", argv[0], code, text);
    }
    return STATUS_OK;
}

static enum status run_initdb(const char *data, struct err *err)
{
    char initdb[SERVER_PATH_MAX];
    enum status st = child_find_program("initdb", initdb, sizeof initdb, err);
    if (st != STATUS_OK) {
        return st;
    }
    /* In MB: tests copy less than with the usual 16. */
    const char *segment = getenv(KEPT_ENV) != NULL ? "--wal-segsize=1" : NULL;
    const char *const argv[] = {initdb,
                                "--no-sync",
                                "-A",
                                "trust",
                                "-U",
                                "postgres",
                                "-E",
                                "UTF8",
                                "-D",
                                data,
                                "--no-instructions",
                                "--locale=C.UTF-8",
                                segment,
                                NULL};
    autobuf struct buf out = BUF_INIT(PG_TOOL_OUTPUT_MAX);
    return pg_tool_run(argv, &out, err);
}

static enum status copy_dir(const char *from, const char *to, struct err *err)
{
    char inside[PATH_SIZE + 2];
    (void)snprintf(inside, sizeof inside, "%s/.", from);
    const char *const argv[] = {"cp", "-a", inside, to, NULL};
    autobuf struct buf out = BUF_INIT(PG_TOOL_OUTPUT_MAX);
    return pg_tool_run(argv, &out, err);
}

/* ---- copies that tests share: $CLAIMD_TEST_PG_TEMPLATE-NAME-VERSION ---- */

/* Writes "initdb--PostgreSQL--15-18": another PostgreSQL needs copies of its own. */
static enum status version_of(char *ret, size_t size, struct err *err)
{
    char initdb[SERVER_PATH_MAX];
    const char *const argv[] = {initdb, "--version", NULL};
    autobuf struct buf out = BUF_INIT(PG_TOOL_OUTPUT_MAX);
    enum status st = child_find_program("initdb", initdb, sizeof initdb, err);
    if (st == STATUS_OK) {
        st = pg_tool_run(argv, &out, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(ret, size, "%s", out.len > 0 ? buf_at(&out) : "");
    for (char *at = ret; *at != '\0'; at++) {
        *at = (char)(isalnum((unsigned char)*at) ? *at : '-');
    }
    return STATUS_OK;
}

/* "" if tests share nothing. */
static enum status kept_path(const char *name, char *ret, size_t size, struct err *err)
{
    char version[128];
    const char *prefix = getenv(KEPT_ENV);
    ret[0] = '\0';
    if (prefix == NULL) {
        return STATUS_OK;
    }
    enum status st = version_of(version, sizeof version, err);
    if (st != STATUS_OK) {
        return st;
    }
    int n = snprintf(ret, size, "%s-%s-%s", prefix, name, version);
    if (n < 0 || (size_t)n >= size) {
        return err_fail(err, STATUS_LIMIT, "%s: too long", prefix);
    }
    return STATUS_OK;
}

enum status pg_data_keep(const char *data, const char *name, struct err *err)
{
    char mine[PATH_SIZE + 32];
    char path[PATH_SIZE];
    enum status st = kept_path(name, path, sizeof path, err);
    if (st != STATUS_OK || path[0] == '\0') {
        return st;
    }
    (void)snprintf(mine, sizeof mine, "%s.%ld", path, (long)getpid());
    st = dir_ensure(mine, 0700, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = copy_dir(data, mine, err);
    if (st != STATUS_OK || rename(mine, path) != 0) {
        dir_remove(mine);
    }
    return st;
}

enum status pg_data_copy(const char *data, const char *name, struct err *err)
{
    char path[PATH_SIZE];
    enum status st = kept_path(name, path, sizeof path, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (path[0] == '\0' || access(path, F_OK) != 0) {
        return STATUS_NOT_FOUND;
    }
    st = dir_ensure(data, 0700, err);
    if (st != STATUS_OK) {
        return st;
    }
    return copy_dir(path, data, err);
}

enum status pg_data_make(const char *data, struct err *err)
{
    char version[PATH_SIZE + 16];
    (void)snprintf(version, sizeof version, "%s/PG_VERSION", data);
    if (access(version, F_OK) == 0) {
        return STATUS_OK;
    }
    enum status st = pg_data_copy(data, NEW, err);
    if (st != STATUS_NOT_FOUND) {
        return st;
    }
    st = dir_ensure(data, 0700, err);
    if (st == STATUS_OK) {
        st = run_initdb(data, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return pg_data_keep(data, NEW, err);
}
