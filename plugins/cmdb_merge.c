/* SPDX-License-Identifier: Apache-2.0
 *
 * cmdb_merge {"machine": "…", "facts": {…}}: merges new facts about a machine into its record. An
 * example of reading, changing and writing back without a lock: if the jobs of one machine are
 * enqueued with its name as `exclusive_key`, only one of them runs at a time on the whole fleet. A
 * job that was paused for so long that the next one has run cannot write: its transaction also
 * completes its job, which fails for an older claim.
 *
 * Its table and its login are in cmdb_merge.sql. It connects to the service `cmdb` of
 * ~/.pg_service.conf, "~" being the worker's HOME. */
#include "claimd/postgres.h"

#include <jansson.h>
#include <stdlib.h>

#define BEGIN_SQL                                 \
    "BEGIN; SET LOCAL statement_timeout = '10s';" \
    "SET LOCAL idle_in_transaction_session_timeout = '10s'"
#define READ_SQL "SELECT facts FROM cmdb.machine WHERE name = $1"
#define WRITE_SQL                                             \
    "INSERT INTO cmdb.machine (name, facts) VALUES ($1, $2) " \
    "ON CONFLICT (name) DO UPDATE SET facts = excluded.facts"

static PGconn *db; /* kept open between the jobs of this process */

static int connect_db(void)
{
    if (db != NULL && PQstatus(db) == CONNECTION_OK) {
        return 1;
    }
    PQfinish(db);
    db = PQconnectdb("service=cmdb connect_timeout=5 application_name=cmdb");
    return PQstatus(db) == CONNECTION_OK;
}

static int command(const char *sql, int count, const char *const *values)
{
    PGresult *r =
        count == 0 ? PQexec(db, sql) : PQexecParams(db, sql, count, NULL, values, NULL, NULL, 0);
    int is_done = PQresultStatus(r) == PGRES_COMMAND_OK;
    PQclear(r);
    return is_done;
}

/* Returns the stored facts of the machine, {} for a new one; NULL if the statement failed, for a
 * reason that PostgreSQL reports. */
static json_t *read_facts(const char *machine)
{
    json_t *facts = NULL;
    PGresult *r = PQexecParams(db, READ_SQL, 1, NULL, &machine, NULL, NULL, 0);
    if (PQresultStatus(r) == PGRES_TUPLES_OK) {
        facts = PQntuples(r) == 0 ? json_object() : json_loads(PQgetvalue(r, 0, 0), 0, NULL);
    }
    PQclear(r);
    return facts;
}

static int merge(const char *machine, json_t *news)
{
    json_t *facts = read_facts(machine);
    char *text =
        facts == NULL || json_object_update(facts, news) != 0 ? NULL : json_dumps(facts, 0);
    const char *const values[] = {machine, text};
    int is_done = text != NULL && command(WRITE_SQL, 2, values);
    free(text);
    json_decref(facts);
    return is_done;
}

static enum claimd_outcome undo(const struct claimd_context *job)
{
    char why[256];
    (void)snprintf(why, sizeof why, "%s", PQerrorMessage(db));
    (void)command("ROLLBACK", 0, NULL);
    return claimd_retry(job, -1, "%s", why);
}

static enum claimd_outcome cmdb_merge(const struct claimd_context *job)
{
    const char *machine = NULL;
    json_t *news = NULL;
    json_t *args = json_loadb(job->args, job->args_len, JSON_REJECT_DUPLICATES, NULL);
    enum claimd_outcome outcome = CLAIMD_DONE;
    if (json_unpack(args, "{s:s, s:o !}", "machine", &machine, "facts", &news) != 0 ||
        !json_is_object(news)) {
        outcome = claimd_fail(job, "args must be {\"machine\": text, \"facts\": object}");
    } else if (!connect_db() || !command(BEGIN_SQL, 0, NULL) || !merge(machine, news) ||
               !claimd_complete_in_tx(job, db, NULL) || !command("COMMIT", 0, NULL)) {
        outcome = undo(job); /* if the COMMIT has taken effect all the same, the job is completed */
    }
    json_decref(args);
    return outcome;
}

static void disconnect(void)
{
    PQfinish(db);
}

CLAIMD_PLUGIN(.name = "cmdb_merge", .version = "1.0", .fini = disconnect,
              .kinds = {{.name = "cmdb_merge", .handle = cmdb_merge, .timeout_ms = 60000}})
