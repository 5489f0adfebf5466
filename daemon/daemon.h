/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts that claimd-worker and claimd-scheduler share: the command line, exit codes, the Redis
 * nodes of the configuration, and the log events about those nodes. */
#ifndef CLAIMD_DAEMON_DAEMON_H
#define CLAIMD_DAEMON_DAEMON_H

#include "base/log.h"
#include "config/config.h"
#include "daemon/health.h"
#include "model/hint.h"
#include "redis/redis.h"
#include "redlock/redlock_async.h"

/* The exit codes (INTERFACES, "Programs"). */
enum daemon_exit {
    DAEMON_ENDED = 0,
    DAEMON_FAILED = 1,
    DAEMON_USAGE = 2,
    DAEMON_NO_DEPENDENCY = 3,
    DAEMON_NOT_POSSIBLE = 5
};

/* Returns the exit code for a start that failed with `st`. */
int daemon_start_exit(enum status st);

/* main() of a daemon: parses --config, --version and --help, loads the configuration, starts the
 * log, ignores SIGPIPE (libuv's writes raise it) and, until the daemon handles it, SIGHUP, then
 * calls `run`. `what` is the middle part of the help. Returns the exit code. */
struct daemon_program {
    const char *name;
    const char *what;
    int (*run)(const struct config *config);
    bool is_without_nodes; /* it needs no Redis: lock.nodes may be empty */
};

int daemon_main(const struct daemon_program *program, int argc, char **argv);

/* Handles SIGHUP: reads the configuration again from the path that daemon_main() used, applies the
 * log settings, and reports the result to the log and to systemd. Returns the configuration to use
 * from now on, or NULL if the new one is invalid and the present one stays. `is_ready`:
 * notify_ready() was called. */
const struct config *daemon_reload(const struct config *present, bool is_ready);

/* Writes the name that this daemon uses for its host. */
void daemon_host(const struct config *c, char *ret_host, size_t size);

/* Parses the URLs of the hint nodes; redis.user and redis.password are used where a URL has
 * none. */
enum status daemon_hint_endpoints(const struct config *c,
                                  struct redis_endpoint ret_nodes[CONFIG_NODES_MAX],
                                  struct err *err) MUST_USE;

struct daemon_lock_names {
    struct redlock_node nodes[CONFIG_NODES_MAX];
    char prefix[LOCK_KEY_MAX];
};

/* Returns the options of redlock_async_open() that the configuration sets, without callbacks. They
 * borrow `ret_names`. */
struct redlock_async_options daemon_lock_options(const struct config *c,
                                                 struct daemon_lock_names *ret_names,
                                                 uv_loop_t *loop, int64_t ttl_max_us);

/* redlock_async_open(), with its error converted to a status. */
enum status daemon_lock_open(const struct redlock_async_options *options,
                             struct redlock_async **ret_lock, struct err *err) MUST_USE;

/* redlock_async_set_password(), with its error converted to a status. Accepts a NULL lock. */
enum status daemon_lock_set_password(struct redlock_async *lock, const char *password,
                                     struct err *err) MUST_USE;
/* Logs that a reload could not set the Redis password everywhere; does nothing if `st` is OK. */
void daemon_say_password(enum status st, const struct err *err);

/* Writes the address of a lock node, without user and password. */
void daemon_node_text(const struct config *c, size_t node, char *ret_text, size_t size);

/* Logs one line per change of a lock node: node_up, node_down, node_refused, node_quarantined,
 * node_voting, node_warned. */
void daemon_log_lock_node(const struct config *c, size_t node, enum redlock_event_kind event,
                          int64_t until_us, const char *why);

/* What has been logged about the hint nodes. */
struct daemon_hints {
    struct complaint complaints[CONFIG_NODES_MAX];
    int64_t up_us[CONFIG_NODES_MAX]; /* since when the node is up; 0 = it is down */
};
/* Logs hints_up for each node that was logged as down and has been up for 10 s; call it every
 * second. */
void daemon_log_hints(struct daemon_hints *h, const struct config *c);
/* Logs hints_down, at growing intervals while the node is down, unless `lock` (may be NULL) knows
 * the same server to be down, since node_down reports that. `why` NULL: the node is up. */
void daemon_log_hint_node(struct daemon_hints *h, const struct config *c,
                          const struct redlock_async *lock, size_t node, const struct err *why);

/* Whether there was a quorum of lock nodes, as logged last. */
struct daemon_quorum {
    bool is_known;
    bool is_there;
    int64_t lost_us;
};
/* Logs quorum_lost and quorum_back, once per change; call it at each change once `ready` has been
 * logged. `action`: what this daemon does without a quorum. */
void daemon_log_quorum(struct daemon_quorum *q, const struct config *c,
                       const struct redlock_async *lock, const char *action);

/* Adds the check "quorum" of /readyz; `lock` may be NULL. */
void daemon_check_quorum(const struct config *c, const struct redlock_async *lock,
                         struct health *ret);

#endif
