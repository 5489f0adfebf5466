/* SPDX-License-Identifier: Apache-2.0
 *
 * The script that pops under load. Private to hints/.
 *
 * KEYS: sets; ARGV[1]: how many at most. Takes the ids with the lowest scores of all sets together.
 *
 * Where a queue has a weight, ARGV[3] says "weight:sets" for each queue, in the order of KEYS: of
 * "9:2,1:2" two sets are of the first queue. What is wanted is shared by weight among the queues
 * that have content, and of each queue the lowest scores are taken. ARGV[2] is a number in
 * [0, 2^32) that decides who gets what does not divide evenly; those of many calls must lie evenly.
 *
 * Returns a list of runs {place of the set in KEYS, score of the run's first, {members}}, ordered
 * by that score; a run is of one set and one priority. Members without their scores: formatting
 * those would cost more than all the rest. */
#ifndef CLAIMD_HINTS_POP_SCRIPT_H
#define CLAIMD_HINTS_POP_SCRIPT_H

#include "redis/redis.h"

extern const struct redis_script hints_pop_script;

#endif
