/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload idle: measures what an idle system costs in CPU time and in statements. */
#include "base/clock.h"
#include "bench/drain.h"
#include "bench/goals.h"
#include "bench/workloads.h"

#include <stdio.h>
#include <sys/stat.h>

#define SETTLE_US (5 * US_PER_S) /* by then starting is over, and the feed has long been hungry */

static const struct pg_statement quiet_self = {.name = "quiet_self",
                                               .sql = "SET log_statement = 'none'"};
static const struct pg_statement log_all = {
    .name = "log_all", .sql = "ALTER DATABASE claimd SET log_statement = 'all'"};

static off_t log_size(const char *path)
{
    struct stat st = {0};
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* Counts executions in the server's log from this offset on. */
static enum status count_statements(const char *path, off_t from, int64_t *ret_count,
                                    struct err *err)
{
    char line[1024];
    FILE *f = fopen(path, "re");
    if (f == NULL || fseeko(f, from, SEEK_SET) != 0) {
        if (f != NULL) {
            (void)fclose(f);
        }
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "read %s", path);
    }
    *ret_count = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        *ret_count +=
            strstr(line, " LOG:  execute ") != NULL || strstr(line, " LOG:  statement: ") != NULL;
    }
    (void)fclose(f);
    return STATUS_OK;
}

enum status idle_run(struct cluster *c, const struct bench_options *options, json_t *result,
                     struct err *err)
{
    char path[SERVER_PATH_MAX + 32];
    int64_t statements = 0;
    double seconds = (double)options->seconds;
    (void)snprintf(path, sizeof path, "%s/postgres.log", c->pg.dir);
    enum status st = db_query(&c->db, &quiet_self, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = db_query(&c->db, &log_all, NULL, 0, err); /* applies to the sessions of the daemons */
    if (st != STATUS_OK) {
        return st;
    }
    st = drain_start_workers(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = cluster_wait(c, SETTLE_US, err);
    if (st != STATUS_OK) {
        return st;
    }
    off_t from = log_size(path);
    struct cluster_cpu before = cluster_cpu(c);
    st = cluster_wait(c, options->seconds * US_PER_S, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct cluster_cpu after = cluster_cpu(c);
    st = cluster_check_daemons(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = count_statements(path, from, &statements, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t daemons_us = after.scheduler_us + after.worker_us + after.runner_us -
                         before.scheduler_us - before.worker_us - before.runner_us;
    int64_t servers_us = after.postgres_us + after.redis_us - before.postgres_us - before.redis_us;
    double percent = (double)daemons_us / seconds / 1e4;
    (void)json_object_set_new(result, "statements_per_s", json_real((double)statements / seconds));
    (void)json_object_set_new(result, "daemons_cpu_percent", json_real(percent));
    (void)json_object_set_new(result, "servers_cpu_percent",
                              json_real((double)servers_us / seconds / 1e4));
    goal_add(result, GOAL_IDLE_STATEMENTS, (double)statements / seconds);
    goal_add(result, GOAL_IDLE_CPU, percent);
    workload_add_rss(c, result);
    return cluster_stop_daemons(c, err);
}
