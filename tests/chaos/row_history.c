/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/row_history.h"

#include "base/clock.h"

#include <stdio.h>

#define PATH_SIZE (SERVER_PATH_MAX + 64)
#define EXPORT_US (60 * US_PER_S) /* for tens of thousands of rows, beside other load */

/* A state that is NULL means that there is no row on that side of the change. `at` is the clock
 * that faults may step, boot_ms is CLOCK_BOOTTIME to 10 ms. */
static const char begin_sql[] =
    "CREATE SCHEMA chaos;"
    "CREATE TABLE chaos.event (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " at timestamptz NOT NULL DEFAULT clock_timestamp(),"
    " boot_ms bigint NOT NULL DEFAULT (1000 * split_part(pg_read_file('/proc/uptime'), ' ', "
    "1)::numeric),"
    " xid bigint NOT NULL, tab text NOT NULL,"
    " op text NOT NULL, job bigint NOT NULL, n bigint, kind text, old_state text, new_state text,"
    " old_fence bigint, fence bigint, worker uuid, generation int, attempt int, crashes int,"
    " ready_at timestamptz, sha text, queue text, exclusive_key text, unique_key text, second_key "
    "text);"
    "CREATE FUNCTION chaos.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER"
    " SET search_path = chaos, pg_catalog AS $$"
    "DECLARE r record; was record; has_args boolean;"
    "BEGIN"
    " IF TG_OP = 'DELETE' THEN r := OLD; ELSE r := NEW; END IF;"
    " IF TG_OP = 'INSERT' THEN was := NULL; ELSE was := OLD; END IF;"
    " has_args := TG_OP = 'INSERT' AND TG_TABLE_NAME = 'job';"
    " IF TG_OP = 'UPDATE' THEN has_args := NEW.args IS DISTINCT FROM OLD.args; END IF;"
    " INSERT INTO event (xid, tab, op, job, n, kind, old_state, new_state, old_fence, fence,"
    " worker, generation, attempt, crashes, ready_at, sha, queue, exclusive_key, unique_key, "
    "second_key)"
    " VALUES (txid_current(), CASE WHEN TG_TABLE_NAME LIKE 'job_history%' THEN 'history' ELSE 'job'"
    " END, left(TG_OP, 1), r.id, (r.args->>'n')::bigint, r.kind,"
    " CASE WHEN TG_OP = 'INSERT' THEN NULL ELSE OLD.state END,"
    " CASE WHEN TG_OP = 'DELETE' THEN NULL ELSE NEW.state END,"
    " CASE WHEN TG_OP = 'INSERT' THEN NULL ELSE OLD.fence END, r.fence, r.worker_id, r.generation,"
    " r.attempt, r.crashes, r.ready_at,"
    " CASE WHEN has_args THEN encode(sha256(convert_to(r.args::text, 'UTF8')), 'hex') END,"
    " r.queue, r.exclusive_key, r.unique_key, r.second_key);"
    " RETURN NULL;"
    "END $$;"
    "CREATE TRIGGER chaos_note AFTER INSERT OR UPDATE OR DELETE ON claimd.job"
    " FOR EACH ROW EXECUTE FUNCTION chaos.note();"
    "CREATE TRIGGER chaos_note AFTER INSERT OR UPDATE OR DELETE ON claimd.job_history"
    " FOR EACH ROW EXECUTE FUNCTION chaos.note();";

/* The time from a change to its commit is the same by both clocks. */
static const char events_sql[] =
    "SELECT row_to_json(e)::text FROM (SELECT e.*, e.boot_ms + (1000 * extract(epoch FROM"
    " pg_xact_commit_timestamp((e.xid & 4294967295)::text::xid) - e.at))::bigint AS commit_ms"
    " FROM chaos.event e) AS e ORDER BY seq";

static const char final_sql[] =
    "SELECT json_build_object('job', id, 'n', (args->>'n')::bigint, 'kind', kind, 'queue',"
    " queue, 'priority', priority, 'share', share, 'state', state, 'fence', fence, 'attempt',"
    " attempt, 'crashes', crashes, 'generation', generation, 'max_attempts', max_attempts,"
    " 'worker', worker_id, 'created_at', created_at, 'scheduled_at', scheduled_at, 'ready_at',"
    " ready_at, 'attempted_at', attempted_at, 'finalized_at', finalized_at, 'result', result,"
    " 'error', left(error, 200), 'sha', encode(sha256(convert_to(args::text, 'UTF8')), "
    "'hex'))::text"
    " FROM claimd.jobs j ORDER BY id";

enum status row_history_begin(struct session *sql, struct err *err)
{
    return session_run(sql, begin_sql, NULL, 0, NULL, err);
}

static enum status export_rows(struct session *sql, const char *query, FILE *out, struct err *err)
{
    PGresult *r = NULL;
    enum status st = session_run(sql, query, NULL, 0, &r, err);
    for (int i = 0; st == STATUS_OK && i < PQntuples(r); i++) {
        (void)fprintf(out, "%s\n", PQgetvalue(r, i, 0));
    }
    PQclear(r);
    return st;
}

static enum status export_file(struct session *sql, const char *query, const struct folder *folder,
                               const char *name, struct err *err)
{
    char path[PATH_SIZE];
    folder_at(folder, name, path, sizeof path);
    FILE *out = fopen(path, "we");
    if (out == NULL) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
    }
    enum status st = export_rows(sql, query, out, err);
    if (fclose(out) != 0 && st == STATUS_OK) {
        st = err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
    }
    return st;
}

enum status row_history_export(struct session *sql, const struct folder *folder, struct err *err)
{
    sql->timeout_us = EXPORT_US;
    enum status st = export_file(sql, events_sql, folder, "events.jsonl", err);
    if (st != STATUS_OK) {
        return st;
    }
    return export_file(sql, final_sql, folder, "final.jsonl", err);
}
