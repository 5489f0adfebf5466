/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts one line of an enqueue file, {"kind": "resize", "args": {…}, …}, to one row of COPY, or
 * to an element of enqueue_many() if it asks for something that only this function supports. Errors
 * name the key and the allowed form (job_check.h). args and metadata are passed to PostgreSQL
 * unchanged: numbers keep their digits. Pure. */
#ifndef CLAIMD_CTL_JOB_LINE_H
#define CLAIMD_CTL_JOB_LINE_H

#include "base/buf.h"

#define JOB_LINE_MAX ((size_t)2 << 20)

/* Appends the row with its newline. If the line needs enqueue_many(), also sets `*is_request` and
 * appends the element after the bracket or comma of its array; the caller ends the array. "delay"
 * counts from `now_us`, PostgreSQL's clock (Unix). INVALID on failure. */
enum status job_line_put(const char *line, size_t len, int64_t now_us, bool *is_request,
                         struct buf *row, struct buf *request, struct err *err) MUST_USE;

/* Rewrites an error that only the table could detect in a row: replaces the server's words, which
 * name a constraint, by the key and the allowed form. */
void job_line_name_refusal(struct err *err);

#endif
