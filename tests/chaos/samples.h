/* SPDX-License-Identifier: Apache-2.0
 *
 * samples.jsonl: what each daemon has in memory, descriptors and children, every second (K8); and
 * in nemesis.jsonl, steps of the host's wall clock (K2). */
#ifndef CLAIMD_TESTS_CHAOS_SAMPLES_H
#define CLAIMD_TESTS_CHAOS_SAMPLES_H

#include "chaos/folder.h"

struct world;

struct samples {
    struct journal journal;
    int64_t next_us;
    int64_t looked_us; /* BOOTTIME, at the host's wall clock; 0 = not yet */
    int64_t offset_us; /* of the wall clock from BOOTTIME, then */
};

enum status samples_open(struct samples *s, const struct folder *f, struct err *err) MUST_USE;
void samples_close(struct samples *s);
void samples_tick(struct samples *s, struct world *w, int64_t now_us); /* what is due */

#endif
