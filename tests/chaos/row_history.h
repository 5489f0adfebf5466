/* SPDX-License-Identifier: Apache-2.0
 *
 * The complete history of every row of job and job_history: triggers write it into an append-only
 * table of the test database, which is exported at the end. */
#ifndef CLAIMD_TESTS_CHAOS_ROW_HISTORY_H
#define CLAIMD_TESTS_CHAOS_ROW_HISTORY_H

#include "chaos/folder.h"
#include "chaos/session.h"

enum status row_history_begin(struct session *sql, struct err *err) MUST_USE;
/* Writes events.jsonl and final.jsonl. */
enum status row_history_export(struct session *sql, const struct folder *folder,
                               struct err *err) MUST_USE;

#endif
