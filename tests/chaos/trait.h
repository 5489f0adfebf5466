/* SPDX-License-Identifier: Apache-2.0
 *
 * What the checkers need to know about a fault. Each fault in nemesis.jsonl has the sum of its
 * traits, which are a field of the nemesis' table. */
#ifndef CLAIMD_TESTS_CHAOS_TRAIT_H
#define CLAIMD_TESTS_CHAOS_TRAIT_H

enum fault_trait {
    TRAIT_REPORT = 1 << 0,         /* no fault: the world reports something */
    TRAIT_SPARES_RESCUES = 1 << 1, /* does not hinder the rescue of a job */
    TRAIT_SPARES_WAITS = 1 << 2,   /* makes no job wait longer */
    TRAIT_FAILOVER = 1 << 3,       /* another PostgreSQL takes over */
    TRAIT_LOSES_COMMITS = 1 << 4,  /* the latest commits may be lost */
    TRAIT_PG_GONE = 1 << 5,        /* PostgreSQL is down */
    TRAIT_PG_STOPPED = 1 << 6,     /* PostgreSQL stands still */
    TRAIT_PG_CLOCK = 1 << 7,       /* PostgreSQL's clock is stepped */
    TRAIT_REDIS = 1 << 8,          /* a lock node loses keys, or answers late or not at all */
    TRAIT_RUNNER_STOPPED = 1 << 9, /* a runner stands still */
    TRAIT_SUSPENDED = 1 << 10,     /* a worker and its runners stand still */
    TRAIT_BEYOND_LOCKS = 1 << 11,  /* no lock survives it (guarantees G6) */
    TRAIT_BY_MINORITY = 1 << 12    /* hinders even if a minority of the lock nodes has it */
};

#endif
