/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/outages.h"

#include "base/clock.h"
#include "chaos/host.h"

#include <fcntl.h>
#include <stdio.h>

#define PG WORLD_REDIS /* its number among the servers */
#define SERVERS (WORLD_REDIS + 1)
/* None of these are scaled, as an operator's patience is not. */
#define AWAY_US (3 * US_PER_S)
#define GOES_ON_US (10 * US_PER_S) /* inv.L6 requires 5 s; the rest is for a busy machine */
#define GIVE_UP_US (60 * US_PER_S)
#define CPU_PERCENT 5
#define LINES_PER_S 10
/* How long a lock node that was away has no vote (INTERFACES rule 1); a third such node would be
 * too many. */
#define QUARANTINE_US (15 * US_PER_S)

struct measure {
    pid_t pid;
    int64_t cpu_us;
    int64_t lines;
};

struct outage {
    size_t servers[2];
    size_t count;
    char name[16];
    int64_t began_us;
    int64_t back_us;
    char back_at[40]; /* the same time by PostgreSQL's clock */
    struct measure before[WORLD_HOSTS_MAX];
};

/* "pg", "r0", "r0+pg", … */
static struct outage outage_of(size_t first, size_t second)
{
    struct outage o = {.servers = {first, second}, .count = first == second ? 1 : 2};
    size_t len = 0;
    for (size_t i = 0; i < o.count; i++) {
        char number[8];
        (void)snprintf(number, sizeof number, "r%u", (unsigned)o.servers[i]);
        len += (size_t)snprintf(o.name + len, sizeof o.name - len, "%s%s", i > 0 ? "+" : "",
                                o.servers[i] == PG ? "pg" : number);
    }
    return o;
}

static bool is_name(const char *name, size_t len)
{
    for (size_t first = 0; first < SERVERS; first++) {
        for (size_t second = first; second < SERVERS; second++) {
            struct outage o = outage_of(first, second);
            if (strlen(o.name) == len && memcmp(o.name, name, len) == 0) {
                return true;
            }
        }
    }
    return false;
}

enum status outages_check(const struct options *options, struct err *err)
{
    static const char hint[] = "allowed: pg, r0 to r4, and two of them with + between, pg last";
    return options_check_names(options, is_name, hint, err);
}

static void wait_for(struct world *w, int64_t us)
{
    for (int64_t end_us = clock_boot_us() + us; clock_boot_us() < end_us;) {
        world_turn(w);
    }
}

/* ---- the daemons during an outage ---- */

static int64_t count_lines(const struct world *w, const struct host *h)
{
    char path[SERVER_PATH_MAX + 64];
    char bytes[65536];
    int64_t lines = 0;
    (void)snprintf(path, sizeof path, "%s/logs/%s.log", w->folder.path, h->name);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n = 0; fd >= 0 && (n = read(fd, bytes, sizeof bytes)) > 0;) {
        for (ssize_t i = 0; i < n; i++) {
            lines += bytes[i] == '\n' ? 1 : 0;
        }
    }
    return lines;
}

static struct measure measure(const struct world *w, const struct host *h)
{
    return (struct measure){
        .pid = h->pid, .cpu_us = process_cpu_us(h->pid), .lines = count_lines(w, h)};
}

/* Returns the highest CPU usage of a daemon, in percent of a core, and the most log lines per
 * second. */
static void judge_daemons(struct world *w, const struct outage *o, double *ret_cpu,
                          double *ret_lines)
{
    double past_s = (double)(clock_boot_us() - o->began_us) / (double)US_PER_S;
    for (size_t i = 0; i < w->host_count; i++) {
        const struct host *h = &w->hosts[i];
        const struct measure *before = &o->before[i];
        struct measure now = measure(w, h);
        double cpu = (double)(now.cpu_us - before->cpu_us) / (double)US_PER_S / past_s * 100;
        double lines = (double)(now.lines - before->lines) / past_s;
        if (now.pid != before->pid) {
            world_violation(w, h->name, "did not outlive an outage of %s", o->name);
        } else if (cpu > CPU_PERCENT) {
            world_violation(w, h->name, "%.1f %% of a core during an outage of %s", cpu, o->name);
        } else if (lines >= LINES_PER_S) {
            world_violation(w, h->name, "%.1f log lines per second during an outage of %s", lines,
                            o->name);
        }
        *ret_cpu = cpu > *ret_cpu ? cpu : *ret_cpu;
        *ret_lines = lines > *ret_lines ? lines : *ret_lines;
    }
}

/* ---- an outage ---- */

static void tell(struct world *w, const struct outage *o, const char *ph)
{
    for (size_t i = 0; i < o->count; i++) {
        bool is_pg = o->servers[i] == PG;
        journal_write(&w->nemesis,
                      json_pack("{s:s, s:s, s:s, s:s, s:i}", "ph", ph, "x",
                                is_pg ? "pg_restart" : "redis_empty", "target", o->name, "detail",
                                "outage", "traits", is_pg ? TRAIT_PG_GONE : TRAIT_REDIS));
    }
}

static void take_away(struct world *w, struct outage *o)
{
    for (size_t i = 0; i < w->host_count; i++) {
        o->before[i] = measure(w, &w->hosts[i]);
    }
    o->began_us = clock_boot_us();
    tell(w, o, "inv");
    for (size_t i = 0; i < o->count; i++) {
        size_t at = o->servers[i];
        if (at == PG) {
            world_take_pg(w, AWAY_US);
        } else {
            world_take_redis(w, at, AWAY_US);
        }
    }
}

/* Returns false if PostgreSQL did not answer. */
static bool read_clock(struct world *w, struct outage *o)
{
    PGresult *r = NULL;
    struct err why = {0};
    enum status st = session_run(&w->sql, "SELECT clock_timestamp()::text", NULL, 0, &r, &why);
    if (st == STATUS_OK) {
        (void)snprintf(o->back_at, sizeof o->back_at, "%s", PQgetvalue(r, 0, 0));
    }
    PQclear(r);
    return st == STATUS_OK;
}

static void wait_back(struct world *w, struct outage *o)
{
    int64_t end_us = clock_boot_us() + GIVE_UP_US;
    do {
        world_turn(w);
    } while ((!world_is_whole(w) || !read_clock(w, o)) && clock_boot_us() < end_us);
    o->back_us = clock_boot_us();
    tell(w, o, "ok");
}

/* Waits until a job that was inserted after the return has been claimed, which proves that the
 * whole way works. Returns µs. */
static int64_t wait_claimed(struct world *w, const struct outage *o)
{
    int64_t claimed = 0;
    int64_t past_us = 0;
    struct err why = {0};
    while (claimed == 0 && past_us < GIVE_UP_US) {
        world_turn(w);
        if (session_i64(&w->sql, &claimed, &why,
                        "SELECT count(*) FROM claimd.jobs WHERE created_at > '%s' AND"
                        " attempted_at > '%s'",
                        o->back_at, o->back_at) != STATUS_OK) {
            claimed = 0;
        }
        past_us = clock_boot_us() - o->back_us;
    }
    return past_us;
}

static void run_one(struct world *w, struct outage *o)
{
    double cpu = 0;
    double lines = 0;
    take_away(w, o);
    wait_back(w, o);
    int64_t claimed_us = wait_claimed(w, o);
    if (claimed_us > GOES_ON_US) {
        world_violation(w, "claimd", "work went on %.1f s after %s was back",
                        (double)claimed_us / (double)US_PER_S, o->name);
    }
    judge_daemons(w, o, &cpu, &lines);
    (void)printf("%-6s away %.1f s, work goes on after %.2f s, CPU %.1f %%, log %.1f lines/s\n",
                 o->name, (double)(o->back_us - o->began_us) / (double)US_PER_S,
                 (double)claimed_us / (double)US_PER_S, cpu, lines);
    (void)fflush(stdout);
}

void outages_run(struct world *w, int64_t counts[COUNTS], int64_t *ret_last_us)
{
    for (size_t first = 0; first < SERVERS; first++) {
        for (size_t second = first; second < SERVERS; second++) {
            struct outage o = outage_of(first, second);
            if (options_want(w->options, o.name)) {
                wait_for(w, world_scaled(w, QUARANTINE_US));
                run_one(w, &o);
                *ret_last_us = o.back_us;
                counts[COUNT_RESTART] += second == PG ? 1 : 0;
                counts[COUNT_EMPTY] += (int64_t)o.count - (second == PG ? 1 : 0);
            }
        }
    }
}
