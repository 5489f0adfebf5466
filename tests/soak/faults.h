/* SPDX-License-Identifier: Apache-2.0
 *
 * What a soak does to its world, by its plan. */
#ifndef CLAIMD_TESTS_SOAK_FAULTS_H
#define CLAIMD_TESTS_SOAK_FAULTS_H

#include "soak/fault_plan.h"

/* One that was done, by the wall clock. */
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
    int64_t stale_refused; /* what the workers have reported of it before their deaths */
    bool stops_until_moved;
};

/* The schedulers come first among the world's hosts. `stops_until_moved`: struct soak_bug. */
void faults_begin(struct faults *f, struct world *w, uint64_t seed, bool stops_until_moved);
void faults_free(struct faults *f);
void faults_tick(struct faults *f);          /* what is due */
bool faults_had_all(const struct faults *f); /* each kind at least once */
void faults_heal(struct faults *f);          /* all go on; returns when all run */
/* Into soak.fault. */
enum status faults_store(const struct faults *f, struct session *s, struct err *err) MUST_USE;

#endif
