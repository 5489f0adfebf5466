/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/daemon.h"

#include "base/build.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/probe.h"
#include "base/recorder.h"
#include "daemon/process.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>

#define HINTS_STEADY_US (10 * US_PER_S) /* hints_up after this long; × time_scale */

static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                        {"version", no_argument, NULL, 'V'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

static void print_usage(const struct daemon_program *p)
{
    (void)printf(
        "Usage: %s [--config FILE]\n\n%s\n"
        "  -c, --config FILE  configuration (default: $CLAIMD_CONFIG)\n"
        "  -V, --version      print the version\n"
        "  -h, --help         print this\n\n"
        "Exit codes: 0 ended, 1 failed, 2 usage or configuration, 3 no PostgreSQL at start,\n"
        "5 the schema has another version.\n",
        p->name, p->what);
}

/* The present configuration and the previous one, alternating. They are static because they are
 * large and live as long as the process. Parts of the daemon may still borrow texts from the
 * previous one; such texts can't be reloaded, so both hold the same. */
static struct config configs[2];
static const char *config_path; /* from argv or the environment; NULL = no file */

/* Checks the lists of nodes. Every daemon needs them; claimctl does not, so config_load() accepts a
 * file without them. */
static enum status check_nodes(const struct config *config, struct err *err)
{
    if (config->lock.node_count == 0) {
        return err_fail(err, STATUS_INVALID,
                        "lock.nodes: is empty; allowed: 1 to 9 Redis masters, host:port each");
    }
    enum status st = redis_endpoint_check_list("lock.nodes", config->lock.nodes[0], CONFIG_TEXT_MAX,
                                               config->lock.node_count, err);
    if (st != STATUS_OK) {
        return st;
    }
    return redis_endpoint_check_list("hints.nodes", config->hints.nodes[0], CONFIG_TEXT_MAX,
                                     config->hints.node_count, err);
}

static int start(const struct daemon_program *p, const char *path)
{
    struct config *config = &configs[0];
    struct err err = {0};
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN); /* must not kill the process before the daemon handles it */
    if (config_load(path, config, &err) != STATUS_OK ||
        (!p->is_without_nodes && check_nodes(config, &err) != STATUS_OK) ||
        probe_init(&err) != STATUS_OK || recorder_open(p->name, &err) != STATUS_OK) {
        (void)fprintf(stderr, "%s: %s\n", p->name, err.msg);
        return DAEMON_USAGE;
    }
    log_init(p->name, LOG_INFO);
    log_set((enum log_level)config->log_level, (enum log_format)config->log_format);
    config_path = path;
    log_start();
    int code = p->run(config);
    record("stop", "ok", RECORD_I64("code", code));
    log_stop();
    return code;
}

static const struct config *reload(const struct config *present)
{
    struct err err = {0};
    struct config_changes changes;
    struct config *next = present == &configs[0] ? &configs[1] : &configs[0];
    if (config_reload(config_path, present, next, &changes, &err) != STATUS_OK) {
        log_error("reload_failed", LOG_TEXT("err", err.msg),
                  LOG_TEXT("action", "the previous configuration stays in effect"));
        return NULL;
    }
    log_set((enum log_level)next->log_level, (enum log_format)next->log_format);
    if (changes.needs_restart[0] != '\0') {
        log_warn("restart_needed", LOG_TEXT("keys", changes.needs_restart),
                 LOG_TEXT("action", "their old values stay until a restart"));
    }
    log_info("reloaded", LOG_TEXT("keys", changes.taken));
    return next;
}

const struct config *daemon_reload(const struct config *present, bool is_ready)
{
    if (is_ready) {
        notify_reloading();
    }
    const struct config *next = reload(present);
    if (is_ready) {
        notify_ready();
    }
    return next;
}

int daemon_start_exit(enum status st)
{
    if (st == STATUS_INVALID || st == STATUS_CONFLICT) {
        return DAEMON_USAGE;
    }
    return st == STATUS_UNAVAILABLE ? DAEMON_NO_DEPENDENCY : DAEMON_FAILED;
}

static int refuse(const struct daemon_program *p, const char *what, const char *argument)
{
    (void)fprintf(stderr, "%s: %s '%s'\nTry: %s --help\n", p->name, what, argument, p->name);
    return DAEMON_USAGE;
}

int daemon_main(const struct daemon_program *p, int argc, char **argv)
{
    const char *path = getenv("CLAIMD_CONFIG");
    int option = 0;
    process_protect();
    opterr = 0; /* our own message names the program, not its path */
    while ((option = getopt_long(argc, argv, ":c:Vh", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            path = optarg;
            break;
        case 'V':
            (void)printf("%s %s\n", p->name, CLAIMD_BUILD);
            return DAEMON_ENDED;
        case 'h':
            print_usage(p);
            return DAEMON_ENDED;
        case ':':
            return refuse(p, "no value for option", argv[optind - 1]);
        default:
            return refuse(p, "unknown option", argv[optind - 1]);
        }
    }
    if (optind != argc) {
        return refuse(p, "unexpected argument", argv[optind]);
    }
    return start(p, path);
}

void daemon_host(const struct config *c, char *ret_host, size_t size)
{
    memset(ret_host, 0, size);
    if (c->host[0] != '\0') {
        (void)snprintf(ret_host, size, "%s", c->host);
    } else {
        (void)gethostname(ret_host, size - 1);
    }
}

static enum status hint_endpoint(const struct config *c, size_t node, struct redis_endpoint *ret,
                                 struct err *err)
{
    enum status st = redis_endpoint_parse(c->hints.nodes[node], ret, err);
    if (st != STATUS_OK) {
        return st;
    }
    return redis_endpoint_login(ret, c->redis.user, c->redis.password, err);
}

enum status daemon_hint_endpoints(const struct config *c,
                                  struct redis_endpoint ret_nodes[CONFIG_NODES_MAX],
                                  struct err *err)
{
    for (size_t i = 0; i < c->hints.node_count; i++) {
        enum status st = hint_endpoint(c, i, &ret_nodes[i], err);
        if (st != STATUS_OK) {
            err_prefix(err, "hints.nodes");
            return st;
        }
    }
    return STATUS_OK;
}

struct redlock_async_options daemon_lock_options(const struct config *c,
                                                 struct daemon_lock_names *ret_names,
                                                 uv_loop_t *loop, int64_t ttl_max_us)
{
    job_lock_prefix(ret_names->prefix, c->redis.prefix);
    for (size_t i = 0; i < c->lock.node_count; i++) {
        ret_names->nodes[i] = (struct redlock_node){
            .url = c->lock.nodes[i], .user = c->redis.user, .password = c->redis.password};
    }
    return (struct redlock_async_options){.loop = loop,
                                          .nodes = ret_names->nodes,
                                          .node_count = c->lock.node_count,
                                          .ttl_us = c->lock.ttl_us,
                                          .ttl_max_us = ttl_max_us,
                                          .node_timeout_us = c->lock.node_timeout_us,
                                          .drift_ppm = c->lock.drift_ppm,
                                          .trust_fresh = c->lock.trust_fresh,
                                          .prefix = ret_names->prefix,
                                          .no_line = true,
                                          .allow_short_ttl = c->time_scale < 1};
}

enum status daemon_lock_open(const struct redlock_async_options *lock_options,
                             struct redlock_async **ret_lock, struct err *err)
{
    struct redlock_error e = {0};
    int code = redlock_async_open(lock_options, ret_lock, &e);
    if (code == 0) {
        return STATUS_OK;
    }
    return err_fail(err, code == -EINVAL ? STATUS_INVALID : STATUS_UNAVAILABLE, "%s", e.message);
}

enum status daemon_lock_set_password(struct redlock_async *lock, const char *password,
                                     struct err *err)
{
    struct redlock_error e = {0};
    if (lock == NULL || redlock_async_set_password(lock, password, &e) == 0) {
        return STATUS_OK;
    }
    return err_fail(err, STATUS_INVALID, "%s", e.message);
}

void daemon_say_password(enum status st, const struct err *err)
{
    if (st != STATUS_OK) {
        log_error("reload_failed", LOG_TEXT("err", err->msg),
                  LOG_TEXT("action", "redis.password_file: some connections keep the old password; "
                                     "correct the file, then SIGHUP"));
    }
}

void daemon_node_text(const struct config *c, size_t node, char *ret_text, size_t size)
{
    struct redis_endpoint endpoint;
    (void)snprintf(ret_text, size, "?");
    if (redis_endpoint_parse(c->lock.nodes[node], &endpoint, NULL) == STATUS_OK) {
        /* the configured text may contain a password */
        redis_endpoint_text(&endpoint, ret_text, size);
    }
}

void daemon_log_lock_node(const struct config *c, size_t node, enum redlock_event_kind event,
                          int64_t until_us, const char *why)
{
    static const char *const events[] = {
        [REDLOCK_EVENT_UP] = "node_up",           [REDLOCK_EVENT_DOWN] = "node_down",
        [REDLOCK_EVENT_REFUSED] = "node_refused", [REDLOCK_EVENT_QUARANTINED] = "node_quarantined",
        [REDLOCK_EVENT_VOTING] = "node_voting",   [REDLOCK_EVENT_WARNED] = "node_warned"};
    char text[CONFIG_TEXT_MAX];
    daemon_node_text(c, node, text, sizeof text);
    if (event == REDLOCK_EVENT_UP || event == REDLOCK_EVENT_VOTING) {
        log_info(events[event], LOG_TEXT("node", text));
    } else if (event == REDLOCK_EVENT_QUARANTINED) {
        log_warn(events[event], LOG_TEXT("node", text), LOG_TEXT("err", why),
                 LOG_I64("no_vote_for_ms", (until_us - clock_boot_us()) / US_PER_MS));
    } else if (event == REDLOCK_EVENT_WARNED) {
        log_warn(events[event], LOG_TEXT("node", text), LOG_TEXT("err", why));
    } else {
        bool is_login = strstr(why, "wrong user or password") != NULL;
        log_warn(events[event], LOG_TEXT("node", text), LOG_TEXT("err", why),
                 LOG_TEXT("action", is_login
                                        ? "correct redis.user or redis.password_file; trying again"
                                        : "reconnecting"));
    }
}

/* True if node_down already reports this failure, because the hint nodes are the lock nodes and the
 * lock has seen it. An idle lock sends few requests (lock.N3), so it may not have seen it: then
 * hints_down is the only line. */
static bool is_told(const struct config *c, const struct redlock_async *lock, size_t node,
                    const struct err *why)
{
    struct redlock_node_info info = {0};
    if (memcmp(c->hints.nodes, c->lock.nodes, sizeof c->hints.nodes) != 0 ||
        why->status == STATUS_INVALID) {
        return false;
    }
    if (lock != NULL) {
        redlock_async_node(lock, node, &info);
    }
    return !info.is_up;
}

static void hint_node_text(const struct config *c, size_t node, char *ret_text, size_t size)
{
    struct redis_endpoint endpoint;
    (void)snprintf(ret_text, size, "?");
    if (redis_endpoint_parse(c->hints.nodes[node], &endpoint, NULL) == STATUS_OK) {
        redis_endpoint_text(&endpoint, ret_text, size);
    }
}

void daemon_log_hints(struct daemon_hints *h, const struct config *c)
{
    int64_t steady_us = config_scaled(c, HINTS_STEADY_US);
    int64_t now_us = clock_boot_us();
    for (size_t i = 0; i < c->hints.node_count; i++) {
        char text[CONFIG_TEXT_MAX];
        int64_t count = 0;
        if (h->up_us[i] != 0 && now_us - h->up_us[i] > steady_us) {
            count = complaint_end(&h->complaints[i]);
        }
        if (count > 0) {
            hint_node_text(c, i, text, sizeof text);
            log_info("hints_up", LOG_TEXT("node", text), LOG_I64("after", count));
        }
    }
}

void daemon_log_hint_node(struct daemon_hints *h, const struct config *c,
                          const struct redlock_async *lock, size_t node, const struct err *why)
{
    char text[CONFIG_TEXT_MAX];
    int64_t now_us = clock_boot_us();
    if (why == NULL) {
        h->up_us[node] = now_us;
        return;
    }
    daemon_log_hints(h, c); /* if it was up for long, this is a new failure */
    h->up_us[node] = 0;
    if (is_told(c, lock, node, why) || !complaint_due(&h->complaints[node], now_us)) {
        return;
    }
    hint_node_text(c, node, text, sizeof text);
    log_warn("hints_down", LOG_TEXT("node", text), LOG_TEXT("err", why->msg),
             LOG_TEXT("action", "trying again"));
}

void daemon_log_quorum(struct daemon_quorum *q, const struct config *c,
                       const struct redlock_async *lock, const char *action)
{
    bool is_there = redlock_async_has_quorum(lock);
    bool was_there = !q->is_known || q->is_there;
    q->is_known = true;
    q->is_there = is_there;
    if (was_there && !is_there) {
        q->lost_us = clock_boot_us();
        log_warn("quorum_lost", LOG_I64("voting", redlock_async_voting(lock)),
                 LOG_I64("nodes", c->lock.node_count),
                 LOG_I64("needed", redlock_async_quorum(lock)), LOG_TEXT("action", action));
    } else if (!was_there && is_there) {
        log_info("quorum_back", LOG_I64("voting", redlock_async_voting(lock)),
                 LOG_I64("nodes", c->lock.node_count),
                 LOG_I64("after_ms", (clock_boot_us() - q->lost_us) / US_PER_MS));
    }
}

void daemon_check_quorum(const struct config *c, const struct redlock_async *lock,
                         struct health *ret)
{
    if (lock == NULL) {
        health_add(ret, "quorum", false, "the lock nodes are not asked yet");
        return;
    }
    health_add(ret, "quorum", redlock_async_has_quorum(lock),
               "%zu of %zu lock nodes have a vote, %zu are needed", redlock_async_voting(lock),
               c->lock.node_count, redlock_async_quorum(lock));
}
