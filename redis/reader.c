/* SPDX-License-Identifier: Apache-2.0 */
#include "redis/reader.h"

#include <hiredis/hiredis.h>
#include <stdalign.h>

#define CHUNK_BYTES ((size_t)16 << 10)
#define DEPTH_MAX 8 /* of nested arrays: the limit of hiredis 0.14; later versions have none */

/* Up to 0.14, hiredis counts the items of an array in an int. */
#if HIREDIS_MAJOR >= 1
typedef size_t item_count;
#else
typedef int item_count;
#endif

struct chunk {
    struct chunk *next;
    size_t used;
    size_t size;
    alignas(max_align_t) char bytes[];
};

struct reader {
    redisReader *parser;
    struct chunk *chunks; /* the newest first; the last one is kept for the next reply */
    size_t arena_bytes;
    bool is_foreign; /* a type of reply arrived that only RESP3 has */
};

/* A value whose array is filled item by item, while callers see it as constant. */
struct value {
    struct redis_value v;
    struct redis_value **slots;
};

static struct chunk *chunk_add(struct reader *r, size_t size)
{
    if (size > REDIS_REPLY_BYTES_MAX || r->arena_bytes > REDIS_REPLY_BYTES_MAX - size) {
        return NULL;
    }
    struct chunk *c = malloc(sizeof *c + size);
    if (c == NULL) {
        return NULL;
    }
    *c = (struct chunk){.next = r->chunks, .size = size};
    r->chunks = c;
    r->arena_bytes += size;
    return c;
}

static void *arena_take(struct reader *r, size_t size)
{
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct chunk *c = r->chunks;
    if (c == NULL || c->size - c->used < size) {
        c = chunk_add(r, size > CHUNK_BYTES ? size : CHUNK_BYTES);
        if (c == NULL) {
            return NULL;
        }
    }
    void *p = c->bytes + c->used;
    c->used += size;
    return p;
}

static void arena_reset(struct reader *r, bool keep_one)
{
    while (r->chunks != NULL &&
           (r->chunks->next != NULL || r->chunks->size > CHUNK_BYTES || !keep_one)) {
        struct chunk *c = r->chunks;
        r->chunks = c->next;
        r->arena_bytes -= c->size;
        free(c);
    }
    if (r->chunks != NULL) {
        r->chunks->used = 0;
    }
}

/* Detects RESP3, which we never request (HELLO 3). From hiredis 1.0 on its reader supports RESP3,
 * whose types have higher numbers. */
static bool is_foreign(const redisReadTask *task)
{
    struct reader *r = task->privdata;
    /* RESP3's nil has a type of its own; RESP2 sends it as a string or an array. */
    bool is_new = task->type > REDIS_REPLY_ERROR || task->type == REDIS_REPLY_NIL;
    r->is_foreign = r->is_foreign || is_new;
    return r->is_foreign;
}

static bool is_too_deep(const redisReadTask *task)
{
    size_t depth = 1;
    for (const redisReadTask *t = task->parent; t != NULL; t = t->parent) {
        depth++;
    }
    return depth > DEPTH_MAX;
}

/* Makes a value and puts it into its parent. hiredis has one task per array, through which it
 * passes the parent's value. */
static struct value *value_new(const redisReadTask *task, enum redis_reply_type type)
{
    struct value *v = arena_take(task->privdata, sizeof *v);
    if (v == NULL) {
        return NULL;
    }
    *v = (struct value){.v = {.type = type, .text = ""}};
    if (task->parent != NULL) {
        struct value *parent = task->parent->obj;
        parent->slots[task->idx] = &v->v;
    }
    return v;
}

static void *create_string(const redisReadTask *task, char *text, size_t len)
{
    enum redis_reply_type type = task->type == REDIS_REPLY_ERROR    ? REDIS_ERROR
                                 : task->type == REDIS_REPLY_STATUS ? REDIS_STATUS
                                                                    : REDIS_STRING;
    char *copy = is_foreign(task) ? NULL : arena_take(task->privdata, len + 1);
    struct value *v = copy != NULL ? value_new(task, type) : NULL;
    if (v == NULL) {
        return NULL;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    v->v.text = copy;
    v->v.len = len;
    return v;
}

static void *create_array(const redisReadTask *task, item_count count)
{
    size_t n = (size_t)count;
    if (n > REDIS_REPLY_BYTES_MAX / sizeof(struct redis_value *) || is_foreign(task) ||
        is_too_deep(task)) {
        return NULL;
    }
    struct redis_value **slots = arena_take(task->privdata, n * sizeof *slots);
    struct value *v = slots != NULL ? value_new(task, REDIS_ARRAY) : NULL;
    if (v == NULL) {
        return NULL;
    }
    v->slots = slots;
    v->v.items = slots;
    v->v.len = n;
    return v;
}

static void *create_integer(const redisReadTask *task, long long number)
{
    struct value *v = value_new(task, REDIS_INTEGER);
    if (v != NULL) {
        v->v.integer = number;
    }
    return v;
}

static void *create_nil(const redisReadTask *task)
{
    return is_foreign(task) ? NULL : value_new(task, REDIS_NIL);
}

#if HIREDIS_MAJOR >= 1
/* Without these two, hiredis would return numbers as if they were our values. */
static void *create_double(const redisReadTask *task, double number, char *text, size_t len)
{
    (void)number;
    (void)text;
    (void)len;
    (void)is_foreign(task);
    return NULL;
}

static void *create_bool(const redisReadTask *task, int is_true)
{
    (void)is_true;
    (void)is_foreign(task);
    return NULL;
}
#endif

/* Values are freed with the arena. */
static void free_object(void *object)
{
    (void)object;
}

/* hiredis requires a writable table but never writes to it. */
static redisReplyObjectFunctions *object_functions(void)
{
    static redisReplyObjectFunctions functions = {
        .createString = create_string,
        .createArray = create_array,
        .createInteger = create_integer,
        .createNil = create_nil,
#if HIREDIS_MAJOR >= 1
        .createDouble = create_double,
        .createBool = create_bool,
#endif
        .freeObject = free_object,
    };
    return &functions;
}

enum status reader_new(struct reader **ret_reader, struct err *err)
{
    struct reader *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return err_fail(err, STATUS_NOMEM, "redis: no memory for a reader");
    }
    r->parser = redisReaderCreateWithFunctions(object_functions());
    if (r->parser == NULL) {
        free(r);
        return err_fail(err, STATUS_NOMEM, "redis: no memory for a reader");
    }
    r->parser->privdata = r;
    *ret_reader = r;
    return STATUS_OK;
}

void reader_free(struct reader *r)
{
    if (r == NULL) {
        return;
    }
    redisReaderFree(r->parser);
    arena_reset(r, false);
    free(r);
}

enum status reader_feed(struct reader *r, const char *bytes, size_t len, struct err *err)
{
    if (r->parser->len - r->parser->pos > REDIS_REPLY_BYTES_MAX - len) {
        return err_fail(err, STATUS_LIMIT, "redis: a reply exceeds %zu bytes",
                        REDIS_REPLY_BYTES_MAX);
    }
    if (redisReaderFeed(r->parser, bytes, len) != REDIS_OK) {
        return err_fail(err, STATUS_NOMEM, "redis: %s", r->parser->errstr);
    }
    return STATUS_OK;
}

enum status reader_next(struct reader *r, const struct redis_value **ret_value, struct err *err)
{
    if (r->parser->ridx < 0) {
        arena_reset(r, true); /* no reply is half built */
    }
    void *reply = NULL;
    if (redisReaderGetReply(r->parser, &reply) != REDIS_OK) {
        return err_fail(err, STATUS_INVALID, "redis: %s",
                        r->is_foreign ? "an unexpected reply in RESP3" : r->parser->errstr);
    }
    *ret_value = reply;
    return STATUS_OK;
}
