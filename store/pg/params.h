/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of one statement, appended in order to memory that is reused. The first error
 * sticks: append all, then check once with params_step(). */
#ifndef CLAIMD_STORE_PG_PARAMS_H
#define CLAIMD_STORE_PG_PARAMS_H

#include "store/pg/pg.h"

#define PARAMS_MAX 24
#define PARAM_BYTES_MAX ((size_t)64 << 20)
#define UUID_BYTES 16

struct params {
    struct pg_param list[PARAMS_MAX];
    int count;
    enum status st;
    struct err err;
    char scalars[PARAMS_MAX][UUID_BYTES];
    struct buf arrays[PARAMS_MAX];
};

void params_reset(struct params *p); /* accepts a zeroed one; frees unusually large memory */
void params_release(struct params *p);

void params_i64(struct params *p, int64_t value);
void params_i32(struct params *p, int32_t value);
void params_bool(struct params *p, bool value);
void params_time(struct params *p, int64_t unix_us); /* INT64_MIN = -infinity */
void params_text(struct params *p, const char *text);
void params_uuid(struct params *p, const char *uuid);
void params_i64_array(struct params *p, const int64_t *values, size_t count);
/* values as from pg_tid() */
void params_tid_array(struct params *p, const int64_t *values, size_t count);
void params_text_array(struct params *p, const char *const *values, const size_t *lens,
                       size_t count);

/* Fills in *ret_step. OK if all parameters were built; their number must be that of the
 * statement. */
enum status params_step(const struct params *p, const struct pg_statement *statement,
                        struct pg_step *ret_step, struct err *err) MUST_USE;

#endif
