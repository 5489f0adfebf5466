/* SPDX-License-Identifier: Apache-2.0
 *
 * inventory_deduct {"sku": "…", "quantity": 1}: takes that many from the stock, or nothing if there
 * are fewer. Result: {"taken": n}, 0 = sold out. An example of an effect that happens exactly once,
 * whatever is killed: the stock, the deduction and the completion of the job change in one
 * transaction.
 *
 * Its tables and its login are in inventory.sql. It connects to the service `inventory` of
 * ~/.pg_service.conf, "~" being the worker's HOME. */
#include "claimd/postgres.h"

#include <jansson.h>

#define BEGIN_SQL                                 \
    "BEGIN; SET LOCAL statement_timeout = '10s';" \
    "SET LOCAL idle_in_transaction_session_timeout = '10s'"

static PGconn *db; /* kept open between the jobs of this process */

static int connect_db(void)
{
    if (db != NULL && PQstatus(db) == CONNECTION_OK) {
        return 1;
    }
    PQfinish(db);
    db = PQconnectdb("service=inventory connect_timeout=5 application_name=inventory");
    return PQstatus(db) == CONNECTION_OK;
}

/* Returns the number of rows that the statement changed, or -1. */
static int change(const char *sql, int count, const char *const *values)
{
    PGresult *r = PQexecParams(db, sql, count, NULL, values, NULL, NULL, 0);
    int rows = PQresultStatus(r) == PGRES_COMMAND_OK ? (int)strtol(PQcmdTuples(r), NULL, 10) : -1;
    PQclear(r);
    return rows;
}

static int command(const char *sql)
{
    PGresult *r = PQexec(db, sql);
    int is_done = PQresultStatus(r) == PGRES_COMMAND_OK;
    PQclear(r);
    return is_done;
}

/* Returns how many were deducted: 0 if there are fewer, -1 on failure. */
static int deduct(const struct claimd_context *job, const char *sku, const char *quantity)
{
    char id[24];
    (void)snprintf(id, sizeof id, "%lld", (long long)job->id);
    const char *const values[] = {sku, quantity, id};
    int rows = change("UPDATE inventory.stock SET quantity = quantity - $2 "
                      "WHERE sku = $1 AND quantity >= $2",
                      2, values);
    if (rows != 1) {
        return rows;
    }
    return change("INSERT INTO inventory.deduction (sku, quantity, job_id) VALUES ($1, $2, $3)", 3,
                  values);
}

static enum claimd_outcome undo(const struct claimd_context *job)
{
    char why[256];
    (void)snprintf(why, sizeof why, "%s", PQerrorMessage(db));
    (void)command("ROLLBACK");
    return claimd_retry(job, -1, "%s", why);
}

static enum claimd_outcome take(const struct claimd_context *job, const char *sku, long quantity)
{
    char text[24];
    char result[64];
    (void)snprintf(text, sizeof text, "%ld", quantity);
    if (!connect_db() || !command(BEGIN_SQL)) {
        return undo(job);
    }
    int taken = deduct(job, sku, text);
    (void)snprintf(result, sizeof result, "{\"taken\": %ld}", taken == 1 ? quantity : 0);
    if (taken < 0 || !claimd_complete_in_tx(job, db, result) || !command("COMMIT")) {
        return undo(job); /* if the COMMIT has taken effect all the same, the job is completed */
    }
    return claimd_done(job, NULL);
}

static enum claimd_outcome inventory_deduct(const struct claimd_context *job)
{
    const char *sku = NULL;
    json_int_t quantity = 0;
    json_t *args = json_loadb(job->args, job->args_len, JSON_REJECT_DUPLICATES, NULL);
    if (json_unpack(args, "{s:s, s:I !}", "sku", &sku, "quantity", &quantity) != 0 ||
        quantity < 1 || quantity > 1000000) {
        json_decref(args);
        return claimd_fail(job, "args must be {\"sku\": text, \"quantity\": 1 to 1000000}");
    }
    enum claimd_outcome outcome = take(job, sku, (long)quantity);
    json_decref(args);
    return outcome;
}

static void disconnect(void)
{
    PQfinish(db);
}

CLAIMD_PLUGIN(.name = "inventory", .version = "1.0", .fini = disconnect,
              .kinds = {
                  {.name = "inventory_deduct", .handle = inventory_deduct, .timeout_ms = 60000}})
