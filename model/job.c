/* SPDX-License-Identifier: Apache-2.0 */
#include "model/job.h"

#define BACKOFF_FIRST_US (INT64_C(15) * 1000000)
#define BACKOFF_MAX_US (INT64_C(3600) * 1000000)

static const char *const state_texts[] = {
#define X(name, text) [JOB_##name] = (text),
    JOB_STATE_MAP(X)
#undef X
};

static const char *const event_texts[] = {
#define X(name, text) [JOB_EVENT_##name] = (text),
    JOB_EVENT_MAP(X)
#undef X
};

static const struct {
    enum job_state from;
    enum job_event event;
    enum job_state to;
} transitions[] = {
    {JOB_AVAILABLE, JOB_EVENT_CLAIM, JOB_RUNNING},
    {JOB_AVAILABLE, JOB_EVENT_CANCEL, JOB_CANCELLED},
    {JOB_RUNNING, JOB_EVENT_COMPLETE, JOB_COMPLETED},
    {JOB_RUNNING, JOB_EVENT_RETRY, JOB_AVAILABLE},
    {JOB_RUNNING, JOB_EVENT_HAND_BACK, JOB_AVAILABLE},
    {JOB_RUNNING, JOB_EVENT_RESCUE, JOB_AVAILABLE},
    {JOB_RUNNING, JOB_EVENT_DISCARD, JOB_DISCARDED},
    {JOB_RUNNING, JOB_EVENT_LOSE, JOB_DISCARDED},
    {JOB_RUNNING, JOB_EVENT_CANCEL, JOB_CANCELLED},
    {JOB_COMPLETED, JOB_EVENT_REDRIVE, JOB_AVAILABLE},
    {JOB_CANCELLED, JOB_EVENT_REDRIVE, JOB_AVAILABLE},
    {JOB_DISCARDED, JOB_EVENT_REDRIVE, JOB_AVAILABLE},
};

const char *job_state_text(enum job_state s)
{
    return (size_t)s < ARRAY_COUNT(state_texts) ? state_texts[s] : "no state";
}

const char *job_event_text(enum job_event e)
{
    return (size_t)e < ARRAY_COUNT(event_texts) ? event_texts[e] : "no event";
}

enum status job_state_parse(const char *text, enum job_state *ret_state, struct err *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(state_texts); i++) {
        if (strcmp(text, state_texts[i]) == 0) {
            *ret_state = (enum job_state)i;
            return STATUS_OK;
        }
    }
    return err_fail(err, STATUS_NOT_FOUND, "'%.40s' is no state of a job", text);
}

enum status job_transition(enum job_state from, enum job_event event, enum job_state *ret_to,
                           struct err *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(transitions); i++) {
        if (transitions[i].from == from && transitions[i].event == event) {
            *ret_to = transitions[i].to;
            return STATUS_OK;
        }
    }
    return err_fail(err, STATUS_CONFLICT, "a job that is %s has no way to %s", job_state_text(from),
                    job_event_text(event));
}

static enum status name_check(const char *what, const char *name, const char *more, struct err *err)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyz";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    size_t len = strlen(name);
    bool good = len > 0 && len <= JOB_NAME_MAX && strchr(first, name[0]) != NULL;
    for (size_t i = 1; good && i < len; i++) {
        good = strchr(rest, name[i]) != NULL || strchr(more, name[i]) != NULL;
    }
    if (!good) {
        return err_fail(err, STATUS_INVALID,
                        "%s '%.80s': must match ^[a-z][a-z0-9_%s]*$ and have at most %d octets",
                        what, name, more, JOB_NAME_MAX);
    }
    return STATUS_OK;
}

enum status job_kind_check(const char *name, struct err *err)
{
    return name_check("kind", name, "", err);
}

enum status job_queue_check(const char *name, struct err *err)
{
    return name_check("queue", name, ".-", err);
}

int64_t job_backoff_us(int attempt, int unit)
{
    int64_t delay = BACKOFF_FIRST_US;
    for (int n = 1; n < attempt && delay < BACKOFF_MAX_US; n++) {
        delay *= 2;
    }
    delay = delay < BACKOFF_MAX_US ? delay : BACKOFF_MAX_US;
    return delay - delay / 10 + delay / 5 * unit / 1000;
}
