/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/raw.h"

#include <endian.h>

void raw_pg_close(PGconn *pg)
{
    PQfinish(pg);
}

void raw_redis_close(redisContext *node)
{
    if (node != NULL) {
        redisFree(node);
    }
}

enum status raw_pg_open(const char *conninfo, PGconn **ret_pg, struct err *err)
{
    PGconn *pg = PQconnectdb(conninfo);
    if (PQstatus(pg) != CONNECTION_OK) {
        err_set(err, STATUS_UNAVAILABLE, 0, "PostgreSQL: %s", PQerrorMessage(pg));
        PQfinish(pg);
        return STATUS_UNAVAILABLE;
    }
    *ret_pg = pg;
    return STATUS_OK;
}

enum status raw_pg_check(PGconn *pg, const PGresult *result, ExecStatusType expected,
                         struct err *err)
{
    if (PQresultStatus(result) != expected) {
        return err_fail(err, STATUS_UNAVAILABLE, "PostgreSQL: %s", PQerrorMessage(pg));
    }
    return STATUS_OK;
}

enum status raw_pg_prepare(PGconn *pg, const char *name, const char *sql, struct err *err)
{
    PGresult *result = PQprepare(pg, name, sql, 0, NULL);
    enum status st = raw_pg_check(pg, result, PGRES_COMMAND_OK, err);
    PQclear(result);
    return st;
}

enum status raw_pg_take(PGconn *pg, ExecStatusType expected, PGresult **ret_result, struct err *err)
{
    PGresult *result = PQgetResult(pg);
    enum status st = raw_pg_check(pg, result, expected, err);
    if (st != STATUS_OK) {
        PQclear(result);
        return st;
    }
    PQclear(PQgetResult(pg)); /* NULL: the end of this statement */
    *ret_result = result;
    return STATUS_OK;
}

enum status raw_pg_take_sync(PGconn *pg, struct err *err)
{
    PGresult *result = PQgetResult(pg);
    enum status st = raw_pg_check(pg, result, PGRES_PIPELINE_SYNC, err);
    PQclear(result);
    return st;
}

int64_t raw_pg_i64(const PGresult *result, int row, int column)
{
    uint64_t wire = 0;
    memcpy(&wire, PQgetvalue(result, row, column), sizeof wire);
    return (int64_t)be64toh(wire);
}

enum status raw_redis_open(const char *path, redisContext **ret_node, struct err *err)
{
    redisContext *node = redisConnectUnix(path);
    if (node == NULL) {
        return err_fail(err, STATUS_NOMEM, "%s", path);
    }
    if (node->err != 0) {
        err_set(err, STATUS_UNAVAILABLE, 0, "%s: %s", path, node->errstr);
        redisFree(node);
        return STATUS_UNAVAILABLE;
    }
    *ret_node = node;
    return STATUS_OK;
}

enum status raw_redis_take(redisContext *node, redisReply **ret_reply, struct err *err)
{
    void *got = NULL;
    if (redisGetReply(node, &got) != REDIS_OK) {
        return err_fail(err, STATUS_UNAVAILABLE, "Redis: %s", node->errstr);
    }
    redisReply *reply = got;
    if (reply->type == REDIS_REPLY_ERROR) {
        err_set(err, STATUS_UNAVAILABLE, 0, "Redis: %s", reply->str);
        freeReplyObject(reply);
        return STATUS_UNAVAILABLE;
    }
    *ret_reply = reply;
    return STATUS_OK;
}

enum status raw_redis_load(redisContext *node, const char *script, char ret_sha[RAW_SHA_SIZE],
                           struct err *err)
{
    redisReply *reply = NULL;
    if (redisAppendCommand(node, "SCRIPT LOAD %s", script) != REDIS_OK) {
        return err_fail(err, STATUS_NOMEM, "script");
    }
    enum status st = raw_redis_take(node, &reply, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (reply->type != REDIS_REPLY_STRING || reply->len != RAW_SHA_SIZE - 1) {
        st = err_fail(err, STATUS_INTERNAL, "SCRIPT LOAD answered something else");
    } else {
        memcpy(ret_sha, reply->str, RAW_SHA_SIZE);
    }
    freeReplyObject(reply);
    return st;
}

enum status raw_redis_write(redisContext *node, const struct buf *commands, struct err *err)
{
    int is_done = 0;
    int failed = redisAppendFormattedCommand(node, buf_at(commands), commands->len);
    while (failed == REDIS_OK && is_done == 0) {
        failed = redisBufferWrite(node, &is_done);
    }
    return failed == REDIS_OK ? STATUS_OK
                              : err_fail(err, STATUS_UNAVAILABLE, "Redis: %s", node->errstr);
}
