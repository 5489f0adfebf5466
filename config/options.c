/* SPDX-License-Identifier: Apache-2.0 */
#include "config/options.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>

#define HOUR_MS INT64_C(3600000)
#define CONFIG_OF(member) ((struct config *)NULL)->member
#define AT(member) .offset = offsetof(struct config, member), .size = sizeof CONFIG_OF(member)
#define ITEMS(member, counter)                                                      \
    .offset = offsetof(struct config, member), .size = sizeof CONFIG_OF(member)[0], \
    .aux = offsetof(struct config, counter)
#define RANGE(low, high) .min = (low), .max = (high)
#define MS .type = OPTION_TIME, .unit = "ms"
#define COUNT .type = OPTION_INT, .unit = ""
#define STRING .type = OPTION_TEXT, .unit = ""
#define PATH .type = OPTION_PATH, .unit = ""
#define SECRET(content) \
    .type = OPTION_SECRET_FILE, .unit = "", .aux = offsetof(struct config, content)
#define CHOICE(list) .type = OPTION_CHOICE, .unit = "", .choices = (list)
#define RELOADS .is_reloadable = true
#define EXPERT .is_expert = true
#define LIST .type = OPTION_LIST, .unit = ""
#define COMMANDS .type = OPTION_COMMANDS, .unit = ""

static const char *const levels[] = {"error", "warn", "info", "debug", NULL}; /* enum log_level */
static const char *const formats[] = {"logfmt", "json", NULL};                /* enum log_format */
static const char *const web_modes[] = {"read", "operate", NULL};
static const char *const no_yes[] = {"no", "yes", NULL};
static const char *const fresh_nodes[] = {"quarantine", "trust", NULL};

/* clang-format off */
const struct option_def config_options[] = {
    {"time_scale", .type = OPTION_REAL, .unit = "", AT(time_scale), RANGE(1, 10000),
     .default_text = "1",
     EXPERT,
     .help = "For tests: every duration is multiplied by it, except the timeouts of servers."},
    {"log_level", CHOICE(levels), AT(log_level), .default_text = "info",
     RELOADS, .help = "The least severe lines to write to stderr."},
    {"log_format", CHOICE(formats), AT(log_format), .default_text = "logfmt",
     RELOADS, .help = "Format of log lines: `key=value` pairs, or one JSON object per line."},
    {"host", STRING, AT(host), .default_text = "",
     .help = "Name of this daemon's host as claimctl shows it; empty = the host name. For "
             "containers, whose host names are numbers."},

    {"postgres.conninfo", STRING, AT(postgres.conninfo), RANGE(1, 0),
     .default_text = "dbname=claimd",
     .help = "libpq keywords or URI, without a password. A direct connection, or a pooler in "
             "session mode."},
    {"postgres.password_file", SECRET(postgres.password), AT(postgres.password_file),
     .default_text = "",
     .help = "File that holds the password. Empty = systemd's credential "
             "`claimd_postgres_password`, if there is one."},
    {"postgres.timeout_ms", MS, AT(postgres.timeout_us), RANGE(100, 600000),
     .default_text = "5000", .is_real_time = true,
     .help = "Timeout of a connection attempt and of a request."},
    {"postgres.lock_timeout_ms", .type = OPTION_INT, .unit = "ms", AT(postgres.lock_timeout_ms),
     RANGE(1, 60000), .default_text = "200", .is_real_time = true,
     EXPERT, .help = "How long to wait for a row that another session has locked."},

    {"redis.prefix", STRING, AT(redis.prefix), RANGE(1, 0), .default_text = "claimd",
     .help = "Prefix of all keys. The Redis user's ACL must allow it."},
    {"redis.user", STRING, AT(redis.user), .default_text = "",
     .help = "ACL user; empty = the default user."},
    {"redis.password_file", SECRET(redis.password), AT(redis.password_file), .default_text = "",
     RELOADS,
     .help = "File that holds the password, the same on all nodes. Empty = systemd's credential "
             "`claimd_redis_password`, if there is one."},

    {"lock.nodes", LIST, ITEMS(lock.nodes, lock.node_count), RANGE(0, CONFIG_NODES_MAX),
     .default_text = "",
     .help = "Independent Redis masters, the same list on every host: host:port, unix:/path, "
             "redis://host:port, or rediss://host:port for TLS. Workers and schedulers need at "
             "least one; five is usual."},
    {"lock.ttl_ms", MS, AT(lock.ttl_us), RANGE(1000, HOUR_MS), .default_text = "10000",
     .help = "Duration of a lease; at least 10 node timeouts."},
    {"lock.node_timeout_ms", MS, AT(lock.node_timeout_us), RANGE(5, 60000),
     .default_text = "100", .is_real_time = true,
     .help = "Reply timeout per node."},
    {"lock.guard_ms", MS, AT(lock.guard_us), RANGE(1, HOUR_MS), .default_text = "2000",
     EXPERT,
     .help = "A handler is asked to stop this long before its lease could expire. After its "
             "timeout or a cancel it has as long before it is killed, if its kind has no grace."},
    {"lock.kill_margin_ms", MS, AT(lock.kill_margin_us), RANGE(1, HOUR_MS),
     .default_text = "500",
     EXPERT,
     .help = "A handler that still runs this long before its lease could expire is killed."},
    {"lock.drift_ppm", COUNT, AT(lock.drift_ppm), RANGE(0, 100000), .default_text = "10000",
     EXPERT, .help = "Maximum difference between the rates of two clocks, in parts per million."},
    {"lock.fresh_nodes", CHOICE(fresh_nodes), AT(lock.trust_fresh), .default_text = "quarantine",
     .help = "What to do with a node that restarted empty and may have forgotten leases: "
             "\"quarantine\" ignores its vote until every lease has expired; \"trust\" is for "
             "masters that were created a moment ago."},

    {"hints.nodes", LIST, ITEMS(hints.nodes, hints.node_count), RANGE(0, CONFIG_NODES_MAX),
     .default_text = "", .help = "Redis servers for job hints; empty = the lock nodes."},

    {"worker.queues", LIST, ITEMS(worker.queues, worker.queue_count), RANGE(1, CONFIG_QUEUES_MAX),
     .default_text = "default", .help = "Queues this worker serves."},
    {"worker.slots", COUNT, AT(worker.slots), RANGE(0, 1024), .default_text = "0",
     .help = "Jobs to run at the same time; 0 = the number of CPUs the worker may use: those of "
             "its host, or its cgroup's limit (docker run --cpus, CPUQuota=) rounded up."},
    {"worker.beat_ms", MS, AT(worker.beat_us), RANGE(100, 600000), .default_text = "2000",
     EXPERT, .help = "Heartbeat interval."},
    {"worker.stale_ms", MS, AT(worker.stale_us), RANGE(300, HOUR_MS), .default_text = "8000",
     EXPERT, .help = "A worker without a heartbeat for this long may be dead; at least 3 heartbeat "
             "intervals."},
    {"worker.pop_block_ms", MS, AT(worker.block_us), RANGE(100, 600000), .default_text = "4000",
     EXPERT, .help = "Timeout of a blocking pop; less than stale_ms."},
    {"worker.batch_max", COUNT, AT(worker.batch_max), RANGE(1, 500), .default_text = "500",
     RELOADS, EXPERT, .help = "Maximum number of jobs to lock and claim together."},
    {"worker.claim_ahead", COUNT, AT(worker.claim_ahead), RANGE(0, 1000), .default_text = "1000",
     RELOADS, EXPERT,
     .help = "Maximum number of claimed jobs waiting in the worker for a free runner."},
    {"worker.drain_ms", MS, AT(worker.drain_us), RANGE(0, 24 * HOUR_MS), .default_text = "30000",
     RELOADS, .help = "Time running jobs have to finish when the worker is stopped."},
    {"worker.runner_jobs_max", COUNT, AT(worker.runner_jobs_max), RANGE(1, 1000000000),
     .default_text = "10000", RELOADS, EXPERT,
     .help = "A runner is replaced after this many jobs …"},
    {"worker.runner_age_ms", MS, AT(worker.runner_age_us), RANGE(1000, 7 * 24 * HOUR_MS),
     .default_text = "3600000", RELOADS, EXPERT, .help = "… or at this age."},
    {"worker.plugin_dir", PATH, AT(worker.plugin_dir), .default_text = "",
     .help = "Folder of the handlers (*.so), writable by its owner only. Empty = "
             "../lib/claimd/plugins relative to the program's folder."},
    {"worker.plugin_owners", LIST, ITEMS(worker.plugin_owners, worker.plugin_owner_count),
     RANGE(0, CONFIG_OWNERS_MAX), .default_text = "",
     .help = "Users (names or numbers) whose plugins and plugin folder are trusted; empty = "
             "root and the worker's own user."},
    {"worker.handlers", PATH, AT(worker.handlers), .default_text = "",
     .help = "Folder of the files (NAME.json) that name handler programs, with an owner as of a "
             "plugin; empty = none."},
    {"worker.commands", COMMANDS, AT(worker.commands), RANGE(0, 64), .default_text = "{}",
     .help = "Commands that `claimctl map` may run here for a row, with {COLUMN} in their "
             "arguments: {\"thumb\": [\"/usr/bin/python3\", \"/srv/t.py\", \"--\", \"{path}\"]}; "
             "each serves the kind command_NAME."},
    {"worker.state_dir", PATH, AT(worker.state_dir), RANGE(1, 0),
     .default_text = "/var/lib/claimd/worker",
     .help = "State folder of this worker alone; locked while it runs."},
    {"worker.runner", PATH, AT(worker.runner), .default_text = "",
     EXPERT, .help = "Path of claimd-runner; empty = next to claimd-worker."},
    {"worker.http_listen", STRING, AT(worker.http_listen), .default_text = "127.0.0.1:8422",
     .help = "Address for /metrics, /healthz and /readyz: host:port or [IPv6]:port; port 0 = "
             "any free port, shown in the log's ready line; empty = off."},

    {"scheduler.look_ahead", COUNT, AT(scheduler.look_ahead), RANGE(1, 1000000),
     .default_text = "10000", RELOADS, EXPERT,
     .help = "Hints to keep ready per queue and priority."},
    {"scheduler.priority_aging_ms", MS, AT(scheduler.priority_aging_us), RANGE(0, 7 * 24 * HOUR_MS),
     .default_text = "0", RELOADS,
     .help = "A due job rises by one priority each time it has waited this long, so that even the "
             "lowest runs in bounded time; 0 = never. Applied by full passes."},
    {"scheduler.look_behind_ms", MS, AT(scheduler.look_behind_us), RANGE(1, 600000),
     .default_text = "2000",
     EXPERT,
     .help = "How far behind its cursor the feed reads again, since transactions commit out of "
             "order."},
    {"scheduler.page_rows", COUNT, AT(scheduler.page_rows), RANGE(1, 10000),
     .default_text = "2000", RELOADS, EXPERT,
     .help = "Maximum number of rows to read in one pass."},
    {"scheduler.full_pass_ms", MS, AT(scheduler.full_pass_us), RANGE(100, 24 * HOUR_MS),
     .default_text = "30000", RELOADS, EXPERT,
     .help = "Interval between full passes over all open jobs."},
    {"scheduler.lead_ttl_ms", MS, AT(scheduler.lead_ttl_us), RANGE(1000, 600000),
     .default_text = "5000", EXPERT, .help = "Duration of the leading scheduler's lease."},
    {"scheduler.lead_try_ms", MS, AT(scheduler.lead_try_us), RANGE(10, 60000),
     .default_text = "1000",
     EXPERT, .help = "How often the other schedulers try to take the lead; less than lead_ttl_ms."},
    {"scheduler.history_days", COUNT, AT(scheduler.history_days), RANGE(1, 3650),
     .default_text = "14", RELOADS, .help = "Number of days to keep finished jobs."},
    {"scheduler.http_listen", STRING, AT(scheduler.http_listen), .default_text = "127.0.0.1:8421",
     .help = "As worker.http_listen."},

    {"web.listen", STRING, AT(web.listen), RANGE(1, 0), .default_text = "127.0.0.1:8420",
     .help = "Address of the page and of the API: host:port or [IPv6]:port; port 0 = any free port, "
             "shown in the log's ready line. Other addresses than the host's own need "
             "web.tokens_file or web.proxies."},
    {"web.mode", CHOICE(web_modes), AT(web.is_operating), .default_text = "read",
     .help = "\"read\": nothing can be changed; \"operate\": operators can act."},
    {"web.tokens_file", PATH, AT(web.tokens_file), .default_text = "", .is_credential = true,
     .help = "File of the tokens, readable by its owner (and group) only: lines of role, name and "
             "token, such as `operator anna 5f2c…`; roles: reader, operator. Read again by "
             "SIGHUP. Empty = systemd's credential `claimd_web_tokens`, if there is one; else nobody "
             "logs in: who reaches web.listen may read, nobody may act."},
    {"web.hosts", LIST, ITEMS(web.hosts, web.host_count), RANGE(0, CONFIG_WEB_NAMES_MAX),
     .default_text = "",
     .help = "Names (host or host:port) by which browsers reach the page, besides localhost and "
             "addresses; requests for other names are refused."},
    {"web.path_prefix", STRING, AT(web.path_prefix), .default_text = "",
     .help = "Path under which a proxy publishes the page, such as /claimd."},
    {"web.proxies", LIST, ITEMS(web.proxies, web.proxy_count), RANGE(0, CONFIG_WEB_NAMES_MAX),
     .default_text = "",
     .help = "Addresses of proxies that say who asks, in web.proxy_user_header."},
    {"web.proxy_user_header", STRING, AT(web.proxy_user_header), RANGE(1, 0),
     .default_text = "X-Forwarded-User",
     .help = "Header with the user's name, believed from web.proxies only. Its users are readers, "
             "unless web.operators names them."},
    {"web.operators", LIST, ITEMS(web.operators, web.operator_count),
     RANGE(0, CONFIG_WEB_NAMES_MAX), .default_text = "",
     .help = "Users of web.proxy_user_header that are operators."},
    {"web.show_args", CHOICE(no_yes), AT(web.shows_args), .default_text = "no",
     .help = "Whether readers see args, metadata, results and checkpoints of jobs; operators always "
             "do."},
    {"web.connections", COUNT, AT(web.connections), RANGE(1, 16), .default_text = "4",
     EXPERT, .help = "Sessions of PostgreSQL, opened when they are needed."},
    {"web.streams", COUNT, AT(web.streams), RANGE(0, 256), .default_text = "256",
     EXPERT, .help = "Browsers that may watch at a time; the others ask every few seconds."},
    {"web.tls_certificate_file", PATH, AT(web.tls_certificate_file), .default_text = "",
     .help = "Certificate chain (PEM) to serve HTTPS; with web.tls_key_file."},
    {"web.tls_key_file", PATH, AT(web.tls_key_file), .default_text = "",
     .help = "Its private key (PEM)."},
    {"web.cluster_name", STRING, AT(web.cluster_name), .default_text = "",
     .help = "Name of the cluster on each page, so that production is not mistaken for staging."},
    {"web.cluster_colour", STRING, AT(web.cluster_colour), .default_text = "",
     .help = "Its colour, such as #b91c1c."},
    {"web.assets_dir", PATH, AT(web.assets_dir), .default_text = "",
     EXPERT, .help = "Serve the page from this folder, while developing it; empty = from the program."},
};
/* clang-format on */
const size_t config_option_count = ARRAY_COUNT(config_options);

const struct option_def *option_find(const char *name)
{
    for (size_t i = 0; i < config_option_count; i++) {
        if (strcmp(config_options[i].name, name) == 0) {
            return &config_options[i];
        }
    }
    return NULL;
}

bool option_env_name(const struct option_def *o, char *ret_name, size_t size)
{
    int n = snprintf(ret_name, size, "CLAIMD_%s", o->name);
    for (char *p = ret_name; *p != '\0'; p++) {
        *p = (char)(*p == '.' ? '_' : toupper((unsigned char)*p));
    }
    return n > 0 && (size_t)n < size;
}
