/* SPDX-License-Identifier: Apache-2.0
 *
 * Private PostgreSQL and Redis servers in a directory, for tests, `claimctl dev`, the demo and the
 * benchmarks. They are children of the caller, end with it (PDEATHSIG), and use unix sockets only.
 * When started by root, they run as an unprivileged user that owns the directory (`postgres`, else
 * `nobody`). A program stays root if its path, an argument or a variable given to it names a file
 * that this user cannot reach, such as a checkout in root's home. Blocks: starting takes up to a
 * minute.
 *
 * A test that runs in a fork of the program that started a server may kill and restart the server;
 * the new server then dies with that fork. */
#ifndef CLAIMD_CLUSTER_SERVERS_H
#define CLAIMD_CLUSTER_SERVERS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SERVER_PATH_MAX 1024

struct pg_server {
    pid_t pid;
    bool is_durable;
    const char *const *env;         /* "NAME=value", NULL-ended, or NULL; must outlive the server */
    char dir[SERVER_PATH_MAX];      /* data in dir/data, log in dir/postgres.log */
    char conninfo[SERVER_PATH_MAX]; /* of the superuser, for the database postgres */
};

/* Runs initdb, unless the data exist, and starts the server. `is_durable` false = fsync off. */
enum status pg_server_start(const char *dir, bool is_durable, struct pg_server *ret,
                            struct err *err) MUST_USE;
/* As above, with variables for the server, such as a preloaded clock. */
enum status pg_server_start_env(const char *dir, bool is_durable, const char *const *env,
                                struct pg_server *ret, struct err *err) MUST_USE;
enum status pg_server_restart(struct pg_server *s, struct err *err) MUST_USE; /* after a kill */
/* The two halves of a restart, for callers that cannot wait, since recovery may take a while. */
enum status pg_server_launch(struct pg_server *s, struct err *err) MUST_USE;
bool pg_server_is_ready(const struct pg_server *s);
/* True if another process has restarted the server and it still runs: a second one would not
 * start. */
bool pg_server_is_others(const struct pg_server *s);
/* Kills the postmaster with SIGKILL and waits until all its children have ended. */
void pg_server_kill(struct pg_server *s);
void pg_server_stop(struct pg_server *s); /* fast shutdown; waits; accepts a zeroed struct */

/* Runs CREATE DATABASE name TEMPLATE template (NULL = template1). ret_conninfo names the
 * database. */
enum status pg_server_create_db(const struct pg_server *s, const char *name,
                                const char *template_name, char *ret_conninfo, size_t size,
                                struct err *err) MUST_USE;

/* Runs one statement as the superuser, by psql: independent of the code under test. `ret_text` (may
 * be NULL) receives the first column of the first row; LIMIT if it does not fit. */
enum status pg_server_ask(const struct pg_server *s, const char *sql, char *ret_text, size_t size,
                          struct err *err) MUST_USE;

/* ---- a streaming standby: also a pg_server, restarted, killed and stopped like any other ---- */

/* Makes a base backup of a running server, in a directory that has no data yet; the standby streams
 * from the server and answers reads. After a promotion, the old primary must be created again. */
enum status pg_standby_start(const char *dir, const struct pg_server *primary,
                             struct pg_server *ret, struct err *err) MUST_USE;
/* Sets whether commits of `primary` wait for its standby. */
enum status pg_standby_set_sync(const struct pg_server *primary, bool is_sync,
                                struct err *err) MUST_USE;
/* Stops streaming to the standby: what the primary commits from now on is lost if the primary is
 * lost. */
enum status pg_standby_cut(const struct pg_server *standby, struct err *err) MUST_USE;
/* Waits until the standby has replayed everything that the primary has written so far. */
enum status pg_standby_catch_up(const struct pg_server *standby, const struct pg_server *primary,
                                struct err *err) MUST_USE;
/* Promotes the standby, which accepts writes when this returns. The old primary should be dead by
 * then. */
enum status pg_standby_promote(const struct pg_server *standby, struct err *err) MUST_USE;
/* Writes one conninfo with both hosts and target_session_attrs=read-write. */
enum status pg_standby_conninfo(const struct pg_server *first, const struct pg_server *second,
                                const char *database, char *ret_conninfo, size_t size,
                                struct err *err) MUST_USE;

struct redis_server {
    pid_t pid;
    const char *const *env; /* "NAME=value", NULL-ended, or NULL; must outlive the server */
    char dir[SERVER_PATH_MAX];
    char path[108]; /* unix socket */
    char program[32];
};

/* Starts a Redis without persistence, with noeviction. `extra`: further lines of redis.conf, or
 * NULL. Runs redis-server, or the programs that CLAIMD_TEST_REDIS names
 * ("redis-server,valkey-server": in turn). */
enum status redis_server_start(const char *dir, const char *extra, struct redis_server *ret,
                               struct err *err) MUST_USE;
/* As above, with variables for the server, such as a preloaded clock. */
enum status redis_server_start_env(const char *dir, const char *extra, const char *const *env,
                                   struct redis_server *ret, struct err *err) MUST_USE;
/* Starts it again, empty, at the same socket. */
enum status redis_server_restart(struct redis_server *s, struct err *err) MUST_USE;
void redis_server_kill(struct redis_server *s);
void redis_server_stop(struct redis_server *s);

/* Runs one command by redis-cli, independent of the code under test. `words` are NULL-ended, and
 * may begin with options. The output is appended to `out`. */
enum status redis_server_ask(const struct redis_server *s, const char *const *words,
                             struct buf *out, struct err *err) MUST_USE;

/* Makes a fresh directory for one run, owned by the user that programs of this build run as;
 * dir_remove() removes it. It is locked until this process and its forks have ended. First,
 * directories of runs that were killed are removed. It is made in $CLAIMD_TEST_MEMORY while there
 * is room, else in $TMPDIR or /tmp. Servers use directories below it, or this one itself. */
#define DIR_MEMORY_ENV "CLAIMD_TEST_MEMORY"
#define DIR_KEPT_ENV "CLAIMD_TEST_KEPT"
enum status dir_make(char *ret_dir, size_t size, struct err *err) MUST_USE;
/* As above, for directories that may be kept, on a disk: in $CLAIMD_TEST_KEPT, else in $TMPDIR or
 * /tmp; if that is in memory, in /var/tmp. */
enum status dir_make_on_disk(char *ret_dir, size_t size, struct err *err) MUST_USE;
/* Keeps the directory: no later run removes it. */
void dir_keep(const char *dir);
/* Removes what killed runs have left in $CLAIMD_TEST_KEPT and in $TMPDIR; if TMPDIR is not set, in
 * /dev/shm, /tmp and /var/tmp. */
void dir_sweep(void);
/* Creates exactly this directory, unless it exists, for the user that our programs run as. */
enum status dir_ensure(const char *dir, mode_t mode, struct err *err) MUST_USE;
void dir_remove(const char *dir);
/* True if it is a directory, not a link to one, that belongs to our user or to the servers'
 * user. */
bool dir_is_ours(const char *dir);

/* True if the servers' user may read it, if we are that user, or if nothing is there. */
bool program_user_reaches(const char *path);

/* Starts a program as the servers' user in a process group of its own, with PDEATHSIG; its stderr
 * goes to log_path (NULL = ours). `env`: additional "NAME=value", NULL-ended, or NULL. */
enum status program_start(const char *const *argv, const char *const *env, const char *log_path,
                          pid_t *ret_pid, struct err *err) MUST_USE;
/* Runs a program to its end as program_start() does, and appends its output and errors to `out`. If
 * it takes too long or prints too much, it is killed: TIMEOUT or LIMIT. */
enum status program_run(const char *const *argv, const char *const *env, int64_t timeout_us,
                        struct buf *out, int *ret_code, struct err *err) MUST_USE;
/* Waits for its end; on TIMEOUT, it continues to run. *ret_code = exit code, or 128 + signal. */
enum status program_wait(pid_t pid, int64_t timeout_us, int *ret_code, struct err *err) MUST_USE;

/* Sends SIGKILL, and waits until the process is gone (a stopped one too). */
void program_kill(pid_t pid);
/* Lists up to `max` of its living children; returns how many. */
size_t program_children(pid_t parent, pid_t *ret_pids, size_t max);

/* Returns a TCP port of 127.0.0.1 that was free a moment ago; 0 if there is none. */
int port_free(void);

/* Evaluates `expr` every few ms until it is true or the deadline has passed; yields whether it was
 * true. */
#define WAIT_UNTIL(expr, timeout_us)                           \
    __extension__({                                            \
        int64_t end_ = wait_now_us() + (timeout_us);           \
        bool is_true_ = false;                                 \
        while (!(is_true_ = (expr)) && wait_now_us() < end_) { \
            wait_step();                                       \
        }                                                      \
        is_true_;                                              \
    })
int64_t wait_now_us(void);
void wait_step(void);

#endif
