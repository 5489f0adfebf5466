/* SPDX-License-Identifier: Apache-2.0
 *
 * The world of a run: PostgreSQL, five Redis, schedulers and workers, each a real process that may
 * be away at any moment. world_turn() starts again what is due; nothing here waits for a server,
 * but at the beginning and at the end. */
#ifndef CLAIMD_TESTS_CHAOS_WORLD_H
#define CLAIMD_TESTS_CHAOS_WORLD_H

#include "chaos/folder.h"
#include "chaos/options.h"
#include "chaos/samples.h"
#include "chaos/session.h"
#include "cluster/link_proxy.h"

#define WORLD_REDIS 5
#define WORLD_PG 2
/* Numbers of servers, for links: the Redis, then the seats of PostgreSQL. */
#define WORLD_SERVERS (WORLD_REDIS + WORLD_PG)
#define WORLD_HOSTS_MAX 16
#define WORLD_QUEUES_MAX 16
#define WORLD_PLUGINS_MAX 6
#define WORLD_NAME_MAX 16
#define WORLD_NEVER INT64_MAX

/* A file, and the folder beside the servers' that it is copied to. */
struct world_plugin {
    const char *folder;
    const char *path;
};

/* What a program wants its world to be like. */
struct world_plan {
    /* As fast as it goes: servers are reached directly, have the host's clock, and nobody keeps
     * books of rows and of what the daemons do. */
    bool is_bare;
    const char *log_level;
    const char *queues[WORLD_QUEUES_MAX]; /* NULL-ended, unless full */
    struct world_plugin plugins[WORLD_PLUGINS_MAX];
};

enum host_role { HOST_SCHEDULER, HOST_WORKER };

/* Where its stderr goes, from its next start on. */
enum host_log { HOST_LOG_FILE, HOST_LOG_FULL, HOST_LOG_STALLED };

/* One daemon, and where it lives. */
struct host {
    enum host_role role;
    char name[WORLD_NAME_MAX];
    pid_t pid; /* 0 = it does not run */
    int64_t started_us;
    int life;            /* number of its state directory */
    int64_t restart_us;  /* when it is started again; WORLD_NEVER = not by itself */
    int64_t ended_by_us; /* it was told to end and must have, by then; WORLD_NEVER = it wasn't */
    enum host_log log;
    int log_fd;         /* of a pipe that nobody reads; 0 = none */
    bool is_killed;     /* by us: a death by this signal is no surprise */
    const char *env[3]; /* further variables for it, NULL-ended */
};

/* A server that is started again in the background. */
struct server_state {
    int64_t restart_us; /* WORLD_NEVER: not by itself */
    bool is_starting;
};

struct world {
    const struct options *options;
    const struct world_plan *plan;
    struct folder folder;
    struct journal nemesis; /* what was done to the world, and what it did by itself */
    struct samples samples;
    char dir[SERVER_PATH_MAX]; /* of the servers: short, for the sockets' sake */
    char bin_dir[SERVER_PATH_MAX];
    char config_path[SERVER_PATH_MAX + 16];
    char conninfo[SERVER_PATH_MAX];     /* superuser, straight to the servers */
    char net_conninfo[SERVER_PATH_MAX]; /* through the network; without a user */
    struct pg_server pg[WORLD_PG];      /* two seats, of which `lead` is the primary's */
    size_t lead;
    struct server_state pg_state;
    bool is_pg_gone;        /* and the books say so */
    bool is_pg_stopped;     /* SIGSTOP: who asks it anything waits */
    bool is_failing_over;   /* the free seat has a standby */
    struct link_proxy *net; /* NULL: there is none */
    struct redis_server redis[WORLD_REDIS];
    struct server_state redis_state[WORLD_REDIS];
    char shim[2][SERVER_PATH_MAX + 32];
    char clock_file[WORLD_REDIS + 1][SERVER_PATH_MAX + 32]; /* PostgreSQL's is the last one */
    const char *env[WORLD_REDIS + 1][3];
    struct host hosts[WORLD_HOSTS_MAX];
    size_t host_count;
    struct session sql; /* of the superuser */
    int64_t violations; /* of the processes: crashes, ends that never came */
};

/* Servers, schema, row history; no daemon yet. Close it in any case. */
enum status world_open(struct world *w, const struct options *options,
                       const struct world_plan *plan, struct err *err) MUST_USE;
void world_close(struct world *w);

void world_turn(struct world *w); /* a moment passes, and what is due is done */
/* All servers and daemons are brought back; true when all run. */
bool world_is_whole(struct world *w);
void world_heal(struct world *w);

/* So much is one of claimd's time spans, in this world. */
int64_t world_scaled(const struct world *w, int64_t us);

enum status world_write_config(struct world *w, struct err *err) MUST_USE;
/* A copy of the first `most` bytes of a file takes the place of the plugin; false: it can't. */
bool world_put_plugin(struct world *w, const char *from, size_t most);

/* Whether the network shows that server; it shows what is up. */
void world_show(struct world *w, size_t server, bool is_up);
/* For the books, and the network: from when until when nobody could
 * reach PostgreSQL. */
void world_pg_is_gone(struct world *w, bool is_gone);
struct pg_server *world_primary(struct world *w);
/* Where a server is reached through the network; `server` as in WORLD_SERVERS. */
void world_net_path(const struct world *w, size_t server, char *ret_path, size_t size);

/* Steps the wall clock of PostgreSQL (server = WORLD_REDIS) or of a Redis to so much off ours. */
void world_set_clock(struct world *w, size_t server, int64_t offset_us);

/* The server is killed, and starts again after `away_us`. */
void world_take_redis(struct world *w, size_t i, int64_t away_us);
void world_take_pg(struct world *w, int64_t away_us);

/* claimctl on this world's configuration: its output and errors, and its exit code. */
struct buf;
enum status world_claimctl(const struct world *w, const char *const *words, struct buf *out,
                           int *ret_code, struct err *err) MUST_USE;

/* Something that must not happen: told at once, and counted. */
void world_violation(struct world *w, const char *target, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
