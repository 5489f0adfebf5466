/* SPDX-License-Identifier: Apache-2.0
 *
 * A private cluster in one folder: PostgreSQL, Redis masters, a scheduler, workers and claimd-web.
 * All are children of this process and end with it. Only PostgreSQL's data remain. */
#ifndef CLAIMD_CTL_DEV_H
#define CLAIMD_CTL_DEV_H

#include "cluster/servers.h"
#include "config/config.h"

#include <uv.h>

#define DEV_WORKERS_MAX 16
#define DEV_CHILDREN_MAX (DEV_WORKERS_MAX + 2)
#define DEV_DIR_MAX 64 /* sockets are below it, and a socket's path has at most 107 bytes */
#define DEV_DATABASE_MAX 64
#define DEV_TOKEN_SIZE 49

struct dev_child {
    char name[24];
    pid_t pid; /* 0 = ended */
};

struct dev_cluster {
    char dir[DEV_DIR_MAX];
    char database[DEV_DATABASE_MAX]; /* a-z, 0-9 and _ */
    char config_path[DEV_DIR_MAX + 16];
    char plugins[CONFIG_PATH_MAX];
    char handlers[CONFIG_PATH_MAX]; /* "" = none */
    char bin[DEV_DIR_MAX + 8];      /* folder of the daemons; "" = the one of this program */
    char web_listen[24];            /* of claimd-web; "" = this build has none */
    char web_token[DEV_TOKEN_SIZE]; /* of its operator */
    int lock_fd;                    /* locks the folder: one cluster in it at a time; -1 = none */
    struct pg_server pg;
    struct redis_server masters[CONFIG_NODES_MAX];
    size_t master_count;
    struct dev_child children[DEV_CHILDREN_MAX];
    size_t child_count;
};

/* Starts the servers, migrates, and writes the configuration. After a failure, dev_release() stops
 * what has been started. */
enum status dev_start_servers(struct dev_cluster *d, size_t masters, bool is_usual,
                              struct err *err) MUST_USE;
/* When run as root, makes the files that daemons need readable for the servers' user, since no
 * daemon may run as root. */
enum status dev_lower(struct dev_cluster *d, struct err *err) MUST_USE;
/* Chooses the port of claimd-web and writes its token. `is_usual`: the folder is the default. */
enum status dev_prepare_web(struct dev_cluster *d, bool is_usual, struct err *err) MUST_USE;
enum status dev_start_child(struct dev_cluster *d, const char *program, int number,
                            struct err *err) MUST_USE;
void dev_release(struct dev_cluster *d);

#endif
