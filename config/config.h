/* SPDX-License-Identifier: Apache-2.0
 *
 * One strict schema for all programs. A file (JSON), then CLAIMD_<SECTION>_<KEY> from the
 * environment, over the defaults. Unknown key, wrong type or out of range: INVALID with path, value
 * and allowed range. Immutable after loading. All times are microseconds here (milliseconds in
 * files), already multiplied by `time_scale`, but for what a server needs to answer. */
#ifndef CLAIMD_CONFIG_CONFIG_H
#define CLAIMD_CONFIG_CONFIG_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define CONFIG_KEYS_MAX 96
#define CONFIG_NODES_MAX 9
#define CONFIG_QUEUES_MAX 32
#define CONFIG_OWNERS_MAX 16
#define CONFIG_TEXT_MAX 256
#define CONFIG_PATH_MAX 1024

/* Where a value came from. */
enum config_origin { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_ENVIRONMENT };

struct config {
    unsigned char origins[CONFIG_KEYS_MAX]; /* enum config_origin, in the order of the options */
    double time_scale;                      /* tests: all times × this */
    int log_level;                          /* enum log_level */
    int log_format;                         /* enum log_format */
    char host[CONFIG_TEXT_MAX];             /* "" = gethostname() */
    struct {
        char conninfo[CONFIG_PATH_MAX]; /* postgres.conninfo: keywords or URI, without password */
        char password_file[CONFIG_PATH_MAX]; /* its content is in `password` */
        char password[CONFIG_TEXT_MAX];
        int64_t timeout_us;  /* 5 s; not scaled */
        int lock_timeout_ms; /* 200; not scaled */
    } postgres;
    struct {
        char prefix[64]; /* "claimd" */
        char user[64];
        char password_file[CONFIG_PATH_MAX];
        char password[CONFIG_TEXT_MAX];
    } redis;
    struct {
        char nodes[CONFIG_NODES_MAX][CONFIG_TEXT_MAX]; /* texts for redis_endpoint_parse() */
        size_t node_count;
        int64_t ttl_us;          /* lock.ttl_ms 10 s */
        int64_t node_timeout_us; /* lock.node_timeout_ms 100 ms; not scaled */
        int64_t guard_us;        /* lock.guard_ms 2 s */
        int64_t kill_margin_us;  /* lock.kill_margin_ms 0.5 s */
        int drift_ppm;           /* 10000 */
        bool trust_fresh;        /* lock.fresh_nodes: "quarantine" | "trust" */
    } lock;
    struct {
        char nodes[CONFIG_NODES_MAX][CONFIG_TEXT_MAX]; /* default: the lock nodes */
        size_t node_count;
    } hints;
    struct {
        char queues[CONFIG_QUEUES_MAX][65]; /* ["default"] */
        size_t queue_count;
        int slots;             /* 0 = as many as CPUs that it may use */
        int64_t beat_us;       /* worker.beat_ms 2 s */
        int64_t stale_us;      /* worker.stale_ms 8 s */
        int64_t block_us;      /* worker.pop_block_ms 4 s */
        int batch_max;         /* 500 */
        int claim_ahead;       /* 1,000 */
        int64_t drain_us;      /* worker.drain_ms 30 s */
        int runner_jobs_max;   /* 10,000 */
        int64_t runner_age_us; /* worker.runner_age_ms 1 h */
        char plugin_dir[CONFIG_PATH_MAX];
        char plugin_owners[CONFIG_OWNERS_MAX][64]; /* names or uids; none: root and ours */
        size_t plugin_owner_count;
        char handlers[CONFIG_PATH_MAX]; /* "" = no programs */
        char state_dir[CONFIG_PATH_MAX];
        char runner[CONFIG_PATH_MAX];      /* "" = claimd-runner beside the running program */
        char http_listen[CONFIG_TEXT_MAX]; /* for config_listen() */
    } worker;
    struct {
        int look_ahead;            /* 10,000 */
        int64_t priority_aging_us; /* 0 = never */
        int64_t look_behind_us;    /* 2 s */
        int page_rows;             /* 2,000 */
        int64_t full_pass_us;      /* scheduler.full_pass_ms 30 s */
        int64_t lead_ttl_us;       /* 5 s */
        int64_t lead_try_us;       /* 1 s */
        int history_days;          /* 14 */
        char http_listen[CONFIG_TEXT_MAX];
    } scheduler;
};

/* path NULL: defaults and environment only. INVALID with the place; NOT_FOUND when the file isn't
 * there. */
enum status config_load(const char *path, struct config *ret, struct err *err) MUST_USE;

/* A time that is no option, for a process whose times are scaled. */
int64_t config_scaled(const struct config *c, int64_t us);

/* Names of keys, parted by ", "; cut when there are too many. */
struct config_changes {
    char taken[512];         /* reloadable ones whose values are new */
    char needs_restart[512]; /* others that differ: the old values stay */
};

/* Reads everything again. *ret holds the new values of what is reloadable, else those of `old`, so
 * that texts that were borrowed from `old` are the same in it. As config_load() where the file is
 * no longer good. */
enum status config_reload(const char *path, const struct config *old, struct config *ret,
                          struct config_changes *ret_changes, struct err *err) MUST_USE;

/* worker.plugin_owners as uids, "0,1000"; "" where the list is empty. INVALID: no such user
 * here. */
#define CONFIG_UIDS_SIZE (CONFIG_OWNERS_MAX * 12)
enum status config_plugin_owners(const struct config *c, char ret[CONFIG_UIDS_SIZE],
                                 struct err *err) MUST_USE;

/* An address to listen on, in its parts. INVALID names the key. */
struct config_listen {
    bool is_off;
    char host[CONFIG_TEXT_MAX];
    char port[8];
};
enum status config_listen(const char *key, const char *text, struct config_listen *ret,
                          struct err *err) MUST_USE;

/* The libpq conninfo with the password put in; bound by `size`. For pg_open() only: never log
 * it. */
enum status config_conninfo(const struct config *c, char *ret, size_t size,
                            struct err *err) MUST_USE;

#endif
