/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies a soak's planned faults to its world. */
#ifndef CLAIMD_TESTS_SOAK_FAULTS_H
#define CLAIMD_TESTS_SOAK_FAULTS_H

#include "soak/fault_plan.h"

/* A fault that was applied; times are of the wall clock. */
struct fault_done {
    struct fault fault;
    int64_t at_us;
    int64_t until_us; /* when it was over; 0 = not yet */
    pid_t pid;
    pid_t runner;    /* 0 = the daemon itself */
    int64_t look_us; /* when the next look for its moved jobs is due */
};

struct faults {
    struct world *world;
    struct fault_plan plan;
    struct fault next;
    int64_t begin_us;
    struct fault_done *done;
    size_t count;
    size_t capacity;
    int64_t stale_refused; /* sum of hosts_refusals(), read before each kill */
    bool stops_until_moved;
};

/* The schedulers come first among the world's hosts. `stops_until_moved`: struct soak_bug. */
void faults_begin(struct faults *f, struct world *w, uint64_t seed, bool stops_until_moved);
void faults_free(struct faults *f);
void faults_tick(struct faults *f);          /* applies and ends faults that are due */
bool faults_had_all(const struct faults *f); /* true if each kind was applied */
void faults_heal(struct faults *f);          /* ends all faults; returns when all run */
/* Writes the faults to soak.fault. */
enum status faults_store(const struct faults *f, struct session *s, struct err *err) MUST_USE;

#endif
