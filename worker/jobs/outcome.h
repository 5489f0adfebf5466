/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns the end of a run into a finish. Pure: INTERFACES rule 3 and the table in
 * docs/guarantees.md, in one place. */
#ifndef CLAIMD_WORKER_JOBS_OUTCOME_H
#define CLAIMD_WORKER_JOBS_OUTCOME_H

#include "claimd/plugin.h"
#include "store/jobs/job_store.h"
#include "worker/slots/run_end.h"

struct run_facts {
    enum run_end end;
    enum claimd_outcome said; /* for RUN_END_SAID */
    unsigned stops;           /* enum run_stop */
    bool is_cancelled;        /* its cancel was requested */
    int attempt;
    int crashes; /* of earlier attempts */
    int strikes; /* of earlier attempts */
    struct kind_settings settings;
    int64_t retry_after_us; /* requested by the handler; < 0 = backoff */
    int jitter_unit;        /* 0…1000 */
};

struct run_verdict {
    enum finish_kind kind;
    const char *outcome; /* job_attempt.outcome; NULL = nothing is recorded */
    int64_t delay_us;
    bool crashed;   /* for FINISH_HAND_BACK: it gets a strike */
    bool is_poison; /* discarded because it has no more crashes left */
};

struct run_verdict run_verdict(const struct run_facts *facts);

/* Returns the recorder's word for this end (docs/reliability.md). */
const char *run_recorded_as(const struct run_facts *facts);

#endif
