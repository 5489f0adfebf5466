/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pg/params.h"

#include <assert.h>

#define KEPT_BYTES_MAX ((size_t)1 << 20)
#define UNIX_TO_PG_EPOCH_US (INT64_C(946684800) * 1000000) /* 2000-01-01 */

void params_reset(struct params *p)
{
    for (int i = 0; i < p->count; i++) {
        if (p->arrays[i].cap > KEPT_BYTES_MAX) {
            buf_release(&p->arrays[i]);
        } else {
            buf_reset(&p->arrays[i]);
        }
    }
    p->count = 0;
    p->st = STATUS_OK;
    p->err = (struct err){.status = STATUS_OK};
}

void params_release(struct params *p)
{
    for (int i = 0; i < PARAMS_MAX; i++) {
        buf_release(&p->arrays[i]);
    }
}

static void add(struct params *p, struct pg_param param)
{
    assert(p->count < PARAMS_MAX);
    p->list[p->count] = param;
    p->count++;
}

void params_i64(struct params *p, int64_t value)
{
    assert(p->count < PARAMS_MAX);
    add(p, pg_param_i64(value, p->scalars[p->count]));
}

void params_i32(struct params *p, int32_t value)
{
    assert(p->count < PARAMS_MAX);
    add(p, pg_param_i32(value, p->scalars[p->count]));
}

void params_bool(struct params *p, bool value)
{
    add(p, pg_param_bool(value));
}

void params_time(struct params *p, int64_t unix_us)
{
    params_i64(p, unix_us == INT64_MIN ? INT64_MIN : unix_us - UNIX_TO_PG_EPOCH_US);
}

void params_text(struct params *p, const char *text)
{
    add(p, pg_param_text(text));
}

void params_uuid(struct params *p, const char *uuid)
{
    assert(p->count < PARAMS_MAX);
    struct pg_param param = {.bytes = NULL};
    enum status st = pg_param_uuid(uuid, p->scalars[p->count], &param, &p->err);
    p->st = p->st == STATUS_OK ? st : p->st;
    add(p, param);
}

static struct buf *array_begin(struct params *p)
{
    assert(p->count < PARAMS_MAX);
    struct buf *array = &p->arrays[p->count];
    array->max = PARAM_BYTES_MAX;
    buf_reset(array);
    return array;
}

static void array_end(struct params *p, const struct buf *array, enum status st)
{
    if (st != STATUS_OK && p->st == STATUS_OK) {
        p->st = st;
    }
    add(p, st == STATUS_OK ? pg_param_buf(array) : (struct pg_param){.bytes = NULL});
}

void params_i64_array(struct params *p, const int64_t *values, size_t count)
{
    struct buf *array = array_begin(p);
    array_end(p, array, pg_array_i64(array, values, count, &p->err));
}

void params_tid_array(struct params *p, const int64_t *values, size_t count)
{
    struct buf *array = array_begin(p);
    array_end(p, array, pg_array_tid(array, values, count, &p->err));
}

void params_text_array(struct params *p, const char *const *values, const size_t *lens,
                       size_t count)
{
    struct buf *array = array_begin(p);
    array_end(p, array, pg_array_text(array, values, lens, count, &p->err));
}

enum status params_step(const struct params *p, const struct pg_statement *statement,
                        struct pg_step *ret_step, struct err *err)
{
    assert(p->count == statement->type_count);
    if (p->st != STATUS_OK) {
        return err_fail(err, p->st, "%s: %s", statement->name, p->err.msg);
    }
    *ret_step = (struct pg_step){.statement = statement, .params = p->list};
    return STATUS_OK;
}
