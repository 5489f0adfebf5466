/* SPDX-License-Identifier: Apache-2.0
 *
 * For handlers whose effect is in the same PostgreSQL database as claimd's jobs: the handler
 * completes the job in its own transaction, so that the effect happens exactly once
 * (docs/guide/effects.md). Needs libpq; plugin.h does not.
 *
 *     BEGIN; what the job is for; claimd_complete_in_tx(job, db, result); COMMIT
 *
 * After the COMMIT the handler returns claimd_done(job, NULL). If anything goes wrong before that,
 * it rolls back and returns claimd_retry() or claimd_fail(). */
#ifndef CLAIMD_POSTGRES_H
#define CLAIMD_POSTGRES_H

#include "claimd/plugin.h"

#include <libpq-fe.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Completes the job in an open transaction of `db`, whose user may execute claimd.complete_in_tx.
 * `result` is JSON text of at most 64 KiB; NULL = none. Returns 1 if the commit will complete the
 * job, 0 if the transaction must be rolled back; PQerrorMessage(db) then has the reason (SQLSTATE
 * CL001: another claim of the job is newer). Blocks as long as `db` does: set timeouts on it. */
static inline int claimd_complete_in_tx(const struct claimd_context *job, PGconn *db,
                                        const char *result)
{
    char id[24];
    char fence[24];
    const char *const values[] = {id, fence, result};
    (void)snprintf(id, sizeof id, "%lld", (long long)job->id);
    (void)snprintf(fence, sizeof fence, "%lld", (long long)job->fence);
    PGresult *r = PQexecParams(db, "SELECT claimd.complete_in_tx($1, $2, $3)", 3, NULL, values,
                               NULL, NULL, 0);
    int is_done = PQresultStatus(r) == PGRES_TUPLES_OK;
    PQclear(r);
    return is_done;
}

#ifdef __cplusplus
}
#endif

#endif
