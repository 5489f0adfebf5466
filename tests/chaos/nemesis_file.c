/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults of the files of a host: its log, its plugins, its configuration. */
#include "base/clock.h"
#include "chaos/host.h"
#include "chaos/nemesis.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#define PATH_SIZE (SERVER_PATH_MAX + 64)
#define LISTENS_US (2 * US_PER_S) /* an earlier signal ends a process that is starting */

/* ---- the log ---- */

static bool change_log(struct world *w, struct nemesis *n, enum host_log log)
{
    struct host *h = nemesis_host(w, n, -1);
    if (h == NULL || h->log != HOST_LOG_FILE) {
        return false;
    }
    nemesis_target(n, "", "%s", h->name);
    h->log = log;
    n->index = (size_t)(h - w->hosts);
    host_kill(w, h);
    h->restart_us = clock_boot_us();
    return true;
}

static bool log_full(struct world *w, struct nemesis *n)
{
    return change_log(w, n, HOST_LOG_FULL);
}

static bool log_stalled(struct world *w, struct nemesis *n)
{
    return change_log(w, n, HOST_LOG_STALLED);
}

/* Closes the reader of the log; the host logs to its file again from its next start on. */
static void log_ends(struct world *w, struct nemesis *n)
{
    struct host *h = &w->hosts[n->index];
    h->log = HOST_LOG_FILE;
    host_close_log(h);
    host_terminate(w, h, clock_boot_us());
    h->restart_us = clock_boot_us();
}

/* ---- plugins ---- */

static void hangup_all(struct world *w)
{
    for (size_t i = 0; i < w->host_count; i++) {
        bool listens = clock_boot_us() - w->hosts[i].started_us > LISTENS_US;
        if (w->hosts[i].pid > 0 && listens) {
            (void)kill(w->hosts[i].pid, SIGHUP);
        }
    }
}

static bool bad_plugin(struct world *w, struct nemesis *n)
{
    static const struct {
        const char *what;
        const char *file;
        size_t most; /* bytes */
    } kinds[] = {{"truncated", CHAOS_PLUGIN_DIR "/chaos.so", 9000},
                 {"empty", CHAOS_PLUGIN_DIR "/chaos.so", 0},
                 {"wrong ABI", CHAOS_BAD_PLUGIN_DIR "/wrong_abi.so", SIZE_MAX},
                 {"no symbol", CHAOS_BAD_PLUGIN_DIR "/no_symbol.so", SIZE_MAX},
                 {"crashes when loaded", CHAOS_BAD_PLUGIN_DIR "/ctor_crash.so", SIZE_MAX}};
    size_t kind = (size_t)rand_below(&n->rand, ARRAY_COUNT(kinds));
    nemesis_target(n, kinds[kind].what, "chaos.so");
    return world_put_plugin(w, kinds[kind].file, kinds[kind].most);
}

static void good_plugin(struct world *w, struct nemesis *n)
{
    (void)n;
    (void)world_put_plugin(w, CHAOS_PLUGIN_DIR "/chaos.so", SIZE_MAX);
    hangup_all(w);
}

/* ---- the configuration ---- */

static bool put_config(struct world *w, const char *text)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s.bad", w->config_path);
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        return false;
    }
    (void)fputs(text, file);
    return fclose(file) == 0 && rename(path, w->config_path) == 0;
}

static bool sighup_bad(struct world *w, struct nemesis *n)
{
    static const char *const texts[] = {"{", "", "{\"nobody\": {\"knows\": 1}}",
                                        "{\"worker\": {\"slots\": -1}}", "[1, 2, 3]"};
    size_t which = (size_t)rand_below(&n->rand, ARRAY_COUNT(texts));
    nemesis_target(n, texts[which], "all");
    bool is_put = put_config(w, texts[which]);
    hangup_all(w);
    return is_put;
}

static void sighup_good(struct world *w, struct nemesis *n)
{
    struct err why = {0};
    (void)n;
    if (world_write_config(w, &why) != STATUS_OK) {
        world_violation(w, "kit", "%s", why.msg);
    }
    hangup_all(w);
}

const struct nemesis_def nemesis_file_defs[] = {
    {"log_full", "a daemon's log is on a full disk", COUNT_OTHER, TRAIT_SPARES_RESCUES, 60000, 3000,
     20000, log_full, log_ends},
    {"log_stalled", "a daemon's log is not read, then its reader goes away", COUNT_OTHER,
     TRAIT_SPARES_RESCUES, 60000, 3000, 20000, log_stalled, log_ends},
    {"bad_plugin", "an invalid plugin is moved over the good one", COUNT_OTHER,
     TRAIT_SPARES_RESCUES, 90000, 500, 10000, bad_plugin, good_plugin},
    {"sighup_bad", "SIGHUP of all daemons with an invalid configuration", COUNT_OTHER,
     TRAIT_SPARES_RESCUES, 60000, 500, 5000, sighup_bad, sighup_good},
};
const size_t nemesis_file_count = ARRAY_COUNT(nemesis_file_defs);
