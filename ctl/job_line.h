/* SPDX-License-Identifier: Apache-2.0
 *
 * One line of an enqueue file, {"kind": "resize", "args": {…}, …}, to one row of COPY, or to an
 * element of enqueue_many() where it asks for what only that function gives. Checks what
 * the schema checks, so that the reason names the key and the allowed form; duplicate keys, at any
 * depth, only this end can see (jsonb keeps the last). args and metadata reach PostgreSQL as they
 * were written: numbers keep their digits. Pure. */
#ifndef CLAIMD_CTL_JOB_LINE_H
#define CLAIMD_CTL_JOB_LINE_H

#include "base/buf.h"

#define JOB_LINE_MAX ((size_t)2 << 20)
#define JOB_DELAY_MAX_US (INT64_C(36500) * 86400 * 1000000)
#define JOB_TIMEOUT_MAX_US (INT64_C(366) * 86400 * 1000000)

/* Appends the row, newline included. `*is_request` is set if the line needs enqueue_many(); then
 * also appends the element, behind the bracket or the comma of its array, which the caller ends.
 * `now_us` is PostgreSQL's clock (Unix): what "delay" counts from. INVALID. */
enum status job_line_put(const char *line, size_t len, int64_t now_us, bool *is_request,
                         struct buf *row, struct buf *request, struct err *err) MUST_USE;

/* What only the table could see of a row: the key and the allowed form in the place of the server's
 * words, which name a constraint. */
void job_line_name_refusal(struct err *err);

/* The same checks for single values: INVALID names the allowed form. */
/* `name` begins what it says. */
enum status job_json_check(const char *name, const char *json, size_t len,
                           struct err *err) MUST_USE;
enum status job_args_check(const char *json, size_t len, struct err *err) MUST_USE;
/* An object. */
enum status job_metadata_check(const char *json, size_t len, struct err *err) MUST_USE;
enum status job_duration_check(const char *name, const char *text, int64_t min_us, int64_t max_us,
                               int64_t *ret_us, struct err *err) MUST_USE;

#endif
