/* SPDX-License-Identifier: Apache-2.0
 *
 * A complete claimd for end-to-end tests: private PostgreSQL and Redis masters, migrated by
 * claimctl, with real schedulers and workers that a test can kill and stop. A failing step fails
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
    const char *more;       /* further members of the top object of the configuration, or NULL */
    const char *redis_conf; /* further lines for each master, or NULL */
    /* Variables for a PostgreSQL of its own, NULL-ended, or NULL; must outlive the fleet. */
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

/* Unchecked fixtures: the fleets of all tests between the two calls share one PostgreSQL, in which
 * each has a database of its own. A test may kill it. */
void fleet_share_pg(void);
void fleet_unshare_pg(void);

void fleet_start(struct fleet *f, const struct fleet_options *options);
/* Kills and removes everything; after a failed test, the death of the parent does so. */
void fleet_stop(struct fleet *f);

/* Adds a plugin for workers that start from now on. `folder`: the variable that names its
 * folder. */
void fleet_add_plugin(const struct fleet *f, const char *folder, const char *file);

/* Adds the file of a handler program, NAME.json, for workers that start, or receive SIGHUP, from
 * now on. */
void fleet_add_handlers(const struct fleet *f, const char *name, const char *json);

/* Migrates with the claimctl in $CLAIMD_BIN_DIR at this time. fleet_start() has done it already. */
void fleet_migrate(const struct fleet *f);

/* Starts worker i, which has a state directory of its own, and returns when it has registered.
 * `probe`: CLAIMD_PROBE, or NULL. */
void fleet_start_worker(struct fleet *f, size_t i, const char *probe);
/* As above, with `env` ("NAME=value", NULL-ended) before all other variables. */
void fleet_start_worker_with(struct fleet *f, size_t i, const char *const *env);
/* As fleet_start_worker_with(), but does not wait for the result. */
void fleet_launch_worker(struct fleet *f, size_t i, const char *const *env);
bool fleet_is_registered(struct fleet *f, size_t i);
void fleet_start_scheduler(struct fleet *f, size_t i);
void fleet_launch_scheduler(struct fleet *f, size_t i, const char *const *env);
void fleet_signal(pid_t pid, int number);
/* Kills one of worker i's runners, if it has any. */
void fleet_kill_runner(struct fleet *f, size_t i);
/* Waits for the end and clears the pid. Returns the exit code or 128 + signal; fails the test after
 * 20 s. */
int fleet_wait_end(struct fleet *f, pid_t *pid);

/* Inserts jobs; `args` is a JSON text. Returns the id of the last one. */
int64_t fleet_enqueue(struct fleet *f, const char *kind, const char *args, int count);

/* Waits until claimd.jobs shows that state; fails the test if that takes too long. */
void fleet_wait_state(struct fleet *f, int64_t id, const char *state);

/* Waits until all jobs have finished as `state` and none is open; if that takes longer than
 * `within_us`, fails the test and prints the open jobs. */
void fleet_wait_finished(struct fleet *f, int64_t count, const char *state, int64_t within_us);

/* Counts the keys that begin with claimd:job: on all masters (through hiredis: independent of the
 * code under test). */
int64_t fleet_lock_keys(struct fleet *f);
/* Runs a command, a format for hiredis, with the password $REDISCLI_AUTH, if it is set. An error
 * fails the test. */
void fleet_redis(struct fleet *f, size_t master, const char *command);
/* Returns the answer of the command. */
int64_t fleet_redis_i64(struct fleet *f, size_t master, const char *command);
void fleet_redis_as(struct fleet *f, size_t master, const char *user, const char *password,
                    const char *command);

/* Counts the lines of a file that contain `text`; 0 if the file does not exist. */
int fleet_count_lines(const char *path, const char *text);
/* Counts such lines in the log of worker or scheduler i. */
int fleet_log_count(struct fleet *f, const char *program, size_t i, const char *text);

/* Returns the HTTP address of a daemon, from the last of its ready lines. */
void fleet_http(struct fleet *f, const char *program, size_t i, char *ret_address, size_t size);

/* The ledger of the plugin kind `ledger`: the second function counts the lines with `what`
 * ("start", "end"), or the ids with more than one "end". */
void fleet_ledger_path(const struct fleet *f, char *ret_path, size_t size);
int fleet_ledger_count(const struct fleet *f, const char *what);

#endif
