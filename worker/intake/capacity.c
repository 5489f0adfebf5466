/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/intake/capacity.h"

/* Work to hold per runner: longer than a round of lock, claim and commit under load, but short
 * enough that a job claimed ahead does not wait noticeably. */
#define AHEAD_US 40000
#define MEAN_WEIGHT 64

/* Upper bound of the same if the servers are far away: then a runner holds as much as the longest
 * run that counts as short, which is a few fetches long; but not so much that jobs would be handed
 * back because they wait. */
#define AHEAD_MAX_US 500000

/* How much work ends between two pops. A job that becomes due in between waits for the second. */
#define POP_US 10000

/* Limits that refuse more than one claim in REFUSED_PART reduce claiming ahead, to no less than
 * AHEAD_LEAST. */
#define REFUSED_PART 8
#define AHEAD_LEAST 32

/* Finishes that wait for a row which some other session has locked must not stall a worker that
 * claims nothing ahead (INTERFACES rule 4). */
#define UNSETTLED_SPARE 64

static int64_t hold_us(const struct capacity_facts *f)
{
    int64_t us = f->short_us < AHEAD_MAX_US ? f->short_us : AHEAD_MAX_US;
    return us > AHEAD_US ? us : AHEAD_US;
}

size_t capacity_ahead(const struct capacity_facts *f, const struct capacity_limits *l)
{
    int64_t us = hold_us(f);
    if (f->mean_run_us <= 0 || f->mean_run_us > us) {
        return 0;
    }
    uint64_t jobs = (uint64_t)f->runners * (uint64_t)us / (uint64_t)f->mean_run_us;
    return jobs < l->claim_ahead_max ? (size_t)jobs : l->claim_ahead_max;
}

static size_t worth_a_pop(const struct capacity_facts *f, size_t ahead)
{
    size_t quarter = ahead / 4;
    uint64_t soon =
        f->mean_run_us > 0 ? (uint64_t)f->runners * POP_US / (uint64_t)f->mean_run_us : 0;
    return soon < quarter ? (size_t)soon : quarter;
}

size_t capacity_want(const struct capacity_facts *f, const struct capacity_limits *l)
{
    size_t ahead = capacity_ahead(f, l);
    size_t room = f->idle + ahead;
    size_t taken = f->coming + f->ready;
    size_t unsettled_max = f->runners + 2 * l->claim_ahead_max +
                           UNSETTLED_SPARE; /* don't pile up while PostgreSQL is slow */
    if (taken >= room || f->finishing >= unsettled_max) {
        return 0;
    }
    size_t want = room - taken;
    if (want < worth_a_pop(f, ahead) && f->idle <= taken) {
        return 0;
    }
    return want < l->batch_max ? want : l->batch_max;
}

size_t capacity_ahead_max(size_t now, const struct capacity_answer *a, size_t most)
{
    size_t next = most;
    if (a->refused * REFUSED_PART <= a->claimed + a->refused) {
        next = now + now / 32 + 1;
    } else if (a->has_work) {
        next = now - now / 4;
    }
    next = next > AHEAD_LEAST ? next : AHEAD_LEAST;
    return next < most ? next : most;
}

size_t capacity_try(const struct capacity_facts *f, size_t credit)
{
    if (credit < (f->coming + f->ready) / 4) {
        return 0; /* not worth a round trip yet */
    }
    /* At least one, so that a hint of another queue is popped; hints that may not be tried go
     * back. */
    return credit > 0 ? credit : 1;
}

int64_t capacity_mean(int64_t mean_us, int64_t ran_us)
{
    int64_t ran = ran_us < 1 ? 1 : ran_us;
    if (mean_us == 0) {
        return ran;
    }
    int64_t mean = mean_us + (ran - mean_us) / MEAN_WEIGHT;
    return mean < 1 ? 1 : mean;
}
