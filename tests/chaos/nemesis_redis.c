/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults of Redis. */
#include "base/clock.h"
#include "chaos/nemesis.h"
#include "chaos/redis_line.h"

#include <signal.h>
#include <stdio.h>

#define SAY_US (500 * US_PER_MS)
#define PASSWORD "changed"
#define JUNK_HINTS 1000000
#define JUNK_BATCH 50000 /* per request, during which Redis serves no other client */

/* Returns one that is running; WORLD_REDIS: none. */
static size_t some_redis(struct world *w, struct nemesis *n)
{
    size_t first = (size_t)rand_below(&n->rand, WORLD_REDIS);
    for (size_t i = 0; i < WORLD_REDIS; i++) {
        size_t at = (first + i) % WORLD_REDIS;
        if (w->redis[at].pid > 0) {
            return at;
        }
    }
    return WORLD_REDIS;
}

/* Mostly one, sometimes a majority, sometimes all. */
static size_t how_many(struct nemesis *n)
{
    static const size_t sizes[] = {1, 1, 1, 1, 2, 2, 3, WORLD_REDIS};
    return sizes[rand_below(&n->rand, ARRAY_COUNT(sizes))];
}

static bool redis_empty(struct world *w, struct nemesis *n)
{
    static const int64_t away_ms[] = {0, 0, 500, 3000, 12000};
    size_t count = how_many(n);
    size_t first = (size_t)rand_below(&n->rand, WORLD_REDIS);
    int64_t ms = away_ms[rand_below(&n->rand, ARRAY_COUNT(away_ms))];
    char detail[64];
    (void)snprintf(detail, sizeof detail, "%zu, back after %lld ms", count, (long long)ms);
    nemesis_target(n, detail, "r%zu", first);
    for (size_t i = 0; i < count; i++) {
        world_take_redis(w, (first + i) % WORLD_REDIS, world_scaled(w, ms * US_PER_MS));
    }
    return true;
}

static bool flushall(struct world *w, struct nemesis *n)
{
    static const char *const words[] = {"FLUSHALL", NULL};
    struct err why = {0};
    size_t count = how_many(n);
    size_t first = some_redis(w, n);
    char detail[64];
    (void)snprintf(detail, sizeof detail, "%zu", count);
    nemesis_target(n, detail, "r%zu", first);
    bool is_done = false;
    for (size_t i = 0; i < count && first < WORLD_REDIS; i++) {
        const struct redis_server *r = &w->redis[(first + i) % WORLD_REDIS];
        is_done = redis_say(r->path, NULL, SAY_US, words, NULL, 0, &why) == STATUS_OK || is_done;
    }
    return is_done;
}

/* ---- one or several, for a while ---- */

/* Chooses the targets: n->pid_count of them, from n->index on. */
static void choose(struct nemesis *n, size_t most, const char *detail)
{
    size_t count = how_many(n);
    n->pid_count = count < most ? count : most;
    n->index = (size_t)rand_below(&n->rand, WORLD_REDIS);
    char text[64];
    (void)snprintf(text, sizeof text, "%zu%s%s", n->pid_count, detail[0] != '\0' ? ", " : "",
                   detail);
    nemesis_target(n, text, "r%zu", n->index);
}

static struct redis_server *chosen(struct world *w, const struct nemesis *n, size_t i)
{
    return &w->redis[(n->index + i) % WORLD_REDIS];
}

/* Sends a command to the targets; true if one of them accepted it. A server that was restarted in
 * the meantime has no password. */
static bool tell(struct world *w, const struct nemesis *n, const char *const *words)
{
    bool is_told = false;
    for (size_t i = 0; i < n->pid_count; i++) {
        const struct redis_server *r = chosen(w, n, i);
        struct err why = {0};
        enum status st = redis_say(r->path, NULL, SAY_US, words, NULL, 0, &why);
        if (st == STATUS_INVALID) {
            why = (struct err){0};
            st = redis_say(r->path, PASSWORD, SAY_US, words, NULL, 0, &why);
        }
        is_told = is_told || st == STATUS_OK;
    }
    return is_told;
}

static bool config_set(struct world *w, const struct nemesis *n, const char *name,
                       const char *value)
{
    const char *const words[] = {"CONFIG", "SET", name, value, NULL};
    return tell(w, n, words);
}

static bool oom(struct world *w, struct nemesis *n)
{
    choose(n, WORLD_REDIS, "maxmemory 1");
    return config_set(w, n, "maxmemory", "1");
}

static void oom_ends(struct world *w, struct nemesis *n)
{
    (void)config_set(w, n, "maxmemory", "0");
}

/* Affects at most two of five: a majority that evicts is beyond what the lock promises (G6). */
static bool evict(struct world *w, struct nemesis *n)
{
    static const char *const fill[] = {
        "EVAL",
        "for i = 1, 2000 do redis.call('SET', 'chaos:' .. i, string.rep('x', 2000), 'EX', 30) end",
        "0", NULL};
    choose(n, 2, "allkeys-random");
    return config_set(w, n, "maxmemory-policy", "allkeys-random") &&
           config_set(w, n, "maxmemory", "3mb") && tell(w, n, fill);
}

static void evict_ends(struct world *w, struct nemesis *n)
{
    (void)config_set(w, n, "maxmemory", "0");
    (void)config_set(w, n, "maxmemory-policy", "noeviction");
}

static bool pause_redis(struct world *w, struct nemesis *n)
{
    char ms[24];
    (void)snprintf(ms, sizeof ms, "%lld",
                   (long long)(world_scaled(w, nemesis_between(n, 500, 15000))));
    const char *const words[] = {"CLIENT", "PAUSE", ms,
                                 rand_below(&n->rand, 2) == 0 ? "ALL" : "WRITE", NULL};
    choose(n, WORLD_REDIS, ms);
    return tell(w, n, words);
}

static bool stop_redis(struct world *w, struct nemesis *n)
{
    choose(n, WORLD_REDIS, "SIGSTOP");
    size_t count = n->pid_count;
    n->pid_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct redis_server *r = chosen(w, n, i);
        if (r->pid > 0 && kill(r->pid, SIGSTOP) == 0) {
            n->pids[n->pid_count++] = r->pid;
        }
    }
    return n->pid_count > 0;
}

static void cont_redis(struct world *w, struct nemesis *n)
{
    (void)w;
    for (size_t i = 0; i < n->pid_count; i++) {
        (void)kill(n->pids[i], SIGCONT);
    }
}

static bool wrong_type(struct world *w, struct nemesis *n)
{
    static const char *const keys[] = {"claimd:hints:default", "claimd:hints:chaos_a",
                                       "claimd:hints:chaos_b"};
    const char *key = keys[rand_below(&n->rand, ARRAY_COUNT(keys))];
    const char *const words[] = {"SET", key, "no sorted set", NULL};
    choose(n, WORLD_REDIS, key + strlen("claimd:"));
    return tell(w, n, words);
}

static void right_type(struct world *w, struct nemesis *n)
{
    static const char *const words[] = {
        "EVAL",
        "for _, q in ipairs({'default', 'chaos_a', 'chaos_b'}) do local k = 'claimd:hints:' .. q"
        " if redis.call('TYPE', k).ok == 'string' then redis.call('DEL', k) end end",
        "0", NULL};
    (void)tell(w, n, words);
}

/* Plants foreign locks, with a token that belongs to no process, on future jobs and on the leader's
 * key. */
static bool planted(struct world *w, struct nemesis *n)
{
    char id[24];
    char ms[24];
    int64_t last = 0;
    struct err why = {0};
    struct session *s = &n->sessions[0];
    session_init(s, w->conninfo, SAY_US);
    enum status st = session_i64(s, &last, &why, "SELECT coalesce(max(id), 0) FROM claimd.job");
    session_close(s);
    (void)snprintf(id, sizeof id, "%lld", (long long)last);
    (void)snprintf(ms, sizeof ms, "%lld", (long long)world_scaled(w, 10000));
    const char *const words[] = {"EVAL",
                                 "for i = -20, 80 do redis.call('SET', 'claimd:job:' .. (ARGV[1] + "
                                 "i), 'somebody else', 'NX',"
                                 " 'PX', ARGV[2]) end redis.call('SET', 'claimd:leader', 'somebody "
                                 "else', 'NX', 'PX', ARGV[2])",
                                 "0",
                                 id,
                                 ms,
                                 NULL};
    n->pid_count = (size_t)nemesis_between(n, 2, WORLD_REDIS);
    n->index = (size_t)rand_below(&n->rand, WORLD_REDIS);
    nemesis_target(n, "", "r%zu", n->index);
    return st == STATUS_OK && tell(w, n, words);
}

/* Works in parts, since Redis does nothing else during a script. */
static bool tell_junk(struct world *w, const struct nemesis *n, const char *script)
{
    int64_t count = world_scaled(w, JUNK_HINTS);
    bool is_told = false;
    char first[24];
    char last[24];
    const char *const words[] = {"EVAL", script, "0", first, last, NULL};
    for (int64_t at = 0; at < count; at += JUNK_BATCH) {
        (void)snprintf(first, sizeof first, "%lld", (long long)at);
        (void)snprintf(last, sizeof last, "%lld", (long long)(at + JUNK_BATCH - 1));
        is_told = tell(w, n, words) || is_told;
    }
    return is_told;
}

/* Adds members that are not numbers, and ids without jobs, most of them first in line. */
static bool junk(struct world *w, struct nemesis *n)
{
    char count[24];
    (void)snprintf(count, sizeof count, "%lld", (long long)world_scaled(w, JUNK_HINTS));
    choose(n, 1, count);
    return tell_junk(
        w, n,
        "for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do redis.call('ZADD', 'claimd:hints:default',"
        " i, i % 10 == 0 and 'junk' .. i or 7000000000 + i) end");
}

/* Removes what workers have not dropped by then, at some thousand per second: nothing else would be
 * done before it. */
static void junk_ends(struct world *w, struct nemesis *n)
{
    (void)tell_junk(
        w, n,
        "for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do redis.call('ZREM', 'claimd:hints:default',"
        " i % 10 == 0 and 'junk' .. i or 7000000000 + i) end");
}

static bool password(struct world *w, struct nemesis *n)
{
    static const char *const words[] = {"CLIENT", "KILL", "TYPE", "normal", NULL};
    choose(n, WORLD_REDIS, "");
    bool is_set = config_set(w, n, "requirepass", PASSWORD);
    (void)tell(w, n, words); /* connections that exist would stay authenticated */
    return is_set;
}

static void password_ends(struct world *w, struct nemesis *n)
{
    (void)config_set(w, n, "requirepass", "");
}

static bool forget_scripts(struct world *w, struct nemesis *n)
{
    static const char *const words[] = {"SCRIPT", "FLUSH", NULL};
    choose(n, WORLD_REDIS, "");
    return tell(w, n, words);
}

/* Affects at most two of five, as with evictions. */
static bool step_clock(struct world *w, struct nemesis *n)
{
    int64_t ms = rand_below(&n->rand, 2) == 0 ? 60000 : -60000;
    char detail[32];
    (void)snprintf(detail, sizeof detail, "%+lld ms", (long long)ms);
    choose(n, 2, detail);
    for (size_t i = 0; i < n->pid_count; i++) {
        world_set_clock(w, (n->index + i) % WORLD_REDIS, world_scaled(w, ms * US_PER_MS));
    }
    return true;
}

static void reset_clock(struct world *w, struct nemesis *n)
{
    for (size_t i = 0; i < n->pid_count; i++) {
        world_set_clock(w, (n->index + i) % WORLD_REDIS, 0);
    }
}

const struct nemesis_def nemesis_redis_defs[] = {
    {"redis_empty", "one, some or all Redis are killed, and restarted empty at once or later",
     COUNT_EMPTY, TRAIT_REDIS, 20000, 0, 0, redis_empty, NULL},
    {"redis_flushall", "FLUSHALL of one, some or all Redis", COUNT_EMPTY, TRAIT_REDIS, 45000, 0, 0,
     flushall, NULL},
    {"redis_stop", "SIGSTOP of one, some or all Redis", COUNT_OTHER, TRAIT_REDIS, 40000, 500, 20000,
     stop_redis, cont_redis},
    {"redis_pause", "CLIENT PAUSE of one, some or all Redis", COUNT_OTHER, TRAIT_REDIS, 60000, 0, 0,
     pause_redis, NULL},
    {"redis_oom", "one, some or all Redis have no memory left", COUNT_OTHER, TRAIT_REDIS, 60000,
     1000, 20000, oom, oom_ends},
    {"redis_evict", "one or two Redis evict keys", COUNT_OTHER, TRAIT_REDIS | TRAIT_BEYOND_LOCKS,
     90000, 1000, 15000, evict, evict_ends},
    {"redis_wrong_type", "a set of hints is a string", COUNT_OTHER,
     TRAIT_REDIS | TRAIT_BEYOND_LOCKS, 90000, 1000, 15000, wrong_type, right_type},
    {"redis_planted", "locks with foreign tokens on future jobs and on the leader's key",
     COUNT_OTHER, TRAIT_REDIS | TRAIT_BEYOND_LOCKS | TRAIT_BY_MINORITY, 60000, 0, 0, planted, NULL},
    {"redis_junk",
     "a million junk entries among the hints; what is left of them is removed at the end",
     COUNT_OTHER, TRAIT_REDIS | TRAIT_SPARES_RESCUES, 600000, 10000, 60000, junk, junk_ends},
    {"redis_password", "one, some or all Redis require a password that no client has", COUNT_OTHER,
     TRAIT_REDIS, 90000, 1000, 15000, password, password_ends},
    {"redis_scripts", "SCRIPT FLUSH of one, some or all Redis", COUNT_OTHER,
     TRAIT_REDIS | TRAIT_SPARES_RESCUES, 60000, 0, 0, forget_scripts, NULL},
    {"redis_clock", "the clock of one or two Redis is stepped by 60 s, and back", COUNT_CLOCK,
     TRAIT_REDIS | TRAIT_BEYOND_LOCKS, 150000, 5000, 30000, step_clock, reset_clock},
};
const size_t nemesis_redis_count = ARRAY_COUNT(nemesis_redis_defs);
