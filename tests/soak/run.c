/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/run.h"

#include "base/clock.h"
#include "soak/faults.h"
#include "soak/hosts.h"
#include "soak/load.h"
#include "soak/programs.h"
#include "soak/stage.h"
#include "soak/verdict.h"

#include <stdio.h>
#include <stdlib.h>

#define VERDICT_US (1800 * US_PER_S) /* timeout of one statement */
#define SHOW_US (15 * US_PER_S)
#define LOOK_US (1 * US_PER_S)
#define FEW 50                     /* open jobs, at which the faults may stop */
#define STUCK_US (120 * US_PER_S)  /* without a change of the number of open jobs */
#define BUG_US (9 * 60 * US_PER_S) /* a deliberate bug must have shown by then */

struct soak {
    const struct soak_options *options;
    struct world world;
    struct faults faults;
    struct load_processes load;
    int64_t begin_us;
    int64_t put;  /* jobs inserted */
    int64_t open; /* jobs that have not ended; while the streams run, without theirs */
    bool is_draining;
    int64_t look_us;
    int64_t show_us;
    int64_t moved_us; /* when the number of open jobs last changed */
    int64_t took_us;
    int64_t stale_refused; /* late finishes that the workers have refused */
    struct verdict verdict;
    int64_t served;      /* jobs completed by programs that serve */
    int64_t run_by_once; /* jobs completed by programs started for each job */
};

static enum status ask_for_bug(const struct soak *s, struct err *err)
{
    char number[16];
    if (s->options->bug == NULL || s->options->bug->number == 0) {
        return STATUS_OK;
    }
    (void)snprintf(number, sizeof number, "%d", s->options->bug->number);
    return setenv("CLAIMD_BUG", number, 1) == 0
               ? STATUS_OK
               : err_fail_sys(err, STATUS_NOMEM, errno, "set CLAIMD_BUG");
}

static enum status begin(struct soak *s, struct err *err)
{
    enum status st = ask_for_bug(s, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = stage_open(&s->world, &s->options->kit, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)printf("%lld jobs, seed %llu, in %s\n", (long long)s->options->jobs,
                 (unsigned long long)s->options->kit.seed, s->world.folder.path);
    if (st == STATUS_OK && s->options->bug != NULL && s->options->bug->sql != NULL) {
        st = session_run(&s->world.sql, s->options->bug->sql, NULL, 0, NULL, err);
    }
    return st;
}

static const char open_sql[] = "SELECT count(*) FROM claimd.job";
static const char open_of_rounds_sql[] =
    "SELECT count(*) FROM claimd.job WHERE queue NOT IN ('soak_aged', 'soak_open')";

static void look(struct soak *s)
{
    int64_t now_us = clock_boot_us();
    int64_t open = 0;
    if (now_us < s->look_us) {
        return;
    }
    s->look_us = now_us + LOOK_US;
    if (session_i64(&s->world.sql, &s->put, NULL,
                    "SELECT COALESCE(sum(jobs), 0)::bigint FROM soak.round") == STATUS_OK &&
        session_i64(&s->world.sql, &open, NULL, s->is_draining ? open_sql : open_of_rounds_sql) ==
            STATUS_OK) {
        s->moved_us = open != s->open ? now_us : s->moved_us;
        s->open = open;
    }
    if (now_us >= s->show_us) {
        s->show_us = now_us + SHOW_US;
        (void)printf("%5lld s  %lld jobs put in, %lld open, %zu faults\n",
                     (long long)((now_us - s->begin_us) / US_PER_S), (long long)s->put,
                     (long long)s->open, faults_count(&s->faults));
        (void)fflush(stdout);
    }
}

/* True if nothing has changed for so long that it never will, or the run was interrupted. */
static bool is_stuck(const struct soak *s)
{
    return world_is_interrupted() || clock_boot_us() - s->moved_us > STUCK_US ||
           (s->options->bug != NULL && clock_boot_us() - s->begin_us > BUG_US);
}

static void storm(struct soak *s)
{
    faults_begin(&s->faults, &s->world, s->options->kit.seed,
                 s->options->bug != NULL && s->options->bug->stops_until_moved);
    while (!is_stuck(s) &&
           (s->put < s->options->jobs || s->open > FEW || !faults_had_all(&s->faults))) {
        world_turn(&s->world);
        faults_tick(&s->faults, &s->world);
        look(s);
    }
}

static enum status drain(struct soak *s, struct err *err)
{
    faults_heal(&s->faults, &s->world);
    enum status st = session_do(&s->world.sql, err, "SELECT soak.tick_no_more()");
    if (st != STATUS_OK) {
        return st;
    }
    load_stop(&s->load);
    s->is_draining = true;
    s->open = -1; /* not counted yet */
    while (!is_stuck(s) && s->open != 0) {
        world_turn(&s->world);
        look(s);
    }
    if (world_is_interrupted()) {
        return err_fail(err, STATUS_UNAVAILABLE, "interrupted");
    }
    s->took_us = clock_boot_us() - s->begin_us;
    s->stale_refused = hosts_refusals(&s->world);
    return STATUS_OK;
}

static enum status judge(struct soak *s, struct err *err)
{
    s->world.sql.timeout_us = VERDICT_US;
    enum status st =
        verdict_find(&s->world.sql, &s->world.folder, s->options->kit.slots, &s->verdict, err);
    if (st == STATUS_OK) {
        st = programs_count(&s->world, &s->served, &s->run_by_once, err);
    }
    s->verdict.violations += s->world.violations;
    return st;
}

static enum status run_it(struct soak *s, struct err *err)
{
    enum status st = begin(s, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = session_do(&s->world.sql, err, "SELECT soak.tick()");
    if (st != STATUS_OK) {
        return st;
    }
    st = load_start(&s->world, s->options->jobs, &s->load, err);
    if (st != STATUS_OK) {
        return st;
    }
    s->begin_us = clock_boot_us();
    s->moved_us = s->begin_us;
    storm(s);
    st = drain(s, err);
    return st == STATUS_OK ? judge(s, err) : st;
}

/* True if the files are kept: always with --folder, otherwise after an unexpected failure. */
static bool is_kept(const struct soak *s, bool is_good)
{
    return s->options->kit.folder[0] != '\0' ||
           (!is_good && s->options->bug == NULL && !world_is_interrupted());
}

static int last_line(const struct soak *s, bool is_over)
{
    const struct verdict *v = &s->verdict;
    bool is_good = is_over && v->violations == 0;
    (void)printf("%lld jobs in %.1f s with %zu faults; %lld checks, each seen to find a lie\n",
                 (long long)s->put, (double)s->took_us / (double)US_PER_S, faults_count(&s->faults),
                 (long long)v->checks);
    if (s->options->kit.has_programs) {
        (void)printf("%lld jobs were those of programs that serve, %lld of programs for one job\n",
                     (long long)s->served, (long long)s->run_by_once);
    }
    (void)printf("rescued within %.1f s of the fault, not before %.1f s after the claim; %lld jobs"
                 " were done, and then again\n",
                 (double)v->worst_rescue_ms / 1000, (double)v->first_rescue_ms / 1000,
                 (long long)v->repeated);
    (void)printf("seed %llu%s%s\n", (unsigned long long)s->options->kit.seed,
                 is_kept(s, is_good) ? ", kept in " : "",
                 is_kept(s, is_good) ? s->world.folder.path : "");
    (void)printf("soak: %s jobs=%lld rescued=%lld stale_refused=%lld violations=%lld\n",
                 is_good ? "OK" : "FAILED", (long long)s->put, (long long)v->rescued,
                 (long long)s->stale_refused, (long long)v->violations);
    return is_good ? 0 : 1;
}

int soak_run(const struct soak_options *options)
{
    static struct soak s;
    struct err err = {0};
    s = (struct soak){.options = options};
    enum status st = run_it(&s, &err);
    load_stop(&s.load);
    world_close(&s.world);
    if (st != STATUS_OK) {
        (void)printf("claimd-soak: %s\n", err.msg);
    }
    int code = last_line(&s, st == STATUS_OK);
    if (is_kept(&s, code == 0)) {
        dir_keep(s.world.folder.path);
    } else {
        dir_remove(s.world.folder.path);
    }
    return code;
}
