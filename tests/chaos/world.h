/* SPDX-License-Identifier: Apache-2.0
 *
 * The world of a run: PostgreSQL, five Redis, schedulers and workers, each a real process that may
 * be away at any moment. world_turn() restarts processes that are due; nothing here waits for a
 * server, except at the beginning and at the end. */
#ifndef CLAIMD_TESTS_CHAOS_WORLD_H
#define CLAIMD_TESTS_CHAOS_WORLD_H

#include "chaos/folder.h"
#include "chaos/options.h"
#include "chaos/samples.h"
#include "chaos/session.h"
#include "chaos/trait.h"
#include "cluster/link_proxy.h"

#define WORLD_REDIS 5
#define WORLD_PG 2
/* Numbers of servers in links: first the Redis, then the seats of PostgreSQL. */
#define WORLD_SERVERS (WORLD_REDIS + WORLD_PG)
#define WORLD_HOSTS_MAX 16
#define WORLD_QUEUES_MAX 16
#define WORLD_PLUGINS_MAX 6
#define WORLD_NAME_MAX 16
#define WORLD_NEVER INT64_MAX

/* A file, and the folder beside the servers' folders that it is copied to. */
struct world_plugin {
    const char *folder;
    const char *path;
};

/* The world that a program needs. */
struct world_plan {
    /* As fast as possible: servers are reached directly and use the host's clock, and there are no
     * books of rows and of the daemons' actions. */
    bool is_bare;
    const char *log_level;
    const char *queues[WORLD_QUEUES_MAX]; /* NULL-ended, unless full */
    struct world_plugin plugins[WORLD_PLUGINS_MAX];
};

enum host_role { HOST_SCHEDULER, HOST_WORKER };

/* The target of its stderr, from its next start on. */
enum host_log { HOST_LOG_FILE, HOST_LOG_FULL, HOST_LOG_STALLED };

/* One daemon, and its place. */
struct host {
    enum host_role role;
    char name[WORLD_NAME_MAX];
    pid_t pid; /* 0 = not running */
    int64_t started_us;
    int life;            /* number of its state directory */
    int64_t restart_us;  /* when to restart it; WORLD_NEVER = not by itself */
    int64_t ended_by_us; /* deadline for its end after TERM; WORLD_NEVER = no TERM was sent */
    enum host_log log;
    int log_fd;         /* pipe whose reader does not read; 0 = none */
    bool is_killed;     /* by us: death by SIGKILL is expected */
    const char *env[3]; /* further variables for it, NULL-ended */
};

/* A server that is restarted in the background. */
struct server_state {
    int64_t restart_us; /* WORLD_NEVER: not by itself */
    bool is_starting;
};

/* claimctl while it loads or follows a map (mapping.h). */
struct map_run {
    pid_t pid;        /* 0 = not running */
    int64_t start_us; /* when to start it */
    int64_t starts;   /* of this call; kills are followed by starts */
    int64_t starts_all;
    bool is_over; /* it has said that all rows have ended */
};

struct world {
    const struct options *options;
    const struct world_plan *plan;
    struct folder folder;
    struct journal nemesis; /* faults, and events in the world */
    struct samples samples;
    char dir[SERVER_PATH_MAX]; /* of the servers: short because of the sockets */
    char bin_dir[SERVER_PATH_MAX];
    char config_path[SERVER_PATH_MAX + 16];
    char conninfo[SERVER_PATH_MAX];     /* of the superuser, directly to the servers */
    char net_conninfo[SERVER_PATH_MAX]; /* through the proxy; without a user */
    struct pg_server pg[WORLD_PG];      /* two seats; `lead` is the primary's */
    size_t lead;
    struct server_state pg_state;
    bool is_pg_gone;        /* recorded in the books */
    bool is_pg_stopped;     /* by SIGSTOP: all requests to it hang */
    bool is_failing_over;   /* the free seat has a standby */
    struct link_proxy *net; /* NULL: there is none */
    struct redis_server redis[WORLD_REDIS];
    struct server_state redis_state[WORLD_REDIS];
    char shim[2][SERVER_PATH_MAX + 32];
    char clock_file[WORLD_REDIS + 1][SERVER_PATH_MAX + 32]; /* the last one is PostgreSQL's */
    const char *env[WORLD_REDIS + 1][3];
    struct host hosts[WORLD_HOSTS_MAX];
    size_t host_count;
    struct map_run map;
    struct session sql; /* of the superuser */
    int64_t violations; /* by processes: crashes, and daemons that did not end */
};

/* Starts the servers, with the schema and the row history, but no daemon. Close it in any case.
 * From now on SIGINT and SIGTERM end nothing, but are seen by world_is_interrupted(). */
enum status world_open(struct world *w, const struct options *options,
                       const struct world_plan *plan, struct err *err) MUST_USE;
void world_close(struct world *w);
bool world_is_interrupted(void);

void world_turn(struct world *w); /* waits for a moment, and does what is due */
/* The second brings back all servers and daemons; the first returns true when all run. The third
 * waits for that, and reports a violation if it takes longer. */
bool world_is_whole(struct world *w);
void world_heal(struct world *w);
void world_await_whole(struct world *w, int64_t most_us);

/* Scales a time of claimd to this world. */
int64_t world_scaled(const struct world *w, int64_t us);

enum status world_write_config(struct world *w, struct err *err) MUST_USE;
/* Replaces the plugin with a copy of the first `most` bytes of a file. Returns false on failure. */
bool world_put_plugin(struct world *w, const char *from, size_t most);

/* Sets whether the proxy listens for that server, as it does for servers that are up. */
void world_show(struct world *w, size_t server, bool is_up);
/* Announces to the books and the proxy from when until when PostgreSQL cannot be reached. */
void world_pg_is_gone(struct world *w, bool is_gone);
struct pg_server *world_primary(struct world *w);
/* Returns the path of a server's socket in the proxy; `server` as in WORLD_SERVERS. */
void world_net_path(const struct world *w, size_t server, char *ret_path, size_t size);

/* Steps the wall clock of PostgreSQL (server = WORLD_REDIS) or of a Redis to that offset from
 * ours. */
void world_set_clock(struct world *w, size_t server, int64_t offset_us);

/* Kills the server, which starts again after `away_us`. */
void world_take_redis(struct world *w, size_t i, int64_t away_us);
void world_take_pg(struct world *w, int64_t away_us);

/* Runs claimctl with this world's configuration; returns its output and errors, and its exit
 * code. */
struct buf;
enum status world_claimctl(const struct world *w, const char *const *words, struct buf *out,
                           int *ret_code, struct err *err) MUST_USE;

/* Reports something that must not happen, at once, and counts it. */
void world_violation(struct world *w, const char *target, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
