/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole claimd for end-to-end tests: private PostgreSQL and Redis masters, migrated by claimctl,
 * with real schedulers and workers, whose deaths and pauses a test decides. A failing step fails
 * the test. */
#ifndef CLAIMD_TESTS_SUPPORT_FLEET_H
#define CLAIMD_TESTS_SUPPORT_FLEET_H

#include "base/clock.h"
#include "cluster/servers.h"
#include "support/sql.h"

#define FLEET_MASTERS_MAX 9
#define FLEET_WORKERS_MAX 6
#define FLEET_SCHEDULERS_MAX 3

struct fleet_options {
    size_t masters;         /* 0 = 5 */
    double time_scale;      /* 0 = 0.25 */
    int slots;              /* per worker; 0 = 2 */
    bool has_handlers;      /* programs: fleet_add_handlers() */
    const char *more;       /* further members of the configuration's top object, or NULL */
    const char *redis_conf; /* further lines for each master, or NULL */
    /* Variables for a PostgreSQL of its own, NULL-ended, or NULL; they outlive the fleet. */
    const char *const *pg_env;
};

struct fleet {
    char dir[SERVER_PATH_MAX];
    char conninfo[SERVER_PATH_MAX];
    struct fleet_options options;
    struct pg_server pg;
    struct redis_server masters[FLEET_MASTERS_MAX];
    struct sql *sql; /* superuser */
    pid_t workers[FLEET_WORKERS_MAX];
    pid_t schedulers[FLEET_SCHEDULERS_MAX];
};

/* Unchecked fixtures: the fleets of all tests between them share one PostgreSQL, in which each has
 * a database of its own. A test may kill it. */
void fleet_share_pg(void);
void fleet_unshare_pg(void);

void fleet_start(struct fleet *f, const struct fleet_options *options);
/* Everything is killed and removed; on a failed test the parent's death does it. */
void fleet_stop(struct fleet *f);

/* One more plugin for workers that start from now on; `folder`: the variable with its folder. */
void fleet_add_plugin(const struct fleet *f, const char *folder, const char *file);

/* A handler program's file, NAME.json, for workers that start, or get a SIGHUP, from now on. */
void fleet_add_handlers(const struct fleet *f, const char *name, const char *json);

/* By the claimctl that $CLAIMD_BIN_DIR has now. fleet_start() has done it. */
void fleet_migrate(const struct fleet *f);

/* `probe`: CLAIMD_PROBE, or NULL. Worker i has a state directory of its own. Returns when it is
 * registered. */
void fleet_start_worker(struct fleet *f, size_t i, const char *probe);
/* The same with `env` ("NAME=value", NULL-ended) before all else. */
void fleet_start_worker_with(struct fleet *f, size_t i, const char *const *env);
/* As fleet_start_worker(), with `env` ("NAME=value", NULL-ended) before all else, and without a
 * look at what comes of it. */
void fleet_launch_worker(struct fleet *f, size_t i, const char *const *env);
bool fleet_is_registered(struct fleet *f, size_t i);
void fleet_start_scheduler(struct fleet *f, size_t i);
void fleet_launch_scheduler(struct fleet *f, size_t i, const char *const *env);
void fleet_signal(pid_t pid, int number);
/* One of worker i's runners, if it has any. */
void fleet_kill_runner(struct fleet *f, size_t i);
/* Waits for the end and forgets the pid. Returns the exit code or 128 + signal; fails the test
 * after 20 s. */
int fleet_wait_end(struct fleet *f, pid_t *pid);

/* Inserts jobs: `args` is a JSON text. Returns the id of the (last) one. */
int64_t fleet_enqueue(struct fleet *f, const char *kind, const char *args, int count);

/* As claimd.jobs has it; soon, else the test fails. */
void fleet_wait_state(struct fleet *f, int64_t id, const char *state);

/* All finished as `state`, none open, within `within_us`; else the test fails with what is open. */
void fleet_wait_finished(struct fleet *f, int64_t count, const char *state, int64_t within_us);

/* Keys that begin with claimd:job: on any master (through redis-cli: independent of the code under
 * test). */
int64_t fleet_lock_keys(struct fleet *f);
/* The command's words are parted by single spaces. */
void fleet_redis(struct fleet *f, size_t master, const char *command);
int64_t fleet_redis_i64(struct fleet *f, size_t master, const char *command); /* its answer */

/* Lines of a file that contain `text`; 0 where it isn't there. */
int fleet_count_lines(const char *path, const char *text);
/* The same of the log of worker i. */
int fleet_log_count(struct fleet *f, const char *program, size_t i, const char *text);

/* Where a daemon answers HTTP, as the last of its ready lines says. */
void fleet_http(struct fleet *f, const char *program, size_t i, char *ret_address, size_t size);

/* The ledger of the plugin kind `ledger`: how many lines say `what` ("start", "end"), and how many
 * ids have more than one "end". */
void fleet_ledger_path(const struct fleet *f, char *ret_path, size_t size);
int fleet_ledger_count(const struct fleet *f, const char *what);

#endif
