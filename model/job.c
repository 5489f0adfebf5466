/* SPDX-License-Identifier: Apache-2.0 */
#include "model/job.h"

#define BACKOFF_FIRST_US (INT64_C(15) * 1000000)
#define BACKOFF_MAX_US (INT64_C(3600) * 1000000)

static const char *const state_texts[] = {
#define X(name, text) [JOB_##name] = (text),
    JOB_STATE_MAP(X)
#undef X
};

const struct job_edge job_edges[] = {
    {JOB_AVAILABLE, "claim", JOB_RUNNING},     {JOB_AVAILABLE, "cancel", JOB_CANCELLED},
    {JOB_AVAILABLE, "exhaust", JOB_DISCARDED}, {JOB_AVAILABLE, "expire", JOB_DISCARDED},
    {JOB_RUNNING, "complete", JOB_COMPLETED},  {JOB_RUNNING, "retry", JOB_AVAILABLE},
    {JOB_RUNNING, "snooze", JOB_AVAILABLE},    {JOB_RUNNING, "cancel", JOB_CANCELLED},
    {JOB_RUNNING, "hand back", JOB_AVAILABLE}, {JOB_RUNNING, "rescue", JOB_AVAILABLE},
    {JOB_RUNNING, "discard", JOB_DISCARDED},   {JOB_RUNNING, "lose", JOB_DISCARDED},
};
const size_t job_edge_count = ARRAY_COUNT(job_edges);

const char *job_state_text(enum job_state s)
{
    return (size_t)s < ARRAY_COUNT(state_texts) ? state_texts[s] : "no state";
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
                        "%s '%.80s': must match ^[a-z][a-z0-9_%s]*$ and have at most %d bytes",
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

bool kind_settings_equal(const struct kind_settings *a, const struct kind_settings *b)
{
    return a->max_attempts == b->max_attempts && a->max_crashes == b->max_crashes &&
           a->timeout_us == b->timeout_us && a->grace_us == b->grace_us &&
           a->at_most_once == b->at_most_once && a->keeps_log == b->keeps_log &&
           strcmp(a->backoff, b->backoff) == 0;
}
