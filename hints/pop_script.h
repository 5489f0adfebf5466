/* SPDX-License-Identifier: Apache-2.0
 *
 * The script that pops under load. Private to hints/.
 *
 * KEYS: the popper's own set (hints/wake.h), then sets of hints; ARGV[1]: how many ids at most.
 * Takes the ids with the lowest scores of all sets of hints together, and what is in its own.
 *
 * If any queue has a weight, ARGV[3] says "weight:sets" for each queue, in the order of KEYS: in
 * "9:2,1:2" the first two sets of hints are of the first queue. What is wanted is divided by weight
 * among the queues that have content, and the lowest scores of each queue are taken. ARGV[2] is a
 * number in [0, 2^32) that decides which queue gets what does not divide evenly; over many calls
 * these numbers must be evenly spread.
 *
 * Returns a list of runs {place of the set in KEYS, score of the run's first, {members}}, ordered
 * by that score; a run is of one set and one priority. Members come without their scores:
 * formatting those would cost more than all the rest. */
#ifndef CLAIMD_HINTS_POP_SCRIPT_H
#define CLAIMD_HINTS_POP_SCRIPT_H

#include "redis/redis.h"

extern const struct redis_script hints_pop_script;

#endif
