/* SPDX-License-Identifier: Apache-2.0
 *
 * Group commit: delays finishes that nothing depends on by a few milliseconds, so that those of a
 * steady stream share a commit, and a release on every master. The first one after a pause is not
 * delayed. Pure: no I/O. */
#ifndef CLAIMD_STORE_JOBS_GROUP_COMMIT_H
#define CLAIMD_STORE_JOBS_GROUP_COMMIT_H

#include "store/jobs/finish.h"

struct group_commit {
    struct finish_queue finishes;
    int64_t sent_us;  /* when finishes were last passed on */
    int64_t along_us; /* when finishes last went along with a claim */
};

/* Moves the finishes to `to`, from which a segment is about to be made, if they have waited long
 * enough, are many, or if a segment is sent anyway: with other finishes, or, if `may_go_along`,
 * with claims that no runner waits for. Returns when to call again; INT64_MAX: not before more
 * finishes arrive. */
int64_t group_commit_pass_on(struct group_commit *g, struct finish_queue *to, bool may_go_along,
                             int64_t now_us);

#endif
