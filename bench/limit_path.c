/* SPDX-License-Identifier: Apache-2.0
 *
 * The limit program's round trips to Redis and PostgreSQL. */
#include "base/clock.h"
#include "bench/limit.h"
#include "bench/raw.h"
#include "redis/redis.h"

#include <inttypes.h>
#include <stdio.h>

#define KEY_SIZE 40
#define TTL_MS "10000"
#define COMMANDS_MAX ((size_t)1 << 20) /* bytes of one round, for one master */
#define ARRAY_MAX ((size_t)64 << 10)

/* Returns members only: Redis prints a score in 17 digits. */
static const char pop_script[] = "local ids = redis.call('zrange', KEYS[1], 0, ARGV[1] - 1) "
                                 "if #ids > 0 then "
                                 "redis.call('zremrangebyrank', KEYS[1], 0, #ids - 1) end "
                                 "return ids";
static const char release_script[] =
    "local held = redis.call('mget', unpack(KEYS)) local own = {} "
    "for i = 1, #held do if held[i] == ARGV[1] then own[#own + 1] = KEYS[i] end end "
    "if #own > 0 then redis.call('del', unpack(own)) end return #own";

static const char claim_sql[] =
    "UPDATE " LIMIT_SCHEMA ".job SET state = 'running', attempt = attempt + 1,"
    " fence = nextval('" LIMIT_SCHEMA ".fence'), worker_id = $2::bigint,"
    " attempted_at = clock_timestamp() WHERE id = ANY ($1::bigint[]) AND state = 'available'"
    " AND scheduled_at <= clock_timestamp() RETURNING id, fence, attempt, kind, args";
static const char finish_sql[] =
    "WITH ended AS (DELETE FROM " LIMIT_SCHEMA ".job AS j"
    " USING unnest($1::bigint[], $2::bigint[]) AS f (id, fence)"
    " WHERE j.id = f.id AND j.fence = f.fence AND j.state = 'running' RETURNING j.*)"
    " INSERT INTO " LIMIT_SCHEMA ".job_history (id, queue, kind, args, priority, scheduled_at,"
    " state, attempt, max_attempts, fence, worker_id, attempted_at, finalized_at, created_at) "
    "SELECT id, queue, kind, args, priority, scheduled_at, 'completed', attempt,"
    " max_attempts, fence, worker_id, attempted_at, clock_timestamp(), created_at"
    " FROM ended";

struct limit_path {
    PGconn *pg;
    redisContext *masters[MASTERS_MAX];
    size_t master_count;
    size_t index;
    uint64_t batches;
    char pop_sha[RAW_SHA_SIZE];
    char release_sha[RAW_SHA_SIZE];
    struct buf commands;
    struct buf ids;
    struct buf fences;
};

static enum status open_masters(struct limit_path *p, const struct cluster *c, struct err *err)
{
    for (size_t i = 0; i < c->options.masters; i++) {
        enum status st = raw_redis_open(c->redis[i].path, &p->masters[i], err);
        if (st != STATUS_OK) {
            return st;
        }
        p->master_count = i + 1;
        st = raw_redis_load(p->masters[i], release_script, p->release_sha, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return raw_redis_load(p->masters[0], pop_script, p->pop_sha, err);
}

static enum status open_all(struct limit_path *p, const struct cluster *c, struct err *err)
{
    enum status st = open_masters(p, c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = raw_pg_open(c->conninfo, &p->pg, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = raw_pg_prepare(p->pg, "claim", claim_sql, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = raw_pg_prepare(p->pg, "finish", finish_sql, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (PQenterPipelineMode(p->pg) != 1) {
        return err_fail(err, STATUS_UNAVAILABLE, "no pipeline mode");
    }
    return STATUS_OK;
}

enum status limit_path_open(const struct cluster *c, size_t index, struct limit_path **ret,
                            struct err *err)
{
    struct limit_path *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return err_fail(err, STATUS_NOMEM, "limit program");
    }
    p->index = index;
    buf_init(&p->commands, COMMANDS_MAX);
    buf_init(&p->ids, ARRAY_MAX);
    buf_init(&p->fences, ARRAY_MAX);
    enum status st = open_all(p, c, err);
    if (st != STATUS_OK) {
        limit_path_close(p);
        return st;
    }
    *ret = p;
    return STATUS_OK;
}

void limit_path_close(struct limit_path *p)
{
    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->master_count; i++) {
        raw_redis_close(p->masters[i]);
    }
    raw_pg_close(p->pg);
    buf_release(&p->commands);
    buf_release(&p->ids);
    buf_release(&p->fences);
    free(p);
}

/* ---- Redis ---- */

enum status limit_pop(struct limit_path *p, struct limit_batch *next, struct err *err)
{
    redisContext *node = p->masters[0];
    redisReply *reply = NULL;
    if (redisAppendCommand(node, "EVALSHA %s 1 " LIMIT_HINTS " %d", p->pop_sha, LIMIT_BATCH) !=
        REDIS_OK) {
        return err_fail(err, STATUS_NOMEM, "pop");
    }
    enum status st = raw_redis_take(node, &reply, err);
    if (st != STATUS_OK) {
        return st;
    }
    next->count = 0;
    for (size_t i = 0; i < reply->elements && i < LIMIT_BATCH; i++) {
        next->ids[next->count++] = strtoll(reply->element[i]->str, NULL, 10);
    }
    freeReplyObject(reply);
    return STATUS_OK;
}

static struct redis_arg key_of(int64_t id, char storage[KEY_SIZE])
{
    int n = snprintf(storage, KEY_SIZE, "claimd:job:%" PRId64, id);
    return redis_bytes(storage, (size_t)n);
}

static enum status add_locks(struct limit_path *p, const struct limit_batch *next, struct err *err)
{
    char key[KEY_SIZE];
    enum status st = STATUS_OK;
    for (size_t i = 0; i < next->count && st == STATUS_OK; i++) {
        const struct redis_arg set[] = {redis_word("SET"),       key_of(next->ids[i], key),
                                        redis_word(next->token), redis_word("NX"),
                                        redis_word("PX"),        redis_word(TTL_MS)};
        st = redis_command(&p->commands, set, ARRAY_COUNT(set), err);
    }
    return st;
}

static enum status add_release(struct limit_path *p, const struct limit_batch *ended,
                               struct err *err)
{
    char keys[LIMIT_BATCH][KEY_SIZE];
    struct redis_arg args[LIMIT_BATCH + 4];
    char count[16];
    size_t n = 0;
    (void)snprintf(count, sizeof count, "%zu", ended->count);
    args[n++] = redis_word("EVALSHA");
    args[n++] = redis_word(p->release_sha);
    args[n++] = redis_word(count);
    for (size_t i = 0; i < ended->count; i++) {
        args[n++] = key_of(ended->ids[i], keys[i]);
    }
    args[n++] = redis_word(ended->token);
    return redis_command(&p->commands, args, n, err);
}

static enum status take_release(redisContext *node, const struct limit_batch *ended,
                                struct err *err)
{
    redisReply *reply = NULL;
    enum status st = raw_redis_take(node, &reply, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t released = reply->integer;
    freeReplyObject(reply);
    if (released != (int64_t)ended->count) {
        return err_fail(err, STATUS_CONFLICT, "%" PRId64 " of %zu locks were still held", released,
                        ended->count);
    }
    return STATUS_OK;
}

static enum status take_locks(redisContext *node, const struct limit_batch *next,
                              uint8_t votes[LIMIT_BATCH], struct err *err)
{
    for (size_t i = 0; i < next->count; i++) {
        redisReply *reply = NULL;
        enum status st = raw_redis_take(node, &reply, err);
        if (st != STATUS_OK) {
            return st;
        }
        votes[i] = (uint8_t)(votes[i] + (reply->type == REDIS_REPLY_STATUS));
        freeReplyObject(reply);
    }
    return STATUS_OK;
}

static enum status take_round(struct limit_path *p, const struct limit_batch *ended,
                              const struct limit_batch *next, struct err *err)
{
    uint8_t votes[LIMIT_BATCH] = {0};
    for (size_t i = 0; i < p->master_count; i++) {
        enum status st = ended->count > 0 ? take_release(p->masters[i], ended, err) : STATUS_OK;
        if (st != STATUS_OK) {
            return st;
        }
        st = take_locks(p->masters[i], next, votes, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    for (size_t i = 0; i < next->count; i++) {
        if (votes[i] <= p->master_count / 2) {
            return err_fail(err, STATUS_CONFLICT, "the lock of job %" PRId64 " was not won",
                            next->ids[i]);
        }
    }
    return STATUS_OK;
}

enum status limit_lock(struct limit_path *p, const struct limit_batch *ended,
                       struct limit_batch *next, struct err *err)
{
    enum status st = STATUS_OK;
    if (ended->count == 0 && next->count == 0) {
        return STATUS_OK;
    }
    (void)snprintf(next->token, sizeof next->token, "%08x%08x%011" PRIx64, (unsigned)getpid(),
                   (unsigned)p->index, ++p->batches);
    buf_reset(&p->commands);
    if (ended->count > 0) {
        st = add_release(p, ended, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    st = add_locks(p, next, err);
    for (size_t i = 0; i < p->master_count && st == STATUS_OK; i++) {
        st = raw_redis_write(p->masters[i], &p->commands, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return take_round(p, ended, next, err);
}

/* ---- PostgreSQL ---- */

static enum status send_statement(PGconn *pg, const char *name, int count,
                                  const struct pg_param *params, struct err *err)
{
    static const int formats[] = {1, 1, 1};
    const char *values[3];
    int lens[3];
    for (int i = 0; i < count; i++) {
        values[i] = params[i].bytes;
        lens[i] = params[i].len;
    }
    if (PQsendQueryPrepared(pg, name, count, values, lens, formats, 1) != 1) {
        return err_fail(err, STATUS_UNAVAILABLE, "PostgreSQL: %s", PQerrorMessage(pg));
    }
    return STATUS_OK;
}

static enum status set_ids(struct limit_path *p, const struct limit_batch *batch, struct err *err)
{
    buf_reset(&p->ids);
    return pg_array_i64(&p->ids, batch->ids, batch->count, err);
}

static enum status send_finish(struct limit_path *p, const struct limit_batch *running,
                               struct err *err)
{
    enum status st = set_ids(p, running, err);
    if (st != STATUS_OK) {
        return st;
    }
    buf_reset(&p->fences);
    st = pg_array_i64(&p->fences, running->fences, running->count, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct pg_param params[] = {pg_param_buf(&p->ids), pg_param_buf(&p->fences)};
    return send_statement(p->pg, "finish", 2, params, err);
}

static enum status send_claim(struct limit_path *p, const struct limit_batch *next, struct err *err)
{
    char storage[8];
    enum status st = set_ids(p, next, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct pg_param params[] = {pg_param_buf(&p->ids),
                                      pg_param_i64((int64_t)p->index + 1, storage)};
    return send_statement(p->pg, "claim", 2, params, err);
}

static enum status take_finish(PGconn *pg, const struct limit_batch *running, struct err *err)
{
    PGresult *result = NULL;
    enum status st = raw_pg_take(pg, PGRES_COMMAND_OK, &result, err);
    if (st != STATUS_OK) {
        return st;
    }
    size_t finished = (size_t)strtoull(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    if (finished != running->count) {
        return err_fail(err, STATUS_CONFLICT, "%zu of %zu jobs were still ours", finished,
                        running->count);
    }
    return STATUS_OK;
}

/* Takes the rows in the order in which they were claimed. */
static enum status take_claim(PGconn *pg, struct limit_batch *next, struct err *err)
{
    PGresult *result = NULL;
    enum status st = raw_pg_take(pg, PGRES_TUPLES_OK, &result, err);
    if (st != STATUS_OK) {
        return st;
    }
    size_t claimed = (size_t)PQntuples(result);
    for (size_t i = 0; i < claimed && i < next->count; i++) {
        next->ids[i] = raw_pg_i64(result, (int)i, 0);
        next->fences[i] = raw_pg_i64(result, (int)i, 1);
    }
    PQclear(result);
    if (claimed != next->count) {
        return err_fail(err, STATUS_CONFLICT, "%zu of %zu jobs were claimed", claimed, next->count);
    }
    return STATUS_OK;
}

enum status limit_commit(struct limit_path *p, const struct limit_batch *running,
                         struct limit_batch *next, struct err *err)
{
    enum status st = STATUS_OK;
    if (running->count == 0 && next->count == 0) {
        return STATUS_OK;
    }
    if (running->count > 0) {
        st = send_finish(p, running, err);
    }
    if (st == STATUS_OK && next->count > 0) {
        st = send_claim(p, next, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    if (PQpipelineSync(p->pg) != 1) {
        return err_fail(err, STATUS_UNAVAILABLE, "PostgreSQL: %s", PQerrorMessage(p->pg));
    }
    if (running->count > 0) {
        st = take_finish(p->pg, running, err);
    }
    if (st == STATUS_OK && next->count > 0) {
        st = take_claim(p->pg, next, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return raw_pg_take_sync(p->pg, err);
}
