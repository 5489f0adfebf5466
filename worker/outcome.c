/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/outcome.h"

#include "base/bug.h"

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

static struct run_verdict failed(const struct run_facts *f, const char *outcome)
{
    bool is_crash =
        f->end == RUN_END_CRASHED || f->end == RUN_END_SPOILT || f->end == RUN_END_DOUBTED;
    bool is_poison = is_crash && f->crashes + 1 >= f->settings.max_crashes;
    bool is_last = is_poison || f->attempt >= f->settings.max_attempts;
    struct run_verdict v = {.outcome = outcome, .crashed = is_crash, .is_poison = is_poison};
    if (is_last || f->end == RUN_END_FAIL) {
        v.kind = FINISH_DISCARDED;
        return v;
    }
    v.kind = FINISH_RETRY;
    v.delay_us = delay_us(f);
    return v;
}

static struct run_verdict snoozed(const struct run_facts *f)
{
    int64_t delay = delay_us(f);
    return (struct run_verdict){.kind = FINISH_SNOOZE,
                                .outcome = "snoozed",
                                .delay_us = delay > JOB_SNOOZE_US_MIN ? delay : JOB_SNOOZE_US_MIN};
}

/* A started at_most_once job whose outcome nobody knows ends as lost and never runs again. */
static struct run_verdict lost(bool is_crash)
{
    return (struct run_verdict){.kind = FINISH_DISCARDED, .outcome = "lost", .crashed = is_crash};
}

/* It may be the doing of another run, so it is uncharged, but not without end. A last attempt that
 * may have begun is not given back: the job would start more often than it may. */
static struct run_verdict doubted(const struct run_facts *f, bool is_once)
{
    bool is_last = f->end == RUN_END_DOUBTED && f->attempt >= f->settings.max_attempts;
    if (is_once) {
        return lost(f->end == RUN_END_DOUBTED);
    }
    if (is_last || f->strikes >= JOB_STRIKES_MAX) {
        return failed(f, "crashed");
    }
    return (struct run_verdict){.kind = FINISH_HAND_BACK, .outcome = "doubted", .crashed = true};
}

struct run_verdict run_verdict(const struct run_facts *f)
{
    bool is_once = f->settings.at_most_once && !SEEDED_BUG(12);
    if (f->is_cancelled && f->end != RUN_END_DONE) {
        return (struct run_verdict){.kind = FINISH_CANCELLED, .outcome = "cancelled"};
    }
    switch (f->end) {
    case RUN_END_DONE:
        return (struct run_verdict){.kind = FINISH_COMPLETED};
    case RUN_END_RETRY:
    case RUN_END_FAIL:
        return failed(f, "failed");
    case RUN_END_SNOOZE:
        return is_once ? failed(f, "failed") : snoozed(f);
    case RUN_END_CANCEL:
        return (struct run_verdict){.kind = FINISH_CANCELLED, .outcome = "cancelled"};
    case RUN_END_STOPPED:
        return is_once ? failed(f, "failed") : (struct run_verdict){.kind = FINISH_HAND_BACK};
    case RUN_END_TIMED_RETRY:
        return failed(f, "timeout");
    case RUN_END_CRASHED:
        return is_once ? lost(true) : failed(f, "crashed");
    case RUN_END_TIMEOUT:
        return is_once ? lost(false) : failed(f, "timeout");
    case RUN_END_KILLED:
        return is_once ? lost(false) : (struct run_verdict){.kind = FINISH_HAND_BACK};
    case RUN_END_SPOILT:
    case RUN_END_DOUBTED:
        return doubted(f, is_once);
    case RUN_END_NOT_STARTED:
        break;
    }
    return (struct run_verdict){.kind = FINISH_HAND_BACK};
}
