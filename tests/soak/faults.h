/* SPDX-License-Identifier: Apache-2.0
 *
 * The faults of a soak: those of the chaos kit that strike processes, few enough for a million
 * jobs, and the loss of one Redis and of PostgreSQL, once each. */
#ifndef CLAIMD_TESTS_SOAK_FAULTS_H
#define CLAIMD_TESTS_SOAK_FAULTS_H

#include "chaos/nemesis.h"

struct faults {
    struct nemeses all;
    bool stops_until_moved;
    int64_t look_us; /* when the next look for the moved jobs of a stopped worker is due */
};

/* `stops_until_moved`: struct soak_bug. */
void faults_begin(struct faults *f, struct world *w, uint64_t seed, bool stops_until_moved);
void faults_tick(struct faults *f, struct world *w); /* applies and ends faults that are due */
bool faults_had_all(const struct faults *f);         /* true if each kind was applied */
size_t faults_count(const struct faults *f);
void faults_heal(struct faults *f, struct world *w); /* ends all faults; returns when all run */

#endif
