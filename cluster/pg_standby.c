/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes, cuts off and promotes a streaming standby of a private PostgreSQL. */
#include "base/buf.h"
#include "base/clock.h"
#include "cluster/child.h"
#include "cluster/servers.h"

#include <stdio.h>
#include <string.h>

#define BACKUP_US (60 * US_PER_S)
#define SETTLE_US (20 * US_PER_S)
#define ANSWER_MAX 4096
#define PATH_SIZE (SERVER_PATH_MAX + 64)

/* The backup contains the primary's data, `standby.signal`, and the conninfo of the primary. */
static enum status copy_data(const char *dir, const struct pg_server *primary, struct err *err)
{
    char program[SERVER_PATH_MAX];
    char data[PATH_SIZE];
    char source[SERVER_PATH_MAX + 64];
    int code = -1;
    autobuf struct buf out = BUF_INIT(ANSWER_MAX);
    enum status st = child_find_program("pg_basebackup", program, sizeof program, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(data, sizeof data, "%s/data", dir);
    (void)snprintf(source, sizeof source, "%s application_name=standby", primary->conninfo);
    const char *const argv[] = {program, "-D",     data, "-d",   source,      "-R",
                                "-X",    "stream", "-c", "fast", "--no-sync", NULL};
    st = program_run(argv, NULL, BACKUP_US, &out, &code, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (code != 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "pg_basebackup ended with %d: %s", code,
                        out.len > 0 ? buf_at(&out) : "");
    }
    return STATUS_OK;
}

enum status pg_standby_start(const char *dir, const struct pg_server *primary,
                             struct pg_server *ret, struct err *err)
{
    enum status st = dir_ensure(dir, 0755, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = copy_data(dir, primary, err);
    if (st != STATUS_OK) {
        return st;
    }
    return pg_server_start_env(dir, primary->is_durable, primary->env, ret, err);
}

static bool says(const struct pg_server *s, const char *sql, const char *answer)
{
    char text[64];
    return pg_server_ask(s, sql, text, sizeof text, NULL) == STATUS_OK && strcmp(text, answer) == 0;
}

enum status pg_standby_set_sync(const struct pg_server *primary, bool is_sync, struct err *err)
{
    const char *sql = is_sync ? "ALTER SYSTEM SET synchronous_standby_names = '*'"
                              : "ALTER SYSTEM RESET synchronous_standby_names";
    enum status st = pg_server_ask(primary, sql, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = pg_server_ask(primary, "SELECT pg_reload_conf()", NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *count = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
    if (!WAIT_UNTIL(says(primary, count, is_sync ? "1" : "0"), SETTLE_US)) {
        return err_fail(err, STATUS_TIMEOUT, "the standby of %s did not become %s", primary->dir,
                        is_sync ? "synchronous" : "asynchronous");
    }
    return STATUS_OK;
}

enum status pg_standby_cut(const struct pg_server *standby, struct err *err)
{
    enum status st = pg_server_ask(standby, "ALTER SYSTEM SET primary_conninfo = ''", NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = pg_server_ask(standby, "SELECT pg_reload_conf()", NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (!WAIT_UNTIL(says(standby, "SELECT count(*) FROM pg_stat_wal_receiver", "0"), SETTLE_US)) {
        return err_fail(err, STATUS_TIMEOUT, "the standby in %s streams on", standby->dir);
    }
    return STATUS_OK;
}

enum status pg_standby_catch_up(const struct pg_server *standby, const struct pg_server *primary,
                                struct err *err)
{
    char lsn[64];
    char sql[160];
    enum status st =
        pg_server_ask(primary, "SELECT pg_current_wal_insert_lsn()", lsn, sizeof lsn, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(sql, sizeof sql, "SELECT pg_last_wal_replay_lsn() >= '%s'", lsn);
    if (!WAIT_UNTIL(says(standby, sql, "t"), SETTLE_US)) {
        return err_fail(err, STATUS_TIMEOUT, "the standby in %s did not reach %s", standby->dir,
                        lsn);
    }
    return STATUS_OK;
}

enum status pg_standby_promote(const struct pg_server *standby, struct err *err)
{
    char answer[64];
    enum status st =
        pg_server_ask(standby, "SELECT pg_promote(true, 20)", answer, sizeof answer, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (strcmp(answer, "t") != 0) {
        return err_fail(err, STATUS_TIMEOUT, "the standby in %s was not promoted", standby->dir);
    }
    return STATUS_OK;
}

enum status pg_standby_conninfo(const struct pg_server *first, const struct pg_server *second,
                                const char *database, char *ret_conninfo, size_t size,
                                struct err *err)
{
    int n = snprintf(ret_conninfo, size,
                     "host=%s,%s port=5432,5432 user=postgres dbname=%s "
                     "target_session_attrs=read-write",
                     first->dir, second->dir, database);
    if (n < 0 || (size_t)n >= size) {
        return err_fail(err, STATUS_LIMIT, "conninfo of two servers is too long");
    }
    return STATUS_OK;
}
