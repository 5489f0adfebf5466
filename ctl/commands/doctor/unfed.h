/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that the feed does not reach: due for long, of a served kind, and without a hint. One look
 * proves nothing, since a hint is away while a worker tries to claim its job, and comes back with
 * the next full pass at the latest: only who has none for that long counts. */
#ifndef CLAIMD_CTL_UNFED_H
#define CLAIMD_CTL_UNFED_H

#include "ctl/commands/doctor/checks.h"
#include "ctl/commands/doctor/hint_lookup.h"
#include "store/admin.h"

struct unfed {
    struct hint_lookup list[HINT_LOOKUP_MAX];
    size_t count;
};

/* Runs the check "unfed" of sql/check.sql (due for `claimd.check_after`) and looks at its suspects
 * until each was seen with a hint, claimed, or has had its time. Returns at once when there are
 * none; otherwise it may take a full pass of the feed and 5 s. UNAVAILABLE, INVALID: Redis can't be
 * asked; what was suspect then is in *ret. */
enum status unfed_find(const struct config *config, struct admin *a, const struct checks *checks,
                       struct unfed *ret, struct err *err) MUST_USE;

/* What to say of one: it has no hint, or its lane gets no turn among full sets. */
bool unfed_is_starved(const struct config *config, const struct hint_lookup *job);

#endif
