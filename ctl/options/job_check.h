/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks single values of a job as the schema does, so that the error can name the allowed form:
 * each function returns INVALID with it. Duplicate keys in JSON can only be detected here (jsonb
 * keeps the last). Pure. */
#ifndef CLAIMD_CTL_JOB_CHECK_H
#define CLAIMD_CTL_JOB_CHECK_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_DELAY_MAX_US (INT64_C(36500) * 86400 * 1000000)
#define JOB_TIMEOUT_MAX_US (INT64_C(366) * 86400 * 1000000)

/* The error begins with `name`. */
enum status job_json_check(const char *name, const char *json, size_t len,
                           struct err *err) MUST_USE;
enum status job_args_check(const char *json, size_t len, struct err *err) MUST_USE;
/* Requires an object. */
enum status job_metadata_check(const char *json, size_t len, struct err *err) MUST_USE;
enum status job_duration_check(const char *name, const char *text, int64_t min_us, int64_t max_us,
                               int64_t *ret_us, struct err *err) MUST_USE;

/* Refuses an empty tag, which no filter would find. */
#define JOB_TAGS_ALLOWED "an array of texts that are not empty"
bool job_tags_are_allowed(const json_t *tags);

/* Reports the reason of the parser. Valid JSON that is refused for another reason is not called
 * "not JSON". */
enum status job_refuse_json(const char *name, const json_error_t *where, struct err *err) MUST_USE;

#endif
