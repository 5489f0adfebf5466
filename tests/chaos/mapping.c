/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/mapping.h"

#include "base/clock.h"
#include "cluster/child.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

#define PATH_SIZE (SERVER_PATH_MAX + 64)
#define FIRST_N 2000000000 /* jobs of the load have other numbers */
#define AGAIN_US (300 * US_PER_MS)
#define LOOK_US (2 * US_PER_S)
#define CONFIG "%s/claimctl.json" /* below the world's folder */
#define STILL_US (120 * US_PER_S)

/* The rows may exist as jobs or not; those that do must be completed, and mapping_finish() counts
 * them. */
static enum status announce(const struct world *w, struct err *err)
{
    struct journal acked;
    enum status st = journal_open(&w->folder, "acked.jsonl", &acked, err);
    for (int64_t i = 0; st == STATUS_OK && i < w->options->map_rows; i++) {
        journal_write(&acked, json_pack("{s:s, s:s, s:I, s:s, s:s}", "op", "enqueue", "ph", "info",
                                        "n", (json_int_t)(FIRST_N + i), "kind", "c_short", "expect",
                                        "completed"));
    }
    journal_close(&acked);
    return st;
}

/* A configuration of its own, since faults damage that of the daemons. */
static enum status write_config(const struct world *w, struct err *err)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, CONFIG, w->dir);
    json_auto_t *all = json_pack("{s:{s:s}}", "postgres", "conninfo", w->net_conninfo);
    return all != NULL && json_dump_file(all, path, 0) == 0
               ? STATUS_OK
               : err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
}

enum status mapping_prepare(struct world *w, struct err *err)
{
    char ledger[PATH_SIZE];
    if (w->options->map_rows == 0) {
        return STATUS_OK;
    }
    folder_at(&w->folder, "ledger/effects.jsonl", ledger, sizeof ledger);
    enum status st =
        session_do(&w->sql, err,
                   "CREATE TABLE chaos.asset (n bigint PRIMARY KEY, path text, ms int);"
                   " INSERT INTO chaos.asset SELECT %d + i, '%s', i %% 5"
                   " FROM generate_series(0, %lld) AS i",
                   FIRST_N, ledger, (long long)w->options->map_rows - 1);
    if (st != STATUS_OK) {
        return st;
    }
    st = write_config(w, err);
    return st == STATUS_OK ? announce(w, err) : st;
}

/* Every other call attaches to the map instead of making the same call again, which reads the whole
 * query once more. */
static void start(struct world *w)
{
    char places[16];
    (void)snprintf(places, sizeof places, "%d", MAPPING_PLACES);
    const char *const both[][12] = {{"map", "--sql", "TABLE chaos.asset", "--kind", "c_short",
                                     "--batch", "storm", "--concurrency", places, "--wait",
                                     "--quiet", NULL},
                                    {"map", "attach", "storm", "--quiet", NULL}};
    const char *const *words = both[w->map.starts % 3 == 2 ? 1 : 0];
    char claimctl[PATH_SIZE];
    char config[PATH_SIZE];
    char log[PATH_SIZE];
    struct err why = {0};
    const char *argv[16] = {claimctl, "--config", config};
    (void)snprintf(config, sizeof config, CONFIG, w->dir);
    (void)snprintf(claimctl, sizeof claimctl, "%s/claimctl", w->bin_dir);
    (void)snprintf(log, sizeof log, "%s/logs/claimctl.log", w->folder.path);
    for (size_t i = 0; words[i] != NULL; i++) {
        argv[3 + i] = words[i];
    }
    if (program_start(argv, NULL, log, &w->map.pid, &why) == STATUS_OK) {
        w->map.starts++;
        w->map.starts_all++;
    }
}

void mapping_tick(struct world *w, int64_t now_us)
{
    int status = -1;
    if (w->options->map_rows == 0 || w->map.is_over) {
        return;
    }
    if (w->map.pid > 0 && child_is_gone(w->map.pid, &status)) {
        w->map.pid = 0;
        w->map.start_us = now_us + AGAIN_US;
        w->map.is_over = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    } else if (w->map.pid == 0 && now_us >= w->map.start_us) {
        start(w);
    }
}

/* Returns how many rows have ended, which is less than all rows while there is no answer. */
static int64_t count_ended(struct world *w)
{
    struct err why = {0};
    int64_t ended = -1;
    enum status st = session_i64(&w->sql, &ended, &why,
                                 "SELECT completed + failed + cancelled FROM claimd.maps"
                                 " WHERE name = 'storm'");
    return st == STATUS_OK ? ended : -1;
}

/* Asks again if the connection is lost: PostgreSQL may have been killed since the last answer. */
static enum status ask(struct world *w, const char *sql, int64_t *ret, struct err *err)
{
    int64_t end_us = clock_boot_us() + STILL_US;
    enum status st = session_i64(&w->sql, ret, err, "%s", sql);
    while ((st == STATUS_UNAVAILABLE || st == STATUS_UNKNOWN) && clock_boot_us() < end_us) {
        world_turn(w);
        *err = (struct err){0};
        st = session_i64(&w->sql, ret, err, "%s", sql);
    }
    return st;
}

static void expect(struct world *w, const char *what, int64_t expected, const char *sql)
{
    struct err why = {0};
    int64_t found = -1;
    enum status st = ask(w, sql, &found, &why);
    if (st != STATUS_OK) {
        world_violation(w, "map", "%s: %s", what, why.msg);
    } else if (found != expected) {
        world_violation(w, "map", "%s: %lld instead of %lld (inv.S25)", what, (long long)found,
                        (long long)expected);
    }
}

static void call_again(struct world *w)
{
    w->map.is_over = false;
    w->map.starts = 0;
    while (!w->map.is_over) {
        world_turn(w);
        mapping_tick(w, clock_boot_us());
    }
}

void mapping_finish(struct world *w)
{
    int64_t moved_us = clock_boot_us();
    int64_t look_us = 0;
    int64_t ended = -1;
    int64_t rows = w->options->map_rows;
    while (!w->map.is_over && clock_boot_us() - moved_us < STILL_US) {
        world_turn(w);
        mapping_tick(w, clock_boot_us());
        if (clock_boot_us() >= look_us) {
            look_us = clock_boot_us() + LOOK_US;
            int64_t now = count_ended(w);
            moved_us = now != ended ? clock_boot_us() : moved_us;
            ended = now;
        }
    }
    if (!w->map.is_over) {
        world_violation(w, "map", "stands still with %lld rows of %lld ended (inv.L1)",
                        (long long)ended, (long long)rows);
        return;
    }
    call_again(w);
    expect(w, "rows", rows, "SELECT rows FROM claimd.maps WHERE name = 'storm'");
    expect(w, "completed", rows, "SELECT completed FROM claimd.maps WHERE name = 'storm'");
    expect(w, "rows in map_done", rows,
           "SELECT count(*) FROM claimd.map_done WHERE state = 'completed'");
    expect(w, "jobs of the map", rows,
           "SELECT count(*) FROM claimd.job_history WHERE exclusive_key = '" MAPPING_KEY "'");
    expect(w, "rows completed by two jobs", 0,
           "SELECT count(*) FROM (SELECT FROM claimd.job_history WHERE exclusive_key ="
           " '" MAPPING_KEY "' GROUP BY args->>'n' HAVING count(*) > 1) AS twice");
    (void)printf("map: %lld rows, claimctl started %lld times\n", (long long)rows,
                 (long long)w->map.starts_all);
}
