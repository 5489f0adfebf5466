/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose fault is it? A batch is one transaction, so one finish that PostgreSQL won't take holds up
 * all others of its worker. Bisecting finds it. An SQLSTATE that speaks of data condemns it at
 * once. Any other may be the server's trouble, perhaps one that comes and goes: it condemns only
 * what was refused alone again and again while others were committed in between. Until then, and
 * when it can't be recorded even without its data, it is set aside and tried alone, so that it
 * never comes between the others. Pure: no I/O. */
#ifndef CLAIMD_STORE_JOBS_SUSPECTS_H
#define CLAIMD_STORE_JOBS_SUSPECTS_H

#include "store/jobs/batch.h"

struct suspects {
    size_t finish_max;         /* of the next batch: all, or fewer while searching */
    uint64_t commits;          /* batches that had finishes */
    struct finish_queue aside; /* each until its again_us */
    int64_t aside_until_us;    /* the first of them */
    struct err aside_trouble;
};

void suspects_init(struct suspects *s);
void suspects_release(struct suspects *s);

bool suspects_is_searching(const struct suspects *s);

/* A batch with finishes was refused for what may be the data of one. True: try again at once;
 * false: back off. The finish that is to blame may have left the batch, for the front of `waiting`
 * or to be set aside. */
bool suspects_blame(struct suspects *s, struct batch *b, const struct err *err,
                    struct finish_queue *waiting, int64_t now_us);
/* A batch with finishes was committed. */
void suspects_committed(struct suspects *s);

/* Those whose time has come wait again. */
void suspects_retry(struct suspects *s, struct finish_queue *waiting, int64_t now_us);

#endif
