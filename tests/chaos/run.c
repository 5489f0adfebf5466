/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/run.h"

#include "base/clock.h"
#include "chaos/calm.h"
#include "chaos/drawn_dba.h"
#include "chaos/drawn_load.h"
#include "chaos/judge.h"
#include "chaos/load.h"
#include "chaos/load_process.h"
#include "chaos/mapping.h"
#include "chaos/nemesis.h"
#include "chaos/outages.h"
#include "chaos/programs.h"
#include "chaos/row_history.h"
#include "chaos/ties.h"
#include "cluster/child.h"

#include <stdio.h>

#define WARM_US (90 * US_PER_S)
#define LOAD_END_US (40 * US_PER_S)
#define PROGRESS_US (15 * US_PER_S)

/* Percentage of a drawn world's storm that is without faults: L9 is judged there. */
#define QUIET_PERCENT 60

struct run {
    const struct options *options;
    struct drawn drawn; /* if options->world is set */
    struct options drawn_options;
    struct world_plan plan; /* plan of the drawn world */
    char env[DRAWN_WORKERS_MAX][2][DRAWN_ENV_MAX];
    struct world world;
    struct nemeses nemeses; /* empty in a run of outages */
    pid_t load;
    struct calm calm;
};

static const struct world_plan plan = {
    .log_level = "info",
    .queues = {"default", "chaos_a", "chaos_b", TIES_QUEUE},
    .plugins = {{.folder = "plugins", .path = CHAOS_PLUGIN_DIR "/chaos.so"}}};

static const struct world_plugin kinds_plugin = {.folder = "plugins",
                                                 .path = CHAOS_PLUGIN_DIR "/chaos_kinds.so"};

/* With --programs: the files that their handler files name. */
static const struct world_plugin program_files[] = {{.folder = "programs", .path = CHAOS_PROGRAM},
                                                    {.folder = "programs", .path = CHAOS_SDK}};

/* Returns the limits of the usual world, or of the drawn one. */
static void get_limits(const struct run *r, json_t **ret_limits, json_t **ret_rates)
{
    if (r->options->world > 0) {
        drawn_limits(&r->drawn, ret_limits, ret_rates);
        return;
    }
    json_t *keys = json_pack("{s:i}", TIES_KEY, TIES_KEY_PLACES);
    for (int n = 0; n < TIES_CUSTOMERS; n++) {
        char key[32];
        (void)snprintf(key, sizeof key, "customer:%d", n);
        (void)json_object_set_new(keys, key, json_integer(TIES_CUSTOMER_PLACES));
    }
    if (r->options->map_rows > 0) {
        (void)json_object_set_new(keys, MAPPING_KEY, json_integer(MAPPING_PLACES));
    }
    *ret_limits = json_pack("{s:{s:i}, s:o}", "queues", TIES_QUEUE, TIES_PLACES, "keys", keys);
    *ret_rates = json_object();
}

/* Writes run.json, the settings that a checker must know. */
static enum status write_settings(struct run *r, struct err *err)
{
    char path[SERVER_PATH_MAX + 64];
    const struct options *o = r->options;
    double s = o->time_scale * (double)US_PER_S;
    json_t *names = json_array();
    for (size_t i = 0; i < r->nemeses.count; i++) {
        (void)json_array_append_new(names, json_string(r->nemeses.all[i].def->name));
    }
    json_t *limits = NULL;
    json_t *rates = NULL;
    get_limits(r, &limits, &rates);
    json_t *all = json_pack(
        "{s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:s, s:{s:I, s:I, s:I, s:I, s:I, s:I}, s:o,"
        " s:o, s:o}",
        "seed", (json_int_t)o->seed, "seconds", (json_int_t)o->seconds, "time_scale", o->time_scale,
        "workers", (json_int_t)o->workers, "schedulers", (json_int_t)o->schedulers, "slots",
        (json_int_t)o->slots, "bug", (json_int_t)o->bug, "conninfo", r->world.conninfo, "constants",
        "ttl_us", (json_int_t)(10 * s), "drift_us", (json_int_t)(0.1 * s + 2000), "stale_us",
        (json_int_t)(8 * s), "beat_us", (json_int_t)(2 * s), "rescue_us", (json_int_t)(15 * s),
        "full_pass_us", (json_int_t)(30 * s), "nemeses", names, "limits", limits, "rates", rates);
    if (r->drawn.lanes > 0) {
        (void)json_object_set_new(all, "lapped", json_string(r->drawn.queues[0].name));
    }
    folder_at(&r->world.folder, "run.json", path, sizeof path);
    int rc = all != NULL ? json_dump_file(all, path, JSON_INDENT(2)) : -1;
    json_decref(all);
    return rc == 0 ? STATUS_OK : err_fail(err, STATUS_UNAVAILABLE, "write %s", path);
}

/* Waits until all daemons are registered and the quarantine of freshly started masters is over: a
 * lock node with an empty memory has no vote (INTERFACES rule 1). */
static enum status warm_up(struct run *r, struct err *err)
{
    int64_t end_us = clock_boot_us() + WARM_US;
    int64_t open = 1;
    struct err why = {0};
    enum status st = session_do(&r->world.sql, err,
                                "INSERT INTO claimd.job (kind, args) VALUES ('c_short', "
                                "'{\"n\": 0, \"path\": \"/dev/null\"}')");
    if (st != STATUS_OK) {
        return st;
    }
    while (open > 0) {
        world_turn(&r->world);
        if (clock_boot_us() > end_us || world_is_interrupted()) {
            return err_fail(err, STATUS_TIMEOUT, "no job was done in the first %lld s",
                            (long long)(WARM_US / US_PER_S));
        }
        if (session_i64(&r->world.sql, &open, &why, "SELECT count(*) FROM claimd.job") !=
            STATUS_OK) {
            why = (struct err){0};
        }
    }
    /* The books begin with n = 1. */
    return session_do(&r->world.sql, err, "DELETE FROM claimd.job_history; TRUNCATE chaos.event");
}

static void show_progress(struct run *r, int64_t begin_us, int64_t *next_us)
{
    int64_t now_us = clock_boot_us();
    if (now_us < *next_us) {
        return;
    }
    *next_us = now_us + PROGRESS_US;
    (void)printf("%4lld s  kills %lld, stops %lld, empty Redis %lld, PostgreSQL restarts %lld\n",
                 (long long)((now_us - begin_us) / US_PER_S),
                 (long long)r->nemeses.counts[COUNT_KILL], (long long)r->nemeses.counts[COUNT_STOP],
                 (long long)r->nemeses.counts[COUNT_EMPTY],
                 (long long)r->nemeses.counts[COUNT_RESTART]);
    (void)fflush(stdout);
}

static void storm(struct run *r)
{
    int64_t begin_us = clock_boot_us();
    int64_t end_us = begin_us + r->options->seconds * US_PER_S;
    int64_t next_us = begin_us + PROGRESS_US;
    int64_t quiet_us =
        r->options->world > 0 ? r->options->seconds * US_PER_S * QUIET_PERCENT / 100 : 0;
    nemeses_begin(&r->nemeses, &r->world, begin_us + quiet_us);
    while (clock_boot_us() < end_us && !world_is_interrupted()) {
        world_turn(&r->world);
        nemeses_tick(&r->nemeses, &r->world, clock_boot_us());
        mapping_tick(&r->world, clock_boot_us());
        show_progress(r, begin_us, &next_us);
    }
    nemeses_end(&r->nemeses, &r->world);
    world_heal(&r->world);
}

/* Runs the faults; returns when the last one was healed. */
static int64_t strike(struct run *r)
{
    int64_t last_us = 0;
    if (r->options->is_outages) {
        outages_run(&r->world, r->nemeses.counts, &last_us);
    } else {
        storm(r);
        last_us = r->nemeses.last_us; /* 0: no fault struck */
    }
    return last_us > 0 ? last_us : clock_boot_us();
}

/* Draws queues, workers and kinds in place of those of the usual world. */
static void draw_world(struct run *r)
{
    struct drawn *d = &r->drawn;
    if (r->options->world == 0) {
        return;
    }
    drawn_draw(d, r->options->world);
    drawn_print(d);
    if (r->options->only[0] == '\0') {
        nemeses_thin(&r->nemeses, d->number, d->fault_percent);
    }
    (void)printf("  faults:");
    for (size_t i = 0; i < r->nemeses.count; i++) {
        (void)printf(" %s", r->nemeses.all[i].def->name);
    }
    (void)printf("%s\n", r->nemeses.count == 0 ? " none" : "");
    memset(r->plan.queues, 0, sizeof r->plan.queues);
    for (size_t i = 0; i < d->queue_count; i++) {
        r->plan.queues[i] = d->queues[i].name;
    }
    r->plan.plugins[1] = kinds_plugin;
    r->drawn_options = *r->options;
    r->drawn_options.workers = (int64_t)d->worker_count;
    r->drawn_options.slots = DRAWN_SLOTS_MAX;
    r->options = &r->drawn_options;
}

static void set_workers(struct run *r)
{
    size_t worker = 0;
    for (size_t i = 0; i < r->world.host_count && r->options->world > 0; i++) {
        struct host *h = &r->world.hosts[i];
        if (h->role == HOST_WORKER) {
            drawn_env(&r->drawn, worker, r->env[worker][0], r->env[worker][1]);
            h->env[0] = r->env[worker][0];
            h->env[1] = r->env[worker][1];
            worker++;
        }
    }
}

static enum status begin_load(struct run *r, struct err *err)
{
    bool is_drawn = r->options->world > 0;
    enum status st =
        is_drawn ? drawn_prepare(&r->drawn, &r->world.sql, err) : ties_prepare(&r->world.sql, err);
    if (st != STATUS_OK) {
        return st;
    }
    return is_drawn ? drawn_load_start(&r->world, &r->drawn, &r->load, err)
                    : load_start(&r->world, nemeses_has(&r->nemeses, "slow_commit"), &r->load, err);
}

static enum status begin(struct run *r, struct err *err)
{
    enum status st = world_open(&r->world, r->options, &r->plan, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (r->options->has_programs) {
        st = programs_write(r->world.dir, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    set_workers(r);
    st = drawn_dba_set(r->drawn.dba, &r->world.sql, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = write_settings(r, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)printf("seed %llu, %lld s, time scale %g, in %s\n", (unsigned long long)r->options->seed,
                 (long long)r->options->seconds, r->options->time_scale, r->world.folder.path);
    (void)fflush(stdout);
    st = warm_up(r, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = mapping_prepare(&r->world, err);
    if (st != STATUS_OK) {
        return st;
    }
    return begin_load(r, err);
}

static enum status look_at_traps(struct run *r, struct err *err)
{
    int64_t count = 0;
    enum status st = drawn_dba_trapped(r->drawn.dba, &r->world.sql, &count, err);
    if (count > 0) {
        world_violation(&r->world, "database", "functions of others in `public` ran %lld times",
                        (long long)count);
    }
    return st;
}

static enum status run_it(struct run *r, struct err *err)
{
    enum status st = begin(r, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t last_us = strike(r);
    if (!load_process_stop(r->load, LOAD_END_US)) {
        world_violation(&r->world, "load", "was refused, or had to be killed");
    }
    st = drawn_clear(&r->drawn, &r->world.sql, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (r->options->map_rows > 0) {
        mapping_finish(&r->world);
        last_us = clock_boot_us();
    }
    calm_hurry(&r->world);
    calm_down(&r->calm, &r->world, last_us);
    st = look_at_traps(r, err);
    if (st != STATUS_OK) {
        return st;
    }
    return row_history_export(&r->world.sql, &r->world.folder, err);
}

int run_storm(const struct options *options)
{
    static struct run r;
    struct err err = {0};
    struct judgement j = {0};
    r = (struct run){.options = options, .plan = plan};
    enum status st = options->is_outages ? outages_check(options, &err)
                                         : nemeses_init(&r.nemeses, options, &err);
    if (st != STATUS_OK) {
        (void)fprintf(stderr, "claimd-chaos: %s\n", err.msg);
        return 2;
    }
    if (options->has_programs) {
        memcpy(&r.plan.plugins[1], program_files, sizeof program_files);
    }
    draw_world(&r);
    st = run_it(&r, &err);
    if (st == STATUS_OK) {
        st = judge_folder(&r.world.folder, &j, &err);
    }
    j.process_violations = r.world.violations;
    j.drain_us = r.calm.drain_us;
    memcpy(j.counts, r.nemeses.counts, sizeof j.counts);
    bool is_good = st == STATUS_OK && judge_is_good(&j);
    if (!is_good) {
        calm_keep_dump(&r.world);
    }
    world_close(&r.world);
    if (st != STATUS_OK) {
        (void)printf("claimd-chaos: %s\n", err.msg);
    }
    return judge_last_line(&j, options, &r.world.folder, st == STATUS_OK);
}

static void count_fault(void *ctx, const json_t *line)
{
    struct judgement *j = ctx;
    const char *ph = json_string_value(json_object_get(line, "ph"));
    const char *name = json_string_value(json_object_get(line, "x"));
    if (ph != NULL && name != NULL && strcmp(ph, "inv") == 0) {
        j->counts[nemesis_counts_as(name)]++;
    }
    j->process_violations += ph != NULL && strcmp(ph, "violation") == 0 ? 1 : 0;
}

static uint64_t seed_of(const struct folder *f)
{
    char path[SERVER_PATH_MAX + 64];
    folder_at(f, "run.json", path, sizeof path);
    json_t *all = json_load_file(path, 0, NULL);
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(all, "seed"));
    json_decref(all);
    return seed;
}

static enum status judge_again(const char *path, struct folder *folder, struct judgement *j,
                               struct err *err)
{
    enum status st = folder_make(path, folder, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = folder_read(folder, "nemesis.jsonl", count_fault, j, err);
    if (st != STATUS_OK) {
        return st;
    }
    return judge_folder(folder, j, err);
}

int run_replay(const struct options *options)
{
    struct err err = {0};
    struct judgement j = {0};
    struct folder folder;
    struct options told = *options;
    if (judge_again(options->replay, &folder, &j, &err) != STATUS_OK) {
        (void)fprintf(stderr, "claimd-chaos: %s\n", err.msg);
        return 2;
    }
    told.seed = seed_of(&folder);
    return judge_last_line(&j, &told, &folder, true);
}
