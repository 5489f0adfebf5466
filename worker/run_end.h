/* SPDX-License-Identifier: Apache-2.0
 *
 * How a run ended. What its handler said is enum claimd_outcome (sdk/claimd/plugin.h), what is
 * written of it enum finish_kind (store/jobs/job_store.h); worker/outcome.c leads from the first
 * two to the third. */
#ifndef CLAIMD_WORKER_RUN_END_H
#define CLAIMD_WORKER_RUN_END_H

enum run_end {
    RUN_END_SAID,        /* the handler said how */
    RUN_END_CRASHED,     /* the runner died by itself, or broke the protocol */
    RUN_END_TIMEOUT,     /* killed for its timeout */
    RUN_END_KILLED,      /* killed by us for its lease, a drain or a cancel */
    RUN_END_SPOILT,      /* … for what an earlier run of its runner may have written */
    RUN_END_DOUBTED,     /* nobody knows whether it has begun: its runner's page was written over */
    RUN_END_NOT_STARTED, /* never reached a handler */
    RUN_END_UNFIT        /* … and never can: no runner takes it */
};

/* What we did about a run before it ended, a set of bits. */
enum run_stop {
    RUN_ASKED = 1,     /* to come to an end, for its lease or a drain */
    RUN_TIMED_OUT = 2, /* asked or killed since its time was up */
    RUN_KILLED = 4     /* for its lease, a drain or a cancel */
};

#endif
