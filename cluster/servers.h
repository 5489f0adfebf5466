/* SPDX-License-Identifier: Apache-2.0
 *
 * Private PostgreSQL and Redis servers in a directory, for tests, `claimctl dev`, the demo and the
 * benchmarks. They are children of the caller, end with it (PDEATHSIG), and use unix sockets only.
 * As root they run as an unprivileged user that owns the directory (`postgres`, else `nobody`); a
 * program stays root where its path, an argument or a variable given to it names a file that this
 * user can't reach, such as a checkout in root's home. Blocks: starting takes up to a minute.
 *
 * A test that runs in a fork of the program that started a server may kill and restart it; the new
 * one then dies with that fork. */
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
    const char *const *env;         /* "NAME=value", NULL-ended, or NULL; outlives it */
    char dir[SERVER_PATH_MAX];      /* data in dir/data, log in dir/postgres.log */
    char conninfo[SERVER_PATH_MAX]; /* of the superuser, database postgres */
};

/* initdb (unless the data are there) and start. `is_durable` false = fsync off. */
enum status pg_server_start(const char *dir, bool is_durable, struct pg_server *ret,
                            struct err *err) MUST_USE;
/* The same with variables for the server, such as a preloaded clock. */
enum status pg_server_start_env(const char *dir, bool is_durable, const char *const *env,
                                struct pg_server *ret, struct err *err) MUST_USE;
enum status pg_server_restart(struct pg_server *s, struct err *err) MUST_USE; /* after a kill */
/* The two halves of a restart, for callers that can't wait: recovery may take a while. */
enum status pg_server_launch(struct pg_server *s, struct err *err) MUST_USE;
bool pg_server_is_ready(const struct pg_server *s);
/* Another process has restarted it, and it still runs: a second one would not start. */
bool pg_server_is_others(const struct pg_server *s);
/* Kill -9 of the postmaster; waits for all its children. */
void pg_server_kill(struct pg_server *s);
void pg_server_stop(struct pg_server *s); /* fast shutdown, waits; accepts a zeroed one */

/* CREATE DATABASE name TEMPLATE template (NULL = template1); ret_conninfo names it. */
enum status pg_server_create_db(const struct pg_server *s, const char *name,
                                const char *template_name, char *ret_conninfo, size_t size,
                                struct err *err) MUST_USE;

/* One statement as the superuser, by psql: independent of the code under test. `ret_text` (may be
 * NULL) has the first column of the first row; LIMIT when it doesn't fit. */
enum status pg_server_ask(const struct pg_server *s, const char *sql, char *ret_text, size_t size,
                          struct err *err) MUST_USE;

/* ---- a streaming standby: a pg_server too, restarted, killed and stopped like any ---- */

/* Makes a base backup of a running server, in a directory that has no data yet; the standby streams
 * from the server and answers reads. After a promotion, the old primary must be created anew. */
enum status pg_standby_start(const char *dir, const struct pg_server *primary,
                             struct pg_server *ret, struct err *err) MUST_USE;
/* Sets whether commits of `primary` wait for its standby. */
enum status pg_standby_set_sync(const struct pg_server *primary, bool is_sync,
                                struct err *err) MUST_USE;
/* The standby receives nothing any more: what the primary commits from now on is lost with the
 * primary. */
enum status pg_standby_cut(const struct pg_server *standby, struct err *err) MUST_USE;
/* Waits until the standby has what the primary has now. */
enum status pg_standby_catch_up(const struct pg_server *standby, const struct pg_server *primary,
                                struct err *err) MUST_USE;
/* The standby accepts writes when this returns; the old primary should be dead by then. */
enum status pg_standby_promote(const struct pg_server *standby, struct err *err) MUST_USE;
/* Both hosts in one conninfo with target_session_attrs=read-write. */
enum status pg_standby_conninfo(const struct pg_server *first, const struct pg_server *second,
                                const char *database, char *ret_conninfo, size_t size,
                                struct err *err) MUST_USE;

struct redis_server {
    pid_t pid;
    const char *const *env; /* "NAME=value", NULL-ended, or NULL; outlives it */
    char dir[SERVER_PATH_MAX];
    char path[108]; /* unix socket */
    char program[32];
};

/* `extra`: further redis.conf lines, or NULL. No persistence, noeviction. Runs redis-server, or
 * what CLAIMD_TEST_REDIS names ("redis-server,valkey-server": in turn). */
enum status redis_server_start(const char *dir, const char *extra, struct redis_server *ret,
                               struct err *err) MUST_USE;
/* The same with variables for the server, such as a preloaded clock. */
enum status redis_server_start_env(const char *dir, const char *extra, const char *const *env,
                                   struct redis_server *ret, struct err *err) MUST_USE;
/* Empty, same socket. */
enum status redis_server_restart(struct redis_server *s, struct err *err) MUST_USE;
void redis_server_kill(struct redis_server *s);
void redis_server_stop(struct redis_server *s);

/* One command by redis-cli, independent of the code under test: `words` are NULL-ended, and may
 * begin with options. What it prints is appended to `out`. */
enum status redis_server_ask(const struct redis_server *s, const char *const *words,
                             struct buf *out, struct err *err) MUST_USE;

/* A fresh directory for one run, of the user that programs of this build are run as; dir_remove()
 * removes it. It is locked until this process and its forks are gone; before it is made, those of
 * runs that were killed are removed. It lies in $CLAIMD_TEST_MEMORY while there is room, else in
 * $TMPDIR or /tmp. Servers take their own directories, below it or this one itself. */
#define DIR_MEMORY_ENV "CLAIMD_TEST_MEMORY"
#define DIR_KEPT_ENV "CLAIMD_TEST_KEPT"
enum status dir_make(char *ret_dir, size_t size, struct err *err) MUST_USE;
/* The same for what may be kept, on a disk: in $CLAIMD_TEST_KEPT, else in $TMPDIR or /tmp; in
 * /var/tmp, if that is in memory. */
enum status dir_make_on_disk(char *ret_dir, size_t size, struct err *err) MUST_USE;
/* No later run removes it. */
void dir_keep(const char *dir);
/* Removes what killed runs left in $CLAIMD_TEST_KEPT and in $TMPDIR; where this is not set, in
 * /dev/shm, /tmp and /var/tmp. */
void dir_sweep(void);
/* Creates that very directory, unless it exists, for the user that our programs run as. */
enum status dir_ensure(const char *dir, mode_t mode, struct err *err) MUST_USE;
void dir_remove(const char *dir);
/* Is it a directory (and no link to one) of this user or of the servers' user? */
bool dir_is_ours(const char *dir);

/* May the servers' user read that? True if we are this user, or if nothing is there. */
bool program_user_reaches(const char *path);

/* Starts a program as the servers' user in its own process group, PDEATHSIG set; stderr goes to
 * log_path (NULL = ours). `env`: NULL-ended "NAME=value" additions, or NULL. */
enum status program_start(const char *const *argv, const char *const *env, const char *log_path,
                          pid_t *ret_pid, struct err *err) MUST_USE;
/* Runs a program to its end as program_start() does; its output and errors are appended to `out`.
 * If it takes too long or prints too much, it is killed: TIMEOUT or LIMIT. */
enum status program_run(const char *const *argv, const char *const *env, int64_t timeout_us,
                        struct buf *out, int *ret_code, struct err *err) MUST_USE;
/* Waits; TIMEOUT leaves it running. *ret_code = exit code, or 128 + signal. */
enum status program_wait(pid_t pid, int64_t timeout_us, int *ret_code, struct err *err) MUST_USE;

/* kill -9, and waits until it is gone (a stopped one too). */
void program_kill(pid_t pid);
/* Up to `max` of its living children; returns how many. */
size_t program_children(pid_t parent, pid_t *ret_pids, size_t max);

/* A TCP port of 127.0.0.1 that was free a moment ago; 0 = none. */
int port_free(void);

/* Evaluates `expr` every few ms until it is true or the deadline passed; yields whether it was. */
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
