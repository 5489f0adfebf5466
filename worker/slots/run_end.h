/* SPDX-License-Identifier: Apache-2.0
 *
 * How a run ended. enum claimd_outcome (sdk/claimd/plugin.h) is what its handler returned, and enum
 * finish_kind (store/jobs/job_store.h) is what PostgreSQL stores; worker/jobs/outcome.c maps the
 * first two to the third. */
#ifndef CLAIMD_WORKER_SLOTS_RUN_END_H
#define CLAIMD_WORKER_SLOTS_RUN_END_H

enum run_end {
    RUN_END_SAID,        /* the handler returned an outcome */
    RUN_END_CRASHED,     /* the runner died by itself, or broke the protocol */
    RUN_END_TIMEOUT,     /* killed because of its timeout */
    RUN_END_KILLED,      /* killed by the worker because of its lease, a drain or a cancel */
    RUN_END_SPOILT,      /* killed because of what an earlier run may have written */
    RUN_END_DOUBTED,     /* the page was written over, so it is unknown whether it began */
    RUN_END_NOT_STARTED, /* never reached a handler */
    RUN_END_UNFIT        /* can never reach a handler: no runner takes it */
};

/* What the worker did about a run before it ended; a set of bits. */
enum run_stop {
    RUN_ASKED = 1,     /* asked to stop, because of its lease or a drain */
    RUN_TIMED_OUT = 2, /* asked to stop or killed, because its time was up */
    RUN_KILLED = 4     /* because of its lease, a drain or a cancel */
};

#endif
