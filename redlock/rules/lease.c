/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/rules/lease.h"

#include "base/bug.h"
#include "base/clock.h"

#include <inttypes.h>

#define MARGIN_US (2 * US_PER_MS)
#define TTL_MIN_US US_PER_S
#define TIMEOUTS_PER_TTL 10
#define RENEWALS_PER_TTL 3
#define RENEWAL_JITTER_PERCENT 10
#define RETRIES_PER_TTL 10 /* the pause between two tries is at most T/10 */

int64_t lease_drift_us(int64_t ttl_us, int drift_ppm)
{
    return (ttl_us * drift_ppm + 999999) / 1000000 + MARGIN_US;
}

enum status lease_check_terms(int64_t ttl_us, int64_t node_timeout_us, bool allow_short,
                              struct err *err)
{
    if (ttl_us <= 0 || ttl_us > LEASE_TTL_MAX_US || ttl_us % US_PER_MS != 0) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: ttl of %" PRId64 " us: whole milliseconds up to a day", ttl_us);
    }
    if (node_timeout_us < US_PER_MS || node_timeout_us > LEASE_TTL_MAX_US) {
        return err_fail(err, STATUS_INVALID, "redlock: node timeout of %" PRId64 " us",
                        node_timeout_us);
    }
    int64_t least_us = TIMEOUTS_PER_TTL * node_timeout_us;
    if (least_us < TTL_MIN_US) {
        least_us = TTL_MIN_US;
    }
    if (allow_short && ttl_us <= node_timeout_us) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: ttl of %" PRId64 " ms is not above the node timeout, %" PRId64
                        " ms",
                        ttl_us / US_PER_MS, node_timeout_us / US_PER_MS);
    }
    if (!allow_short && ttl_us < least_us) {
        return err_fail(err, STATUS_INVALID,
                        "redlock: ttl of %" PRId64 " ms is below %" PRId64
                        " ms (1 s and %d node timeouts)",
                        ttl_us / US_PER_MS, least_us / US_PER_MS, TIMEOUTS_PER_TTL);
    }
    return STATUS_OK;
}

struct lease lease_start(const struct lease_terms *terms, int64_t t0_us)
{
    int64_t drift_us = SEEDED_BUG(9) ? 0 : terms->drift_us;
    int64_t deadline_us = t0_us + terms->ttl_us - drift_us;
    bool is_cut = terms->end_us > 0 && terms->end_us < deadline_us;
    return (struct lease){.deadline_us = is_cut ? terms->end_us : deadline_us,
                          .state = REDLOCK_STATE_HELD};
}

int64_t lease_ttl_us(const struct lease_terms *terms, int64_t t0_us)
{
    int64_t rest_us = lease_start(terms, t0_us).deadline_us - t0_us + terms->drift_us;
    int64_t whole_us = (rest_us + US_PER_MS - 1) / US_PER_MS * US_PER_MS;
    if (whole_us > terms->ttl_us) {
        whole_us = terms->ttl_us;
    }
    return whole_us > US_PER_MS ? whole_us : US_PER_MS;
}

bool lease_check(struct lease *l, int64_t now_us)
{
    if (l->state == REDLOCK_STATE_LOST || now_us < l->deadline_us) {
        return false;
    }
    l->state = REDLOCK_STATE_LOST;
    return true;
}

bool lease_doubt(struct lease *l)
{
    if (l->state != REDLOCK_STATE_HELD) {
        return false;
    }
    l->state = REDLOCK_STATE_SUSPECT;
    return true;
}

bool lease_extend(struct lease *l, const struct lease_terms *terms, enum extend_verdict verdict,
                  int64_t t0_us, int64_t now_us)
{
    enum redlock_state before = l->state;
    if ((before == REDLOCK_STATE_LOST && !SEEDED_BUG(10)) || verdict == EXTEND_OPEN) {
        return false;
    }
    if (!SEEDED_BUG(10) && lease_check(l, now_us)) {
        return true;
    }
    struct lease renewed = lease_start(terms, t0_us);
    if (verdict == EXTEND_DONE) {
        if (renewed.deadline_us > l->deadline_us) {
            l->deadline_us = renewed.deadline_us;
        }
        l->state = REDLOCK_STATE_HELD;
    } else if (renewed.deadline_us >= l->deadline_us) { /* otherwise a later round was confirmed */
        l->state = verdict == EXTEND_DENIED ? REDLOCK_STATE_LOST : REDLOCK_STATE_SUSPECT;
    }
    return l->state != before;
}

int64_t lease_renewal_us(const struct lease_terms *terms, int64_t t0_us, bool is_first,
                         struct rand *rand)
{
    int64_t period_us = terms->ttl_us / RENEWALS_PER_TTL;
    if (is_first) {
        return t0_us + period_us - rand_below(rand, period_us * RENEWAL_JITTER_PERCENT / 100 + 1);
    }
    return t0_us + rand_jitter(rand, period_us, RENEWAL_JITTER_PERCENT);
}

int64_t lease_retry_us(const struct lease_terms *terms, int64_t now_us, int64_t node_timeout_us,
                       unsigned failures, struct rand *rand)
{
    int64_t longest_us = terms->ttl_us / RETRIES_PER_TTL;
    int64_t ceiling_us = node_timeout_us / 4;
    for (unsigned i = 1; i < failures && ceiling_us < longest_us; i++) {
        ceiling_us *= 2;
    }
    if (ceiling_us > longest_us) {
        ceiling_us = longest_us;
    }
    return now_us + rand_below(rand, ceiling_us + 1);
}
