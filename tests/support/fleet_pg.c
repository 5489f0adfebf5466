/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fleet_pg.h"

#include "base/hash.h"
#include "model/job.h"
#include "support/pg_template.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define STEP_US (120 * US_PER_S)
#define S_PER_DAY 86400
#define TEMPLATE "claimd_template"
#define PATH " SET search_path = pg_catalog, pg_temp"

#define OK(call)                                                      \
    do {                                                              \
        struct err err = {0};                                         \
        ck_assert_msg((call) == STATUS_OK, "%s: %s", #call, err.msg); \
    } while (0)

/* ---- the schema ---- */

/* Writes "('available', 'running'), …": all transitions of states. */
static void edge_list(char *ret, size_t size)
{
    size_t len = 0;
    for (size_t i = 0; i < job_edge_count; i++) {
        len += (size_t)snprintf(ret + len, size - len, "%s('%s', '%s')", i > 0 ? ", " : "",
                                job_state_text(job_edges[i].from), job_state_text(job_edges[i].to));
        ck_assert_uint_lt(len, size);
    }
}

/* Refuses every change of a state that is not an edge of the model (inv.S5). In the history's
 * trigger, the job's row is as the statement found it: the function is stable. */
static void check_edges(struct fleet *f)
{
    char edges[1024];
    edge_list(edges, sizeof edges);
    sql_run(f->sql, "CREATE SCHEMA edges");
    sql_run(f->sql,
            "CREATE FUNCTION edges.check(old text, new text) RETURNS void LANGUAGE plpgsql" PATH
            " AS $$ BEGIN"
            " IF old <> new AND (old, new) NOT IN (%s) THEN RAISE EXCEPTION"
            " 'inv.S5: there is no way from %% to %%', old, new; END IF; END $$",
            edges);
    sql_run(f->sql,
            "CREATE FUNCTION edges.updated() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER" PATH
            " AS $$ BEGIN PERFORM edges.check(OLD.state, NEW.state); RETURN NEW; END $$");
    sql_run(f->sql,
            "CREATE FUNCTION edges.ended() RETURNS trigger LANGUAGE plpgsql STABLE"
            " SECURITY DEFINER" PATH " AS $$ BEGIN PERFORM edges.check(state, NEW.state) FROM"
            " claimd.job WHERE id = NEW.id; RETURN NEW; END $$");
    sql_run(f->sql, "CREATE TRIGGER edge_updated BEFORE UPDATE OF state ON claimd.job FOR EACH ROW"
                    " EXECUTE FUNCTION edges.updated()");
    sql_run(f->sql, "CREATE TRIGGER edge_ended BEFORE INSERT ON claimd.job_history FOR EACH ROW"
                    " EXECUTE FUNCTION edges.ended()");
}

static void make_schema(struct fleet *f)
{
    fleet_write_config(f);
    fleet_migrate(f);
    f->sql = sql_open(f->conninfo);
    /* Rows that a test writes itself belong to today's programs. The first schema lacks the
     * column. */
    sql_run(f->sql, "DO $$ BEGIN ALTER TABLE claimd.worker ALTER built_for SET DEFAULT 9999; "
                    "ALTER TABLE claimd.scheduler ALTER built_for SET DEFAULT 9999; "
                    "EXCEPTION WHEN undefined_column THEN NULL; END $$");
    check_edges(f);
    sql_run(f->sql, "CREATE ROLE " FLEET_WORKER_LOGIN " LOGIN IN ROLE claimd_worker");
    sql_run(f->sql, "CREATE ROLE " FLEET_SCHEDULER_LOGIN " LOGIN IN ROLE claimd_scheduler");
    sql_close(TAKE(f->sql)); /* a template may have no connections */
}

/* Names the data after the claimctl that migrates them and the day whose partitions they have. */
static void name_data(char *ret_name, size_t size)
{
    char text[SERVER_PATH_MAX + 128];
    char path[SERVER_PATH_MAX];
    struct stat info;
    (void)snprintf(path, sizeof path, "%s/claimctl", getenv("CLAIMD_BIN_DIR"));
    ck_assert_msg(stat(path, &info) == 0, "%s: run the test through ctest", path);
    int n = snprintf(text, sizeof text, "%s %lld %lld %ld %lld", path, (long long)info.st_size,
                     (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                     (long long)time(NULL) / S_PER_DAY);
    (void)snprintf(ret_name, size, "fleet-%08x", hash_bytes(text, (size_t)n));
}

static enum status make_template(void *ctx, struct err *err)
{
    struct fleet *f = ctx;
    enum status st =
        pg_server_create_db(&f->pg, TEMPLATE, NULL, f->conninfo, sizeof f->conninfo, err);
    if (st == STATUS_OK) {
        make_schema(f);
    }
    return st;
}

/* Makes the server below `f`, which has no daemons, with the schema in the database TEMPLATE. */
static void start_with_template(struct fleet *f)
{
    char dir[SERVER_PATH_MAX + 8];
    char name[32];
    bool may_keep = f->options.pg_env == NULL; /* it may set the clock */
    (void)snprintf(dir, sizeof dir, "%s/pg", f->dir);
    name_data(name, sizeof name);
    OK(pg_template_start(dir, may_keep ? name : NULL, f->options.pg_env, make_template, f, &f->pg,
                         &err));
}

static void create_db(struct fleet *f, const char *name)
{
    OK(pg_server_create_db(&f->pg, name, TEMPLATE, f->conninfo, sizeof f->conninfo, &err));
}

/* ---- one PostgreSQL for the fleets of all tests ---- */

static struct fleet shared; /* has no daemons */

static void make_host(struct fleet *f)
{
    *f = (struct fleet){.options = {.masters = 1, .time_scale = 1, .slots = 1},
                        .masters = {{.path = "/nowhere/redis.sock"}}};
}

void fleet_share_pg(void)
{
    make_host(&shared);
    OK(dir_make(shared.dir, sizeof shared.dir, &err));
    start_with_template(&shared);
}

void fleet_unshare_pg(void)
{
    pg_server_stop(&shared.pg);
    dir_remove(shared.dir);
    shared = (struct fleet){0};
}

/* True if the server is up and has no other connections. */
static bool is_shared_pg_ours(struct fleet *f, struct err *why)
{
    if (pg_server_is_others(&f->pg)) {
        err_set(why, STATUS_UNAVAILABLE, 0, "the test before has not ended its PostgreSQL");
        return false;
    }
    return (pg_server_is_ready(&f->pg) || pg_server_restart(&f->pg, why) == STATUS_OK) &&
           pg_server_ask(&f->pg,
                         "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity"
                         " WHERE datname LIKE 'fleet\\_%'",
                         NULL, 0, why) == STATUS_OK;
}

/* The test before may have killed the server, or have started one that dies with that test, perhaps
 * at this moment, although it reports that it is ready. */
static void take_shared_pg(struct fleet *f)
{
    static int count;
    char name[64];
    struct err why = {0};
    f->pg = shared.pg;
    ck_assert_msg(WAIT_UNTIL(is_shared_pg_ours(f, &why), STEP_US), "%s", why.msg);
    (void)snprintf(name, sizeof name, "fleet_%d_%d", (int)getpid(), count++);
    create_db(f, name);
}

/* ---- one PostgreSQL for one fleet ---- */

static void start_own_pg(struct fleet *f)
{
    struct fleet host;
    make_host(&host);
    host.options.pg_env = f->options.pg_env;
    memcpy(host.dir, f->dir, sizeof host.dir);
    start_with_template(&host);
    f->pg = host.pg;
    create_db(f, "claimd");
}

void fleet_pg_start(struct fleet *f)
{
    if (shared.dir[0] != '\0') {
        take_shared_pg(f);
    } else {
        start_own_pg(f);
    }
}

void fleet_pg_stop(struct fleet *f)
{
    if (shared.dir[0] == '\0') {
        pg_server_stop(&f->pg);
    }
}
