/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the finish that makes PostgreSQL refuse a segment. A segment is one transaction, so one
 * refused finish holds up all others of its worker. Bisecting finds it. An SQLSTATE about data
 * condemns it at once. Any other may be a problem of the server, perhaps an intermittent one: it
 * condemns only a finish that was refused alone again and again while others were committed in
 * between. Until then, and if it can't be recorded even without its data, the finish is set aside
 * and tried alone, so that it does not hold up the others. Pure: no I/O. */
#ifndef CLAIMD_STORE_JOBS_SUSPECTS_H
#define CLAIMD_STORE_JOBS_SUSPECTS_H

#include "store/jobs/segment.h"

struct suspects {
    size_t finish_max;         /* for the next segment: the maximum, or fewer while searching */
    uint64_t commits;          /* number of committed segments that had finishes */
    struct finish_queue aside; /* each waits until its again_us */
    int64_t aside_until_us;    /* the earliest again_us */
    struct err aside_trouble;
};

void suspects_init(struct suspects *s);
void suspects_release(struct suspects *s);

bool suspects_is_searching(const struct suspects *s);

/* Call it when a segment with finishes was refused, perhaps because of the data of one. True: try
 * again at once; false: back off. The finish that is to blame may have left the segment, for the
 * front of `waiting` or to be set aside. */
bool suspects_blame(struct suspects *s, struct segment *segment, const struct err *err,
                    struct finish_queue *waiting, int64_t now_us);
/* Call it when a segment with finishes was committed. */
void suspects_committed(struct suspects *s);

/* Moves the finishes whose time has come to `waiting`. */
void suspects_retry(struct suspects *s, struct finish_queue *waiting, int64_t now_us);

#endif
