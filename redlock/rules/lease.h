/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of leases: how long a won lock may be relied on, and when to extend it. Pure: every
 * time is an argument. */
#ifndef CLAIMD_REDLOCK_RULES_LEASE_H
#define CLAIMD_REDLOCK_RULES_LEASE_H

#include "base/rand.h"
#include "redlock/rules/tally.h"

#define LEASE_TTL_MAX_US (INT64_C(24) * 3600 * 1000000)

/* How long a lock lasts, and how far the clocks of two machines may drift apart during that
 * time. */
struct lease_terms {
    int64_t ttl_us;   /* T */
    int64_t drift_us; /* D */
    int64_t end_us;   /* no deadline is later (lock.E9); 0 = no such bound */
};

/* Returns D = ⌈ρT⌉ + 2 ms. */
int64_t lease_drift_us(int64_t ttl_us, int drift_ppm);

/* Checks A16; STATUS_INVALID names the bound. */
enum status lease_check_terms(int64_t ttl_us, int64_t node_timeout_us, bool allow_short,
                              struct err *err) MUST_USE;

struct lease {
    int64_t deadline_us;
    enum redlock_state state;
};

/* Starts a lease. t0: before the first byte of the round was written (lock.A4). */
struct lease lease_start(const struct lease_terms *terms, int64_t t0_us);

/* Returns the ttl to send to the nodes in a round that begins at t0: T, or less if the deadline
 * would be later than the bound (lock.E9); at least 1 ms, in whole milliseconds. */
int64_t lease_ttl_us(const struct lease_terms *terms, int64_t t0_us);

/* Makes a lease lost that is past its deadline, whatever the nodes say (lock.E7, W4). True if this
 * changed it. */
bool lease_check(struct lease *l, int64_t now_us);

/* Makes the lease suspect: its quorum is in doubt for a reason other than a round (lock.N2). True
 * if the state changed. */
bool lease_doubt(struct lease *l);

/* Applies the verdict of a round that began at t0 (lock.E2–E5, E8). True if the state changed. */
bool lease_extend(struct lease *l, const struct lease_terms *terms, enum extend_verdict verdict,
                  int64_t t0_us, int64_t now_us);

/* Returns the time of the next renewal. W1: the first one at T/3 − 0…10 %, later ones T/3 ± 10 %
 * after the last. */
int64_t lease_renewal_us(const struct lease_terms *terms, int64_t t0_us, bool is_first,
                         struct rand *rand);

/* Returns the time of the next try after `failures` ≥ 1 unconfirmed rounds in a row (E5); full
 * jitter. */
int64_t lease_retry_us(const struct lease_terms *terms, int64_t now_us, int64_t node_timeout_us,
                       unsigned failures, struct rand *rand);

#endif
