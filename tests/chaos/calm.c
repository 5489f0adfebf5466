/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/calm.h"

#include "base/buf.h"
#include "base/clock.h"
#include "chaos/db_check.h"
#include "chaos/host.h"
#include "cluster/child.h"

#include <poll.h>
#include <stdio.h>

#define WHOLE_US (60 * US_PER_S)
#define DRAIN_MIN_US (90 * US_PER_S) /* however small the time scale: the machine is not faster */
#define DRAIN_US (60 * US_PER_S)
#define HURRY_US (5 * US_PER_S)
#define IDLE_US (2 * US_PER_S)
#define BUSY_PERCENT 25
#define DUMP_US (120 * US_PER_S)
#define DUMP_MAX ((size_t)1 << 20)

void calm_hurry(struct world *w)
{
    struct err why = {0};
    int64_t end_us = clock_boot_us() + WHOLE_US;
    int64_t moved = 0;
    enum status st = STATUS_UNAVAILABLE;
    while (st != STATUS_OK && clock_boot_us() < end_us) {
        world_turn(w);
        st = session_i64(&w->sql, &moved, &why,
                         "WITH moved AS (UPDATE claimd.job SET scheduled_at = clock_timestamp()"
                         " WHERE state = 'available' AND ready_at > clock_timestamp()"
                         " + interval '1 s' AND scheduled_at <> claimd.job_waits() RETURNING 1)"
                         " SELECT count(*) FROM moved");
    }
    if (st != STATUS_OK || moved > 0) {
        journal_write(&w->nemesis, json_pack("{s:s, s:s, s:i}", "ph", "info", "x", "hurry",
                                             "traits", TRAIT_SPARES_RESCUES | TRAIT_SPARES_WAITS));
    }
}

/* Returns how many jobs should be done by now, since they have been due for longer than `late_us`;
 * −1: no answer. An unfinished batch counts as a job, since its follow-up is still to come; so does
 * an insert in flight whose reply was not awaited. */
static int64_t overdue(struct world *w, int64_t late_us, int64_t *ret_open)
{
    struct err why = {0};
    int64_t late = -1;
    if (session_i64(&w->sql, &late, &why,
                    "SELECT count(*) FROM claimd.job WHERE ready_at < clock_timestamp() - %lld *"
                    " interval '1 us'",
                    (long long)late_us) != STATUS_OK ||
        session_i64(&w->sql, ret_open, &why,
                    "SELECT (SELECT count(*) FROM claimd.job) + (SELECT count(*) FROM claimd.batch"
                    " WHERE over_at IS NULL) + (SELECT count(*) FROM pg_stat_activity WHERE"
                    " usename = current_user AND datname = current_database()"
                    " AND state <> 'idle' AND pid <> pg_backend_pid())") != STATUS_OK) {
        return -1;
    }
    return late;
}

static void wait_drained(struct calm *c, struct world *w, int64_t last_fault_us)
{
    int64_t scaled_us = world_scaled(w, DRAIN_US);
    int64_t bound_us = scaled_us > DRAIN_MIN_US ? scaled_us : DRAIN_MIN_US;
    int64_t open = 1;
    int64_t hurry_us = clock_boot_us() + HURRY_US;
    c->drain_us = -1;
    for (;;) {
        world_turn(w);
        int64_t past_us = clock_boot_us() - last_fault_us;
        int64_t late = overdue(w, bound_us, &open);
        if (late >= 0 && open == 0) {
            c->drain_us = past_us;
            return;
        }
        if (clock_boot_us() >= hurry_us) { /* for jobs that have failed again since the last time */
            hurry_us = clock_boot_us() + HURRY_US;
            calm_hurry(w);
        }
        if (past_us > bound_us && (late > 0 || past_us > 3 * bound_us)) {
            (void)printf("%lld jobs are open %lld s after the last fault, %lld of them were due"
                         " before\n",
                         (long long)open, (long long)(past_us / US_PER_S), (long long)late);
            return;
        }
    }
}

/* No work is left now, so a daemon that uses CPU time spins. */
static void look_for_spinners(struct world *w)
{
    int64_t before[WORLD_HOSTS_MAX];
    for (size_t i = 0; i < w->host_count; i++) {
        before[i] = process_cpu_us(w->hosts[i].pid);
    }
    (void)poll(NULL, 0, (int)(IDLE_US / US_PER_MS));
    for (size_t i = 0; i < w->host_count; i++) {
        int64_t used_us = process_cpu_us(w->hosts[i].pid) - before[i];
        if (used_us * 100 > IDLE_US * BUSY_PERCENT) {
            world_violation(w, w->hosts[i].name, "takes %lld %% of a core and has nothing to do",
                            (long long)(used_us * 100 / IDLE_US));
        }
    }
}

static bool is_running(const struct world *w)
{
    for (size_t i = 0; i < w->host_count; i++) {
        if (w->hosts[i].pid > 0) {
            return true;
        }
    }
    return false;
}

static void end_daemons(struct world *w)
{
    for (size_t i = 0; i < w->host_count; i++) {
        host_terminate(w, &w->hosts[i], clock_boot_us());
        w->hosts[i].restart_us = WORLD_NEVER - 1; /* never restarted */
    }
    while (is_running(w)) { /* host_tick() kills daemons that do not end */
        world_turn(w);
    }
}

static void ask_database(struct world *w)
{
    struct err why = {0};
    if (db_check_export(w, &why) != STATUS_OK) {
        world_violation(w, "db verify", "%s", why.msg);
    }
}

void calm_down(struct calm *c, struct world *w, int64_t last_fault_us)
{
    world_await_whole(w, WHOLE_US);
    wait_drained(c, w, last_fault_us);
    if (c->drain_us >= 0) {
        look_for_spinners(w);
    }
    ask_database(w);
    end_daemons(w);
}

void calm_keep_dump(struct world *w)
{
    char pg_dump[SERVER_PATH_MAX];
    char path[SERVER_PATH_MAX + 64];
    int code = -1;
    struct err why = {0};
    autobuf struct buf out = BUF_INIT(DUMP_MAX);
    if (world_primary(w)->pid <= 0 ||
        child_find_program("pg_dump", pg_dump, sizeof pg_dump, &why) != STATUS_OK) {
        return;
    }
    (void)snprintf(path, sizeof path, "--file=%s/logs/dump.sql", w->folder.path);
    const char *const argv[] = {pg_dump, path, "-d", w->conninfo, NULL};
    if (program_run(argv, NULL, DUMP_US, &out, &code, &why) != STATUS_OK || code != 0) {
        (void)printf("no dump: %s%s\n", why.msg, out.len > 0 ? buf_at(&out) : "");
    }
}
