/* SPDX-License-Identifier: Apache-2.0
 *
 * States of a job and the one table of its transitions. Pure. sql/migrations carries the same
 * states in its CHECKs; tests compare, so a change here is a migration there. */
#ifndef CLAIMD_MODEL_JOB_H
#define CLAIMD_MODEL_JOB_H

#include "base/err.h"
#include "model/backoff.h"
#include "sql/job_flags.h"

#include <stddef.h>
#include <stdint.h>

/* Stored states: the first two live in claimd.job, the others in claimd.job_history. */
#define JOB_STATE_MAP(X)      \
    X(AVAILABLE, "available") \
    X(RUNNING, "running")     \
    X(COMPLETED, "completed") \
    X(CANCELLED, "cancelled") \
    X(DISCARDED, "discarded")

enum job_state {
#define X(name, text) JOB_##name,
    JOB_STATE_MAP(X)
#undef X
        JOB_STATE_COUNT
};

const char *job_state_text(enum job_state s);

/* All legal transitions. Any other change of a row's state is a bug, which end-to-end tests report.
 * docs/guarantees.md has the same table. */
struct job_edge {
    enum job_state from;
    const char *event;
    enum job_state to;
};
extern const struct job_edge job_edges[];
extern const size_t job_edge_count;

static inline bool job_state_is_final(enum job_state s)
{
    return s >= JOB_COMPLETED;
}

/* Limits of INTERFACES; sql/functions checks the same numbers. */
#define JOB_ARGS_MAX ((size_t)1 << 20)
#define JOB_RESULT_MAX ((size_t)64 << 10)
#define JOB_LOG_TAIL_MAX ((size_t)16 << 10)
#define JOB_CHECKPOINT_MAX ((size_t)64 << 10)
#define JOB_PROGRESS_MAX 200 /* characters */
#define JOB_METADATA_MAX ((size_t)64 << 10)
#define JOB_PREDECESSORS_MAX ((size_t)256 << 10) /* as JSON, for the handler */
#define JOB_FLAGS_LIMITED (JOB_FLAG_KEY | JOB_FLAG_PLACE)
#define JOB_STRIKES_MAX 2 /* uncharged ends of which nobody knows whose doing they were */
#define JOB_NAME_MAX 64
#define JOB_WORKER_ID_SIZE 37 /* uuid text */
#define JOB_PRIORITY_MAX 9
#define JOB_ERROR_MAX 1024
#define JOB_DELAY_US_MAX (INT64_C(366) * 86400 * 1000000) /* of a retry */
#define JOB_SNOOZE_US_MIN INT64_C(1000000) /* uncharged, so nothing else would slow it down */

static inline int job_strikes(int flags)
{
    return (flags / JOB_FLAG_STRIKE) & 3;
}

/* ^[a-z][a-z0-9_]*$, at most 64 octets; queues also '.' and '-'. INVALID names the rule. */
enum status job_kind_check(const char *name, struct err *err) MUST_USE;
enum status job_queue_check(const char *name, struct err *err) MUST_USE;

/* A kind's settings for its jobs. */
struct kind_settings {
    int max_attempts;
    int max_crashes;
    int64_t timeout_us;
    int64_t grace_us; /* from stop to kill; 0 = lock.guard_ms */
    bool at_most_once;
    bool keeps_none;            /* set by operators: its completed jobs are only counted */
    bool keeps_log;             /* the log is kept for completed runs, too */
    char backoff[BACKOFF_SIZE]; /* "" = the usual one */
};

bool kind_settings_equal(const struct kind_settings *a, const struct kind_settings *b);

/* What a plugin may say of its kinds. */
#define JOB_KIND_ATTEMPTS_MAX 1000 /* crashes, too */
#define JOB_KIND_TIMEOUT_MS_MAX (INT64_C(365) * 24 * 3600 * 1000)
#define JOB_KIND_VERSION_MAX 64
#define JOB_KIND_GRACE_MS_MAX (INT64_C(3600) * 1000)

/* Of a kind that no worker has announced. */
#define JOB_MAX_ATTEMPTS_DEFAULT 25
#define JOB_MAX_CRASHES_DEFAULT 3
#define JOB_TIMEOUT_US_DEFAULT (INT64_C(30) * 60 * 1000000)

/* Backoff before attempt n + 1 after n charged attempts: min(15 s · 2^(n−1), 1 h) ± 10 %. `unit` is
 * the jitter's draw in [0, 1000]. */
int64_t job_backoff_us(int attempt, int unit);

#endif
