/* SPDX-License-Identifier: Apache-2.0
 *
 * One line of an enqueue file, {"kind": "resize", "args": {…}, …}, to one row of COPY, or to an
 * element of enqueue_many() where it asks for what only that function gives. Reasons name the key
 * and the allowed form (job_check.h). args and metadata reach PostgreSQL as they were written:
 * numbers keep their digits. Pure. */
#ifndef CLAIMD_CTL_JOB_LINE_H
#define CLAIMD_CTL_JOB_LINE_H

#include "base/buf.h"

#define JOB_LINE_MAX ((size_t)2 << 20)

/* Appends the row, newline included. `*is_request` is set if the line needs enqueue_many(); then
 * also appends the element, behind the bracket or the comma of its array, which the caller ends.
 * `now_us` is PostgreSQL's clock (Unix): what "delay" counts from. INVALID. */
enum status job_line_put(const char *line, size_t len, int64_t now_us, bool *is_request,
                         struct buf *row, struct buf *request, struct err *err) MUST_USE;

/* What only the table could see of a row: the key and the allowed form in the place of the server's
 * words, which name a constraint. */
void job_line_name_refusal(struct err *err);

#endif
