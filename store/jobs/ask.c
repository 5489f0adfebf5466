/* SPDX-License-Identifier: Apache-2.0
 *
 * What the job store asks with one statement. */
#include "store/jobs/internal.h"

enum status store_send_one(struct job_store *s, const struct pg_statement *statement,
                           const struct params *p, pg_done_cb *done, void *ctx, struct err *err)
{
    struct pg_request request = {.step_count = 1};
    enum status st = params_step(p, statement, &request.steps[0], err);
    if (st != STATUS_OK) {
        return st;
    }
    return store_send(s, &request, done, ctx, err);
}
