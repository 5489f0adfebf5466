/* SPDX-License-Identifier: Apache-2.0
 *
 * samples.jsonl: what each daemon has in memory, descriptors and children, every second (K8). */
#ifndef CLAIMD_TESTS_CHAOS_SAMPLES_H
#define CLAIMD_TESTS_CHAOS_SAMPLES_H

#include "chaos/folder.h"

struct world;

struct samples {
    struct journal journal;
    int64_t next_us;
};

enum status samples_open(struct samples *s, const struct folder *f, struct err *err) MUST_USE;
void samples_close(struct samples *s);
void samples_tick(struct samples *s, const struct world *w, int64_t now_us); /* what is due */

#endif
