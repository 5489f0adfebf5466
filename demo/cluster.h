/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo's cluster in one directory: durable PostgreSQL, five Redis, two schedulers, three
 * workers. Everything is a child and dies with the demo. */
#ifndef CLAIMD_DEMO_CLUSTER_H
#define CLAIMD_DEMO_CLUSTER_H

#include "base/buf.h"
#include "cluster/servers.h"

#define CLUSTER_NODES 5
#define CLUSTER_SCHEDULERS 2
#define CLUSTER_WORKERS 3
#define CLUSTER_ENV_MAX 10
#define CLUSTER_MD5SUM "/usr/bin/md5sum" /* what workers let claimctl map */
#define CLUSTER_TEXT_MAX 2048

struct cluster {
    char dir[SERVER_PATH_MAX];
    char bin[SERVER_PATH_MAX];
    char conninfo[SERVER_PATH_MAX];
    struct pg_server pg;
    struct redis_server redis[CLUSTER_NODES];
    pid_t schedulers[CLUSTER_SCHEDULERS];
    pid_t workers[CLUSTER_WORKERS];
    pid_t web; /* 0 = nobody watches */
    char env_texts[CLUSTER_ENV_MAX][CLUSTER_TEXT_MAX];
    const char *env[CLUSTER_ENV_MAX + 1];
};

enum status cluster_start(struct cluster *c, struct err *err) MUST_USE;
void cluster_stop(struct cluster *c); /* kills what still runs; keeps the directory */

/* Starts claimd-web, which only shows, and writes the address of its page. */
enum status cluster_watch(struct cluster *c, char *ret_address, size_t size,
                          struct err *err) MUST_USE;

/* Sends TERM to workers and schedulers, then waits for them. Returns TIMEOUT, or INTERNAL if the
 * exit code of one is not 0. */
enum status cluster_drain(struct cluster *c, struct err *err) MUST_USE;

/* Runs claimctl with the cluster's configuration. Returns INTERNAL with its output if it fails. */
enum status cluster_ctl(struct cluster *c, const char *const *args, struct buf *out,
                        struct err *err) MUST_USE;

/* Runs psql, unaligned: each row ends with a newline, columns are separated by '|'. Resets `out`
 * first. */
enum status cluster_sql(struct cluster *c, const char *sql, struct buf *out,
                        struct err *err) MUST_USE;

/* Kills the worker that holds the most running jobs, while it holds them. NOT_FOUND if none
 * does. */
struct killed {
    char worker_id[64];
    pid_t pid;
    long held; /* running rows that it leaves behind */
};
enum status cluster_kill_a_worker(struct cluster *c, struct killed *ret, struct err *err) MUST_USE;

/* Counts the lock keys of jobs on all nodes. */
enum status cluster_count_locks(struct cluster *c, long *ret_count, struct err *err) MUST_USE;

/* Counts the log lines of the workers that contain `wanted`. */
long cluster_count_lines(const struct cluster *c, const char *wanted);

#endif
