/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that the feed does not reach: they have been due for long, their kind is served, and they
 * have no hint. One look proves nothing, since a hint is absent while a worker tries to claim its
 * job, and is back with the next full pass at the latest. So only a job that has no hint for that
 * long counts. */
#ifndef CLAIMD_CTL_UNFED_H
#define CLAIMD_CTL_UNFED_H

#include "ctl/commands/doctor/checks.h"
#include "ctl/commands/doctor/hint_lookup.h"
#include "store/admin.h"

struct unfed {
    struct hint_lookup list[HINT_LOOKUP_MAX];
    size_t count;
};

/* Runs the check "unfed" of sql/check.sql (due for `claimd.check_after`) and observes its suspects
 * until each has had a hint or was claimed, or until the time is over. Returns at once if there are
 * none; otherwise it may take a full pass of the feed and 5 s. UNAVAILABLE, INVALID: Redis cannot
 * be asked; *ret has the suspects of that time. */
enum status unfed_find(const struct config *config, struct admin *a, const struct checks *checks,
                       struct unfed *ret, struct err *err) MUST_USE;

/* True if its lane gets no turn because the sets are full; false if the job just has no hint. */
bool unfed_is_starved(const struct config *config, const struct hint_lookup *job);

#endif
