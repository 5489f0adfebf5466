/* SPDX-License-Identifier: Apache-2.0
 *
 * samples.jsonl: memory, descriptors and children of each daemon, every second (K8); and in
 * nemesis.jsonl, steps of the host's wall clock (K2). */
#ifndef CLAIMD_TESTS_CHAOS_SAMPLES_H
#define CLAIMD_TESTS_CHAOS_SAMPLES_H

#include "chaos/folder.h"

struct world;

struct samples {
    struct journal journal;
    int64_t next_us;
    int64_t looked_us; /* BOOTTIME of the last reading of the wall clock; 0 = never */
    int64_t offset_us; /* its offset from BOOTTIME at that time */
};

enum status samples_open(struct samples *s, const struct folder *f, struct err *err) MUST_USE;
void samples_close(struct samples *s);
/* Takes the samples that are due. */
void samples_tick(struct samples *s, struct world *w, int64_t now_us);

#endif
