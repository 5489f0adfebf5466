/* SPDX-License-Identifier: Apache-2.0
 *
 * What claimd-worker and claimd-scheduler have in common around their work: the command line, exit
 * codes, the Redis nodes of the configuration and what is logged of them. */
#ifndef CLAIMD_DAEMON_DAEMON_H
#define CLAIMD_DAEMON_DAEMON_H

#include "base/log.h"
#include "config/config.h"
#include "daemon/health.h"
#include "model/hint.h"
#include "redis/redis.h"
#include "redlock/redlock_async.h"

/* INTERFACES, "Programs". */
enum daemon_exit {
    DAEMON_ENDED = 0,
    DAEMON_FAILED = 1,
    DAEMON_USAGE = 2,
    DAEMON_NO_DEPENDENCY = 3,
    DAEMON_NOT_POSSIBLE = 5
};

/* The exit code for a start that failed with `st`. */
int daemon_start_exit(enum status st);

/* main() of a daemon: reads --config, --version and --help, loads the configuration, starts the log
 * and ignores SIGPIPE (libuv's writes raise it) and SIGHUP (until the daemon takes it), then runs.
 * `what` is the help's middle part. Returns the exit code. */
struct daemon_program {
    const char *name;
    const char *what;
    int (*run)(const struct config *config);
};

int daemon_main(const struct daemon_program *program, int argc, char **argv);

/* SIGHUP: reads the configuration again from where daemon_main() had it, sets the log, and reports
 * the result in the log and to systemd. Returns the configuration to use from now on; NULL: the new
 * one is invalid, the present one stays. `is_ready`: notify_ready() was called. */
const struct config *daemon_reload(const struct config *present, bool is_ready);

/* The name that this daemon uses for its host. */
void daemon_host(const struct config *c, char *ret_host, size_t size);

/* The hint nodes, with redis.user and redis.password where a node's URL has none. */
enum status daemon_hint_endpoints(const struct config *c,
                                  struct redis_endpoint ret_nodes[CONFIG_NODES_MAX],
                                  struct err *err) MUST_USE;

struct daemon_lock_names {
    struct redlock_node nodes[CONFIG_NODES_MAX];
    char prefix[LOCK_KEY_MAX];
};

/* The options of redlock_async_open() that the configuration sets, without callbacks. They borrow
 * `ret_names`. */
struct redlock_async_options daemon_lock_options(const struct config *c,
                                                 struct daemon_lock_names *ret_names,
                                                 uv_loop_t *loop, int64_t ttl_max_us);

/* redlock_async_open(), with its error turned into a status. */
enum status daemon_lock_open(const struct redlock_async_options *options,
                             struct redlock_async **ret_lock, struct err *err) MUST_USE;

/* redlock_async_set_password(), likewise. Accepts a NULL lock. */
enum status daemon_lock_set_password(struct redlock_async *lock, const char *password,
                                     struct err *err) MUST_USE;
/* Logs that a reload could not set the Redis password everywhere; OK: nothing. */
void daemon_say_password(enum status st, const struct err *err);

/* The address of a lock node, without user or password. */
void daemon_node_text(const struct config *c, size_t node, char *ret_text, size_t size);

/* One line per change of a lock node: node_up, node_down, node_refused, node_quarantined,
 * node_voting, node_warned. */
void daemon_log_lock_node(const struct config *c, size_t node, enum redlock_event_kind event,
                          int64_t until_us, const char *why);

/* What was logged of the hint nodes. */
struct daemon_hints {
    struct complaint complaints[CONFIG_NODES_MAX];
    int64_t up_us[CONFIG_NODES_MAX]; /* since when; 0 = it never was */
};
/* Logs hints_up for each node that was logged as down and has been up for 10 s; to be called every
 * second. */
void daemon_log_hints(struct daemon_hints *h, const struct config *c);
/* Logs hints_down, at growing intervals while it lasts, except for a node that `lock` (may be NULL)
 * knows to be down: node_down says that. `why` NULL: the node is up. */
void daemon_log_hint_node(struct daemon_hints *h, const struct config *c,
                          const struct redlock_async *lock, size_t node, const struct err *why);

/* Whether there was a quorum of lock nodes, as last logged. */
struct daemon_quorum {
    bool is_known;
    bool is_there;
    int64_t lost_us;
};
/* Logs quorum_lost and quorum_back, once per change; to be called at each change, from the line
 * `ready` on. `action`: what the loss means here. */
void daemon_log_quorum(struct daemon_quorum *q, const struct config *c,
                       const struct redlock_async *lock, const char *action);

/* The check "quorum" of /readyz; `lock` may be NULL. */
void daemon_check_quorum(const struct config *c, const struct redlock_async *lock,
                         struct health *ret);

#endif
