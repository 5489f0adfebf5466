/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration: one strict schema for all programs. Values from a JSON file override the
 * defaults, and CLAIMD_<SECTION>_<KEY> in the environment overrides both. An unknown key, a wrong
 * type or a value out of range is INVALID; the error names the path, the value and the allowed
 * range. A configuration is immutable once loaded. Times are milliseconds in files and microseconds
 * here, already multiplied by `time_scale`, except the timeouts of servers. Names, defaults and
 * ranges are in config/options.c. */
#ifndef CLAIMD_CONFIG_CONFIG_H
#define CLAIMD_CONFIG_CONFIG_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define CONFIG_KEYS_MAX 96
#define CONFIG_NODES_MAX 9
#define CONFIG_QUEUES_MAX 32
#define CONFIG_OWNERS_MAX 16
#define CONFIG_WEB_NAMES_MAX 16
#define CONFIG_TEXT_MAX 256
#define CONFIG_PATH_MAX 1024
#define CONFIG_COMMANDS_SIZE 16384
#define CONFIG_COMMAND_WORDS_MAX 255

/* The origin of a value. */
enum config_origin { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_ENVIRONMENT };

struct config {
    unsigned char origins[CONFIG_KEYS_MAX]; /* enum config_origin, indexed like config_options */
    double time_scale;                      /* for tests: multiplies the times */
    int log_level;                          /* enum log_level */
    int log_format;                         /* enum log_format */
    char host[CONFIG_TEXT_MAX];             /* "" = gethostname() */
    struct {
        char conninfo[CONFIG_PATH_MAX]; /* postgres.conninfo: keywords or URI, without password */
        char password_file[CONFIG_PATH_MAX]; /* `password` holds its content */
        char password[CONFIG_TEXT_MAX];
        int64_t timeout_us;  /* not scaled */
        int lock_timeout_ms; /* not scaled */
    } postgres;
    struct {
        char prefix[64];
        char user[64];
        char password_file[CONFIG_PATH_MAX];
        char password[CONFIG_TEXT_MAX];
    } redis;
    struct {
        char nodes[CONFIG_NODES_MAX][CONFIG_TEXT_MAX]; /* for redis_endpoint_parse() */
        size_t node_count;
        int64_t ttl_us;
        int64_t node_timeout_us; /* not scaled */
        int64_t guard_us;
        int64_t kill_margin_us;
        int drift_ppm;
        bool trust_fresh; /* lock.fresh_nodes: "quarantine" | "trust" */
    } lock;
    struct {
        char nodes[CONFIG_NODES_MAX][CONFIG_TEXT_MAX]; /* default: the lock nodes */
        size_t node_count;
    } hints;
    struct {
        char queues[CONFIG_QUEUES_MAX][65];
        size_t queue_count;
        int slots; /* 0 = the number of CPUs that the worker may use */
        int64_t beat_us;
        int64_t stale_us;
        int64_t block_us; /* worker.pop_block_ms */
        int batch_max;
        int claim_ahead;
        int64_t drain_us;
        int runner_jobs_max;
        int64_t runner_age_us;
        char plugin_dir[CONFIG_PATH_MAX];
        /* names or uids; none = root and the worker's user */
        char plugin_owners[CONFIG_OWNERS_MAX][64];
        size_t plugin_owner_count;
        char handlers[CONFIG_PATH_MAX];      /* "" = no programs */
        char commands[CONFIG_COMMANDS_SIZE]; /* a JSON object, compact, its keys in order */
        char state_dir[CONFIG_PATH_MAX];
        char runner[CONFIG_PATH_MAX];      /* "" = claimd-runner next to the running program */
        char http_listen[CONFIG_TEXT_MAX]; /* for config_listen() */
    } worker;
    struct {
        int look_ahead;
        int64_t priority_aging_us; /* 0 = never */
        int64_t look_behind_us;
        int page_rows;
        int64_t full_pass_us;
        int64_t lead_ttl_us;
        int64_t lead_try_us;
        int history_days;
        char http_listen[CONFIG_TEXT_MAX];
    } scheduler;
    struct {
        char listen[CONFIG_TEXT_MAX];
        bool is_operating; /* web.mode: "read" | "operate" */
        char tokens_file[CONFIG_PATH_MAX];
        char hosts[CONFIG_WEB_NAMES_MAX][CONFIG_TEXT_MAX];
        size_t host_count;
        char path_prefix[128];
        char proxies[CONFIG_WEB_NAMES_MAX][64];
        size_t proxy_count;
        char proxy_user_header[64];
        char operators[CONFIG_WEB_NAMES_MAX][CONFIG_TEXT_MAX];
        size_t operator_count;
        bool shows_args; /* web.show_args: "no" | "yes" */
        int connections;
        int streams;
        char tls_certificate_file[CONFIG_PATH_MAX];
        char tls_key_file[CONFIG_PATH_MAX];
        char cluster_name[64];
        char cluster_colour[16];
        char assets_dir[CONFIG_PATH_MAX];
    } web;
};

/* Loads the configuration; path NULL: defaults and environment only. Returns INVALID with the place
 * of the error, or NOT_FOUND if the file doesn't exist. */
enum status config_load(const char *path, struct config *ret, struct err *err) MUST_USE;

/* Scales a duration that is not an option by time_scale. */
int64_t config_scaled(const struct config *c, int64_t us);

/* Names of keys, separated by ", "; truncated if there are too many. */
struct config_changes {
    char taken[512];         /* reloadable keys with new values */
    char needs_restart[512]; /* other keys that differ; they keep the old values */
};

/* Reads everything again. *ret gets the new values of the reloadable keys and the values of `old`
 * for all others, so that texts borrowed from `old` are the same in *ret. Fails like config_load()
 * if the new configuration is invalid. */
enum status config_reload(const char *path, const struct config *old, struct config *ret,
                          struct config_changes *ret_changes, struct err *err) MUST_USE;

/* Writes worker.plugin_owners as uids, such as "0,1000"; "" if the list is empty. Returns INVALID
 * if this host has no such user. */
#define CONFIG_UIDS_SIZE (CONFIG_OWNERS_MAX * 12)
enum status config_plugin_owners(const struct config *c, char ret[CONFIG_UIDS_SIZE],
                                 struct err *err) MUST_USE;

/* An address to listen on, split into host and port. config_listen() returns INVALID, naming the
 * key, if the text is malformed. */
struct config_listen {
    bool is_off;
    char host[CONFIG_TEXT_MAX];
    char port[8];
};
enum status config_listen(const char *key, const char *text, struct config_listen *ret,
                          struct err *err) MUST_USE;

/* Writes the libpq conninfo including the password; fails if it doesn't fit into `size`. For
 * pg_open() only: never log it. */
enum status config_conninfo(const struct config *c, char *ret, size_t size,
                            struct err *err) MUST_USE;

#endif
