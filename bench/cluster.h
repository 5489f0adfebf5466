/* SPDX-License-Identifier: Apache-2.0
 *
 * A complete system for one measurement: durable PostgreSQL with the schema, N Redis masters, one
 * scheduler, W workers. All its files are in a temporary directory, which is removed at the end. */
#ifndef CLAIMD_BENCH_CLUSTER_H
#define CLAIMD_BENCH_CLUSTER_H

#include "bench/db.h"
#include "bench/masters.h"
#include "cluster/servers.h"

#define WORKERS_MAX 64

struct cluster_options {
    size_t masters;
    size_t workers;
    int slots;           /* of each worker; 0 = number of CPUs */
    size_t queues;       /* served by each worker: q0, q1 …; 0 = only `default` */
    const char *plugins; /* folder in the build tree, beside bin/ */
};

struct cluster {
    struct cluster_options options;
    char dir[SERVER_PATH_MAX];
    char config_path[SERVER_PATH_MAX + 16];
    char bin_dir[SERVER_PATH_MAX];
    char conninfo[SERVER_PATH_MAX];
    /* Where daemons connect to the masters and workers to PostgreSQL, if not to the servers' own
     * sockets; "" = to these. */
    char node_paths[MASTERS_MAX][SERVER_PATH_MAX];
    char worker_conninfo[3 * SERVER_PATH_MAX];
    char handlers[SERVER_PATH_MAX + 16]; /* the folder of handler programs; "" = none */
    struct pg_server pg;
    struct redis_server redis[MASTERS_MAX];
    pid_t scheduler;
    pid_t workers[WORKERS_MAX];
    char http[WORKERS_MAX + 1][32]; /* HTTP addresses: the scheduler, then the workers */
    uv_loop_t loop;
    uv_signal_t on_int;
    uv_signal_t on_term;
    uv_timer_t timer;
    bool is_interrupted;
    struct db db;
    struct masters masters;
};

/* Starts the servers, migrates, and opens our own sessions; starts no daemon. Close it in any
 * case. */
enum status cluster_open(struct cluster *c, const struct cluster_options *options,
                         struct err *err) MUST_USE;
void cluster_close(struct cluster *c);

/* Starts daemons according to the present options. */
enum status cluster_start_daemons(struct cluster *c, struct err *err) MUST_USE;
/* Sends TERM to all and waits. CONFLICT: the exit code of one was not 0. */
enum status cluster_stop_daemons(struct cluster *c, struct err *err) MUST_USE;
/* Returns NOT_FOUND with the end of its log if a daemon has ended by itself. */
enum status cluster_check_daemons(const struct cluster *c, struct err *err) MUST_USE;

/* Runs the loop for that long. UNAVAILABLE: interrupted. */
enum status cluster_wait(struct cluster *c, int64_t us, struct err *err) MUST_USE;

struct cluster_cpu {
    int64_t postgres_us;
    int64_t redis_us;
    int64_t scheduler_us;
    int64_t worker_us;
    int64_t runner_us;
};
struct cluster_cpu cluster_cpu(const struct cluster *c);
int64_t cluster_worker_rss_kib(const struct cluster *c); /* peak of the largest worker */
int64_t cluster_scheduler_rss_kib(const struct cluster *c);

#endif
