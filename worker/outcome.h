/* SPDX-License-Identifier: Apache-2.0
 *
 * How the end of a run becomes a finish. Pure: INTERFACES rule 3 and the table in
 * docs/guarantees.md, in one place. */
#ifndef CLAIMD_WORKER_OUTCOME_H
#define CLAIMD_WORKER_OUTCOME_H

#include "store/jobs/job_store.h"

/* How the attempt ended, as the worker saw it. */
enum run_end {
    RUN_END_DONE,        /* the handler said so */
    RUN_END_RETRY,       /* … try again */
    RUN_END_STOPPED,     /* … try again, when we had asked it to stop for its lease or a drain */
    RUN_END_TIMED_RETRY, /* … try again, when its time was up */
    RUN_END_FAIL,        /* … for good */
    RUN_END_SNOOZE,      /* … not now */
    RUN_END_CANCEL,      /* … not any more */
    RUN_END_CRASHED,     /* the runner died by itself, or broke the protocol */
    RUN_END_TIMEOUT,     /* killed for its timeout */
    RUN_END_KILLED,      /* killed by us for its lease or a drain */
    RUN_END_SPOILT,      /* … for what an earlier run of its runner may have written */
    RUN_END_DOUBTED,     /* nobody knows whether it has begun: its runner's page was written over */
    RUN_END_NOT_STARTED, /* never reached a handler */
};

struct run_facts {
    enum run_end end;
    bool is_cancelled; /* its cancel was asked for */
    int attempt;
    int crashes; /* before this one */
    int strikes; /* the same */
    struct kind_settings settings;
    int64_t retry_after_us; /* asked for by the handler; < 0 = backoff */
    int jitter_unit;        /* 0…1000 */
};

struct run_verdict {
    enum finish_kind kind;
    const char *outcome; /* job_attempt.outcome; NULL when nothing is recorded */
    int64_t delay_us;
    bool crashed;   /* HAND_BACK: a strike */
    bool is_poison; /* discarded because its crashes are used up */
};

struct run_verdict run_verdict(const struct run_facts *facts);

#endif
