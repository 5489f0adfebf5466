/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor: compares the status reports of daemons with what healthy daemons report. */
#include "base/clock.h"
#include "ctl/commands/doctor/doctor.h"
#include "ctl/commands/doctor/unfed.h"
#include "ctl/core/ctl.h"
#include "model/feed_full.h"
#include "sql/queries.h"

#include <stdio.h>
#include <stdlib.h>

#define PASS_MAX_US (15 * US_PER_S)        /* a leader looks each second, steps down after 10 s */
#define UNCOMMITTED_MAX_US (10 * US_PER_S) /* twice the longest time of a request */
#define CLOCK_WARN_US (1 * US_PER_S)
#define CLOCK_FAIL_US (5 * US_PER_S)
#define STEP_TOLD_US (600 * US_PER_S) /* how long a jump of the clock is reported */
#define NAMES_MAX 400
#define UNFED_NAMED 3
#define UNFED_LANES_MAX 20000 /* looked at by the check 'unfed' of sql/check.sql */
#define LAP_WARN_US (10 * US_PER_S)

static int64_t scaled(const struct config *config, int64_t us)
{
    return (int64_t)((double)us * config->time_scale);
}

static long long seconds(int64_t us)
{
    return (long long)(us / US_PER_S);
}

/* Appends a name, separated by a comma. Names that do not fit are left out. */
static void add_name(char names[NAMES_MAX], const char *name)
{
    size_t len = strlen(names);
    if (len + strlen(name) + 3 < NAMES_MAX) {
        (void)snprintf(names + len, NAMES_MAX - len, "%s%s", len > 0 ? ", " : "", name);
    }
}

/* ---- workers ---- */

struct clocks {
    int daemons;
    int off; /* daemons whose clocks are off by CLOCK_FAIL_US or more */
    int64_t future_us;
};

enum { HOST, PID }; /* columns of both results */

enum {
    WORKER_NODES = 2,
    WORKER_VOTING,
    WORKER_UNCOMMITTED,
    WORKER_UNCOMMITTED_US,
    WORKER_TROUBLE,
    WORKER_AHEAD_US,
    WORKER_FUTURE_US
};

static void note_clock(struct clocks *c, int64_t ahead_us)
{
    c->daemons++;
    c->off += llabs(ahead_us) >= CLOCK_FAIL_US;
}

static bool has_quorum(const struct admin_rows *rows, int row)
{
    int64_t nodes = doctor_number(rows, row, WORKER_NODES);
    return nodes == 0 || doctor_number(rows, row, WORKER_VOTING) >= nodes / 2 + 1;
}

static int count_cut_off(const struct admin_rows *rows)
{
    int count = 0;
    for (int i = 0; i < admin_row_count(rows); i++) {
        count += !has_quorum(rows, i);
    }
    return count;
}

/* A worker without a quorum claims nothing, even if everything else is well. */
static void check_votes(struct report *r, const struct admin_rows *rows)
{
    char names[NAMES_MAX] = "";
    int cut_off = count_cut_off(rows);
    int count = admin_row_count(rows);
    for (int i = 0; i < count; i++) {
        char name[160];
        (void)snprintf(name, sizeof name, "%s (pid %s) has %lld of %lld",
                       admin_value(rows, i, HOST), admin_value(rows, i, PID),
                       (long long)doctor_number(rows, i, WORKER_VOTING),
                       (long long)doctor_number(rows, i, WORKER_NODES));
        if (!has_quorum(rows, i)) {
            add_name(names, name);
        }
    }
    if (cut_off > 0) {
        report_say(r, cut_off == count ? HEALTH_FAIL : HEALTH_WARN, "votes",
                   "see event=node_down and node_refused in the workers' logs; check the network, "
                   "redis.user, redis.password_file; a node that has just started will vote soon",
                   "%s claim nothing: too few lock nodes vote for them: %s",
                   cut_off == count ? "all live workers" : "some workers", names);
    } else if (count > 0) {
        report_say(r, HEALTH_OK, "votes", NULL, "every live worker has a quorum of lock nodes");
    }
}

static void check_results(struct report *r, const struct config *config,
                          const struct admin_rows *rows)
{
    bool is_well = true;
    for (int i = 0; i < admin_row_count(rows); i++) {
        int64_t age_us = doctor_number(rows, i, WORKER_UNCOMMITTED_US);
        const char *trouble = admin_value(rows, i, WORKER_TROUBLE);
        if (age_us < scaled(config, UNCOMMITTED_MAX_US)) {
            continue;
        }
        is_well = false;
        report_say(r, HEALTH_FAIL, "results",
                   "fix what PostgreSQL reports; the results are kept and tried again, and the "
                   "jobs' leases held",
                   "%s (pid %s) can't commit the results of %s jobs, the oldest for %lld s%s%s",
                   admin_value(rows, i, HOST), admin_value(rows, i, PID),
                   admin_value(rows, i, WORKER_UNCOMMITTED), seconds(age_us),
                   trouble[0] != '\0' ? ": " : "", trouble);
    }
    if (is_well && admin_row_count(rows) > 0) {
        report_say(r, HEALTH_OK, "results", NULL, "none is waiting to be committed");
    }
}

/* Reports files that workers refused. doctor_plugins.c checks the files of this host as well, but
 * only workers know how a program behaves when it starts. */
static enum status check_refused(struct report *r, struct admin *a, bool has_workers,
                                 struct err *err)
{
    enum { REFUSED, WORKERS };
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_DOCTOR_REFUSED, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (int i = 0; i < admin_row_count(rows); i++) {
        report_say(r, HEALTH_FAIL, "handlers",
                   "fix or remove the file; it is tried again within 10 minutes, at SIGHUP at once",
                   "not served by %s: %s", admin_value(rows, i, WORKERS),
                   admin_value(rows, i, REFUSED));
    }
    if (admin_row_count(rows) == 0 && has_workers) {
        report_say(r, HEALTH_OK, "handlers", NULL, "live workers serve all of their files");
    }
    return STATUS_OK;
}

static enum status check_workers(struct report *r, const struct config *config, struct admin *a,
                                 struct clocks *clocks, struct err *err)
{
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_DOCTOR_WORKERS, NULL, &rows, err);
    if (st == STATUS_OK && count_cut_off(rows) > 0) { /* may be over since the last heartbeat */
        ctl_rest(config->worker.beat_us + config->worker.beat_us / 4);
        admin_rows_free(TAKE(rows));
        st = admin_query(a, &SQL_ADMIN_DOCTOR_WORKERS, NULL, &rows, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    for (int i = 0; i < admin_row_count(rows); i++) {
        int64_t future_us = doctor_number(rows, i, WORKER_FUTURE_US);
        note_clock(clocks, doctor_number(rows, i, WORKER_AHEAD_US));
        clocks->future_us = future_us > clocks->future_us ? future_us : clocks->future_us;
    }
    check_votes(r, rows);
    check_results(r, config, rows);
    return check_refused(r, a, admin_row_count(rows) > 0, err);
}

/* ---- schedulers ---- */

enum {
    IS_HEARD = 2,
    LEADS,
    BEAT_US,
    LEADS_US,
    PASS_US,
    SCHEDULER_NODES,
    SCHEDULER_VOTING,
    AHEAD_US,
    STEP_US,
    STEPPED_US,
    LAST_ERROR,
    FULL_AGE_US,
    FULL_TOOK_US,
    LANES,
    LAP_QUEUE,
    LAP_US
};

static bool is_true(const struct admin_rows *rows, int row, int column)
{
    return strcmp(admin_value(rows, row, column), "t") == 0;
}

static void check_leader(struct report *r, const struct config *config,
                         const struct admin_rows *rows, int row)
{
    int64_t pass_us = doctor_number(rows, row, PASS_US);
    const char *error = admin_value(rows, row, LAST_ERROR);
    bool is_feeding = pass_us < scaled(config, PASS_MAX_US);
    report_say(r, is_feeding ? HEALTH_OK : HEALTH_FAIL, "feed",
               "see event=feed_failed and hints_down in its log; if nothing helps, restart it: "
               "nothing is lost",
               "%s (pid %s) leads, and %s %lld s ago%s%s", admin_value(rows, row, HOST),
               admin_value(rows, row, PID),
               is_feeding ? "has fed" : "does not feed: its last good pass was", seconds(pass_us),
               !is_feeding && error[0] != '\0' ? "; last error: " : "", is_feeding ? "" : error);
}

/* Checks the safety net below the feed (G8), the full pass: how long may a job wait whose hint was
 * lost? */
static void check_full_pass(struct report *r, const struct config *config,
                            const struct admin_rows *rows, int row)
{
    int64_t age_us = doctor_number(rows, row, FULL_AGE_US);
    int64_t took_us = doctor_number(rows, row, FULL_TOOK_US);
    int64_t every_us = feed_full_distance_us(config->scheduler.full_pass_us, took_us);
    bool is_late = age_us > 2 * (every_us + took_us) + scaled(config, PASS_MAX_US);
    bool is_rare = every_us > config->scheduler.full_pass_us;
    report_say(
        r, is_late || is_rare ? HEALTH_WARN : HEALTH_OK, "full pass",
        is_late ? "see event=full_pass_failed in the leader's log"
                : "end long transactions (pg_stat_activity, backend_xmin): until then vacuum can't "
                  "remove dead rows",
        "began %lld s ago, %s %.1f s; one runs every %lld s: a lost hint is found within that time",
        seconds(age_us), took_us > 0 ? "the last complete one took" : "none is complete,",
        (double)took_us / (double)US_PER_S, seconds(every_us + took_us));
}

/* If there are more lanes than there is room for: how long may a due job of that queue wait for its
 * hint? */
static void check_laps(struct report *r, const struct admin_rows *rows, int row)
{
    const char *queue = admin_value(rows, row, LAP_QUEUE);
    int64_t lap_us = doctor_number(rows, row, LAP_US);
    if (queue[0] != '\0') {
        report_say(r, lap_us < LAP_WARN_US ? HEALTH_OK : HEALTH_WARN, "laps",
                   lap_us < LAP_WARN_US
                       ? NULL
                       : "add workers for that queue, or give its jobs fewer share_keys",
                   "queue %s has more tenants than there is room for: they are walked in laps of "
                   "%.1f s, and a due job may wait that long for its hint",
                   queue, (double)lap_us / (double)US_PER_S);
    }
}

static void check_steps(struct report *r, const struct admin_rows *rows)
{
    for (int i = 0; i < admin_row_count(rows); i++) {
        int64_t step_us = doctor_number(rows, i, STEP_US);
        int64_t stepped_us = doctor_number(rows, i, STEPPED_US);
        if (is_true(rows, i, IS_HEARD) && step_us != 0 && stepped_us < STEP_TOLD_US) {
            report_say(r, HEALTH_FAIL, "clock", "make its host slew the clock (NTP), never step it",
                       "PostgreSQL's clock jumped by %+lld s, %lld s ago, as %s saw it",
                       seconds(step_us), seconds(stepped_us), admin_value(rows, i, HOST));
            return; /* the other schedulers saw the same jump */
        }
    }
}

static enum status check_schedulers(struct report *r, const struct config *config, struct admin *a,
                                    struct clocks *clocks, struct err *err)
{
    int heard = 0;
    int leaders = 0;
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_SCHEDULERS, NULL, &rows, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (int i = 0; i < admin_row_count(rows); i++) {
        if (!is_true(rows, i, IS_HEARD)) {
            continue;
        }
        heard++;
        note_clock(clocks, doctor_number(rows, i, AHEAD_US));
        if (is_true(rows, i, LEADS)) {
            leaders++;
            check_leader(r, config, rows, i);
            check_full_pass(r, config, rows, i);
            check_laps(r, rows, i);
            r->lanes = doctor_number(rows, i, LANES);
        }
    }
    check_steps(r, rows);
    if (heard == 0) {
        report_say(r, HEALTH_FAIL, "schedulers",
                   "start claimd-scheduler; if it exits, its log says why",
                   "none is alive: nothing is fed, nothing rescued");
    } else if (leaders == 0) {
        report_say(r, HEALTH_FAIL, "schedulers",
                   "see their logs: node_down, node_quarantined (wait), leader_lost",
                   "none of %d leads: due jobs are not fed", heard);
    } else {
        report_say(r, leaders == 1 ? HEALTH_OK : HEALTH_WARN, "schedulers",
                   "harmless for a moment while the leader changes; if it persists, check the lock "
                   "nodes' clocks",
                   "%d run%s, %d lead%s", heard, heard == 1 ? "s" : "", leaders,
                   leaders == 1 ? "s" : "");
    }
    return STATUS_OK;
}

/* ---- PostgreSQL's clock ---- */

/* Compares it with the clock of this host; daemons on other hosts show which of the two is
 * wrong. */
static enum status check_clock(struct report *r, struct admin *a, const struct clocks *c,
                               struct err *err)
{
    int64_t pg_us = 0;
    int64_t before_us = clock_wall_us();
    enum status st = verb_now(a, &pg_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t ahead_us = pg_us - (before_us + clock_wall_us()) / 2;
    bool is_off = llabs(ahead_us) >= CLOCK_FAIL_US;
    bool is_ours = is_off && c->daemons > 0 && c->off == 0;
    bool is_theirs = !is_off && c->daemons > 0 && 2 * c->off > c->daemons;
    enum health health = is_ours                                          ? HEALTH_WARN
                         : is_off || is_theirs                            ? HEALTH_FAIL
                         : llabs(ahead_us) >= CLOCK_WARN_US || c->off > 0 ? HEALTH_WARN
                                                                          : HEALTH_OK;
    report_say(r, health, "clock", "synchronise the clocks of all hosts (NTP)",
               "PostgreSQL's is %+.1f s against this host%s; %d of %d daemons see it off by 5 s or "
               "more",
               (double)ahead_us / US_PER_S, is_ours ? ", which seems to be the wrong one" : "",
               c->off, c->daemons);
    if (c->future_us >= CLOCK_WARN_US) {
        report_say(r, HEALTH_FAIL, "clock", "make its host slew the clock (NTP), never step it",
                   "PostgreSQL's clock went back: a heartbeat is %lld s in the future",
                   seconds(c->future_us));
    }
    return STATUS_OK;
}

/* ---- PostgreSQL's disk ---- */

static void check_write(struct report *r, struct admin *a)
{
    struct err err = {0};
    auto_admin_rows struct admin_rows *rows = NULL;
    enum status st = admin_query(a, &SQL_ADMIN_PROBE_WRITE, NULL, &rows, &err);
    if (st == STATUS_OK) {
        report_say(r, HEALTH_OK, "write", NULL, "wrote 8 MB");
    } else if (strcmp(err.code, "42501") == 0 && strstr(err.msg, "probe_write") != NULL) {
        report_say(r, HEALTH_WARN, "write", "run doctor as a member of claimd_admin",
                   "not tested: this login has no right to");
    } else {
        report_say(r, HEALTH_FAIL, "write",
                   "free disk space, end what blocks it, or name the primary in postgres.conninfo",
                   "PostgreSQL can't write: %s", err.msg);
    }
}

/* ---- jobs that the feed does not reach ---- */

static void say_unfed(struct report *r, const struct config *config, const struct unfed *unfed,
                      bool is_starved)
{
    char names[NAMES_MAX] = "";
    int count = 0;
    for (size_t i = 0; i < unfed->count; i++) {
        const struct hint_lookup *job = &unfed->list[i];
        if (unfed_is_starved(config, job) != is_starved) {
            continue;
        }
        if (count++ < UNFED_NAMED) {
            char name[220];
            (void)snprintf(name, sizeof name, "%lld (kind %s, queue %s, priority %d)",
                           (long long)job->id, job->kind, job->queue, job->priority);
            add_name(names, name);
        }
    }
    if (count == 0) {
        return;
    }
    report_say(
        r, HEALTH_FAIL, is_starved ? "lanes" : "hints",
        is_starved
            ? "add workers: other jobs of its queue and priority come first"
            : "check that a scheduler leads and feeds; if one does, restart it and keep its log",
        is_starved ? "%d%s due jobs have had no turn for more than 60 s: job %s"
                   : "%d%s due jobs of served kinds have had no hint for more than 60 s: job %s",
        count, (size_t)count == HINT_LOOKUP_MAX ? " or more" : "", names);
}

static enum status check_unfed(struct report *r, const struct config *config, struct admin *a,
                               struct err *err)
{
    struct err why = {0};
    auto_checks struct checks checks = {.count = 0};
    autofree struct unfed *unfed = malloc(sizeof *unfed);
    if (unfed == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    enum status st = checks_read(sql_check_text, &checks, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = unfed_find(config, a, &checks, unfed, &why);
    if (st != STATUS_OK && unfed->count == 0) {
        return err_fail(err, st, "%s", why.msg);
    }
    if (st != STATUS_OK) {
        report_say(r, HEALTH_WARN, "hints", "see the lines about redis",
                   "%zu jobs have been due for more than 60 s; whether they have hints is not "
                   "known: %s",
                   unfed->count, why.msg);
        return STATUS_OK;
    }
    say_unfed(r, config, unfed, false);
    say_unfed(r, config, unfed, true);
    if (r->lanes > UNFED_LANES_MAX) {
        report_say(r, HEALTH_WARN, "hints", "see the queues' oldest jobs: claimctl queues",
                   "only %d of %lld lanes (queue, priority, tenant) were looked at",
                   UNFED_LANES_MAX, (long long)r->lanes);
    } else if (unfed->count == 0) {
        report_say(r, HEALTH_OK, "hints", NULL, "every due job of a served kind has one");
    }
    return STATUS_OK;
}

enum status doctor_daemons(struct report *r, const struct config *config, struct admin *a,
                           struct err *err)
{
    struct clocks clocks = {.daemons = 0};
    enum status st = check_workers(r, config, a, &clocks, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_schedulers(r, config, a, &clocks, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_clock(r, a, &clocks, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (!r->is_frequent) {
        check_write(r, a);
    }
    return check_unfed(r, config, a, err);
}
