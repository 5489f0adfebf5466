/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/jobs/outcome.h"

#include "base/bug.h"
#include "base/cleanup.h"

#include <assert.h>

static int64_t delay_us(const struct run_facts *f)
{
    struct backoff backoff;
    if (f->retry_after_us >= 0) {
        return f->retry_after_us;
    }
    if (f->settings.backoff[0] != '\0' &&
        backoff_parse(f->settings.backoff, &backoff, NULL) == STATUS_OK) {
        return backoff_us(&backoff, f->attempt, f->jitter_unit);
    }
    return job_backoff_us(f->attempt, f->jitter_unit);
}

static struct run_verdict failed(const struct run_facts *f, const char *outcome, bool is_crash)
{
    bool is_poison = is_crash && f->crashes + 1 >= f->settings.max_crashes;
    bool is_last = is_poison || f->attempt >= f->settings.max_attempts;
    struct run_verdict v = {.kind = is_last ? FINISH_DISCARDED : FINISH_RETRY,
                            .outcome = outcome,
                            .crashed = is_crash,
                            .is_poison = is_poison};
    if (!is_last) {
        v.delay_us = delay_us(f);
    }
    return v;
}

/* ---- the verdicts ---- */

static struct run_verdict completed(const struct run_facts *f)
{
    (void)f;
    return (struct run_verdict){.kind = FINISH_COMPLETED};
}

static struct run_verdict charged(const struct run_facts *f)
{
    return failed(f, "failed", false);
}

static struct run_verdict discarded(const struct run_facts *f)
{
    (void)f;
    return (struct run_verdict){.kind = FINISH_DISCARDED, .outcome = "failed"};
}

static struct run_verdict snoozed(const struct run_facts *f)
{
    int64_t delay = delay_us(f);
    return (struct run_verdict){.kind = FINISH_SNOOZE,
                                .outcome = "snoozed",
                                .delay_us = delay > JOB_SNOOZE_US_MIN ? delay : JOB_SNOOZE_US_MIN};
}

static struct run_verdict cancelled(const struct run_facts *f)
{
    (void)f;
    return (struct run_verdict){.kind = FINISH_CANCELLED, .outcome = "cancelled"};
}

static struct run_verdict timed_out(const struct run_facts *f)
{
    return failed(f, "timeout", false);
}

static struct run_verdict crashed(const struct run_facts *f)
{
    return failed(f, "crashed", true);
}

static struct run_verdict handed_back(const struct run_facts *f)
{
    (void)f;
    return (struct run_verdict){.kind = FINISH_HAND_BACK};
}

/* A started at_most_once job whose outcome is unknown ends as lost and never runs again. */
static struct run_verdict lost(const struct run_facts *f)
{
    (void)f;
    return (struct run_verdict){.kind = FINISH_DISCARDED, .outcome = "lost"};
}

static struct run_verdict lost_in_crash(const struct run_facts *f)
{
    (void)f;
    return (struct run_verdict){.kind = FINISH_DISCARDED, .outcome = "lost", .crashed = true};
}

/* Another run may have caused this end, so it is not charged, up to JOB_STRIKES_MAX times. A last
 * attempt that may have begun is charged: otherwise the job could start more often than
 * max_attempts. */
static struct run_verdict doubted(const struct run_facts *f)
{
    bool is_last = f->end == RUN_END_DOUBTED && f->attempt >= f->settings.max_attempts;
    if (is_last || f->strikes >= JOB_STRIKES_MAX) {
        return crashed(f);
    }
    return (struct run_verdict){.kind = FINISH_HAND_BACK, .outcome = "doubted", .crashed = true};
}

/* ---- which verdict applies ---- */

typedef struct run_verdict verdict_fn(const struct run_facts *f);

struct row {
    const char *recorded_as;
    verdict_fn *verdict;
    verdict_fn *once; /* for at_most_once kinds; NULL = the same */
};

static const struct row said[] = {
    [CLAIMD_DONE] = {"done", completed, NULL},     [CLAIMD_RETRY] = {"retry", charged, NULL},
    [CLAIMD_FAIL] = {"fail", discarded, NULL},     [CLAIMD_SNOOZE] = {"snooze", snoozed, charged},
    [CLAIMD_CANCEL] = {"cancel", cancelled, NULL},
};
static_assert(ARRAY_COUNT(said) == CLAIMD_OUTCOME_LAST + 1, "a row for each outcome");

static const struct row ends[] = {
    [RUN_END_CRASHED] = {"crashed", crashed, lost_in_crash},
    [RUN_END_TIMEOUT] = {"timeout", timed_out, lost},
    [RUN_END_KILLED] = {"killed", handed_back, lost},
    [RUN_END_SPOILT] = {"spoilt", doubted, lost},
    [RUN_END_DOUBTED] = {"doubted", doubted, lost_in_crash},
    [RUN_END_NOT_STARTED] = {"not_started", handed_back, NULL},
    [RUN_END_UNFIT] = {"unfit", discarded, NULL},
};

/* For a handler that gave up because it was asked to stop: a drain must not use up the attempts of
 * handlers that obey (INTERFACES rule 3). */
static const struct row gave_up = {"stopped", handed_back, charged};
static const struct row gave_up_late = {"timed_retry", timed_out, NULL};

static const struct row *row_of(const struct run_facts *f)
{
    if (f->end != RUN_END_SAID) {
        return &ends[f->end];
    }
    bool is_again = f->said == CLAIMD_RETRY || f->said == CLAIMD_SNOOZE;
    if (is_again && (f->stops & RUN_TIMED_OUT) != 0) {
        return &gave_up_late;
    }
    if (f->said == CLAIMD_RETRY && (f->stops & RUN_ASKED) != 0) {
        return &gave_up;
    }
    return &said[f->said];
}

struct run_verdict run_verdict(const struct run_facts *f)
{
    bool is_once = f->settings.at_most_once && !SEEDED_BUG(12);
    bool is_done = f->end == RUN_END_SAID && f->said == CLAIMD_DONE;
    const struct row *row = row_of(f);
    if (f->is_cancelled && !is_done) {
        return cancelled(f);
    }
    return is_once && row->once != NULL ? row->once(f) : row->verdict(f);
}

const char *run_recorded_as(const struct run_facts *f)
{
    return row_of(f)->recorded_as;
}
