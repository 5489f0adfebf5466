/* SPDX-License-Identifier: Apache-2.0
 *
 * The data directories of private PostgreSQL servers, and the copies of them that tests share. */
#ifndef CLAIMD_CLUSTER_PG_DATA_H
#define CLAIMD_CLUSTER_PG_DATA_H

#include "base/buf.h"
#include "base/err.h"

#define PG_TOOL_OUTPUT_MAX ((size_t)1 << 20)

/* Runs a tool of PostgreSQL to its end, for at most two minutes. Returns UNAVAILABLE with its
 * output if the exit code is not 0. */
enum status pg_tool_run(const char *const *argv, struct buf *out, struct err *err) MUST_USE;

/* Fills that directory with a new cluster of databases, unless it has one. */
enum status pg_data_make(const char *data, struct err *err) MUST_USE;

/* Copies what pg_data_keep() kept under that name into a directory that has no cluster. NOT_FOUND:
 * nothing was kept under that name, or tests share nothing. */
enum status pg_data_copy(const char *data, const char *name, struct err *err) MUST_USE;

/* Keeps a copy of the data of a server that has shut down, for other tests of the same build and
 * the same PostgreSQL. If another process was first, its copy stays. `name` must change with all
 * that the data depend on. ./dev test removes old copies. */
enum status pg_data_keep(const char *data, const char *name, struct err *err) MUST_USE;

#endif
