/* SPDX-License-Identifier: Apache-2.0
 *
 * States of a job and the single table of its transitions. Pure. sql/migrations has the same states
 * in its CHECKs; tests compare them, so a change here requires a migration there. */
#ifndef CLAIMD_MODEL_JOB_H
#define CLAIMD_MODEL_JOB_H

#include "base/err.h"
#include "model/backoff.h"
#include "sql/job_flags.h"

#include <stddef.h>
#include <stdint.h>

/* Stored states: the first two in claimd.job, the others in claimd.job_history. */
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

/* The limits of INTERFACES; sql/functions checks the same numbers. */
#define JOB_ARGS_MAX ((size_t)1 << 20)
#define JOB_RESULT_MAX ((size_t)64 << 10)
#define JOB_LOG_TAIL_MAX ((size_t)16 << 10)
#define JOB_CHECKPOINT_MAX ((size_t)64 << 10)
#define JOB_PROGRESS_MAX 200 /* characters */
#define JOB_METADATA_MAX ((size_t)64 << 10)
#define JOB_PREDECESSORS_MAX ((size_t)256 << 10) /* as JSON, as passed to the handler */
#define JOB_FLAGS_LIMITED (JOB_FLAG_KEY | JOB_FLAG_PLACE)
#define JOB_STRIKES_MAX 2 /* uncharged ends in doubt (INTERFACES rule 3) */
#define JOB_NAME_MAX 64
#define JOB_COMMAND_PREFIX "command_" /* of the kind of a command of worker.commands */
#define JOB_WORKER_ID_SIZE 37         /* uuid text */
#define JOB_PRIORITY_MAX 9
#define JOB_ERROR_MAX 1024
#define JOB_DELAY_US_MAX (INT64_C(366) * 86400 * 1000000) /* delay of a retry */
/* a snooze is uncharged, so nothing else would slow it down */
#define JOB_SNOOZE_US_MIN INT64_C(1000000)

static inline int job_strikes(int flags)
{
    return (flags / JOB_FLAG_STRIKE) & 3;
}

/* Check a name: ^[a-z][a-z0-9_]*$, at most 64 bytes; queues also allow '.' and '-'. INVALID names
 * the rule. */
enum status job_kind_check(const char *name, struct err *err) MUST_USE;
enum status job_queue_check(const char *name, struct err *err) MUST_USE;

/* A kind's settings for its jobs. */
struct kind_settings {
    int max_attempts;
    int max_crashes;
    int64_t timeout_us;
    int64_t grace_us; /* from stop to kill; 0 = lock.guard_ms */
    bool at_most_once;
    bool keeps_none;            /* set by operators: completed jobs are only counted */
    bool keeps_log;             /* the log of completed runs is kept, too */
    char backoff[BACKOFF_SIZE]; /* "" = the default backoff */
};

bool kind_settings_equal(const struct kind_settings *a, const struct kind_settings *b);

/* Limits of what a plugin may set for its kinds. */
#define JOB_KIND_ATTEMPTS_MAX 1000 /* also for crashes */
#define JOB_KIND_TIMEOUT_MS_MAX (INT64_C(365) * 24 * 3600 * 1000)
#define JOB_KIND_VERSION_MAX 64
#define JOB_KIND_GRACE_MS_MAX (INT64_C(3600) * 1000)

/* Defaults for a kind that no worker has announced. */
#define JOB_MAX_ATTEMPTS_DEFAULT 25
#define JOB_MAX_CRASHES_DEFAULT 3
#define JOB_TIMEOUT_US_DEFAULT (INT64_C(30) * 60 * 1000000)

/* Returns the backoff before attempt n + 1 after n charged attempts: min(15 s · 2^(n−1), 1 h) ± 10
 * %. `unit` is the random number of the jitter, in [0, 1000]. */
int64_t job_backoff_us(int attempt, int unit);

#endif
