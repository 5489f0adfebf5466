/* SPDX-License-Identifier: Apache-2.0
 *
 * The judgement of a run: the fast verdict, claimd-chaos-check if it is built, and the last
 * line. */
#ifndef CLAIMD_TESTS_CHAOS_JUDGE_H
#define CLAIMD_TESTS_CHAOS_JUDGE_H

#include "chaos/nemesis.h"
#include "chaos/verdict.h"

struct judgement {
    struct verdict verdict;
    int check_code; /* exit code of claimd-chaos-check; 0 = good, or not built */
    bool has_check;
    int64_t process_violations;
    int64_t drain_us;
    int64_t counts[COUNTS];
};

enum status judge_folder(const struct folder *f, struct judgement *ret, struct err *err) MUST_USE;
bool judge_is_good(const struct judgement *j);

/* Prints the last line. `is_whole`: the run was completed. Removes the folder of a good run unless
 * it is to be kept. Returns the exit code. */
int judge_last_line(const struct judgement *j, const struct options *options,
                    const struct folder *f, bool is_whole);

#endif
