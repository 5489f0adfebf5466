/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hint.h"

#include "base/parse.h"

#include <stdio.h>
#include <stdlib.h>

#define PRIORITY_MAX 9

int64_t hint_score(int priority, int64_t due_unix_us)
{
    int64_t due_ms = due_unix_us / 1000;
    due_ms = due_ms < 0 ? 0 : due_ms < HINT_PRIORITY_STEP ? due_ms : HINT_PRIORITY_STEP - 1;
    int p = priority < 0 ? 0 : priority < PRIORITY_MAX ? priority : PRIORITY_MAX;
    return p * HINT_PRIORITY_STEP + due_ms;
}

int64_t hint_score_parse(const char *text)
{
    const double max = (PRIORITY_MAX + 1.0) * (double)HINT_PRIORITY_STEP - 1.0;
    double score = strtod(text, NULL);
    return !(score > 0.0) ? 0 : score < max ? (int64_t)score : (int64_t)max;
}

int64_t hint_score_ms(int64_t score)
{
    return score % HINT_PRIORITY_STEP;
}

int hint_score_priority(int64_t score)
{
    return (int)(score / HINT_PRIORITY_STEP);
}

enum status hint_id_parse(const char *text, size_t len, int64_t *ret_id, struct err *err)
{
    return parse_i64(text, len, 1, INT64_MAX, ret_id, err);
}

static size_t key_len(int printed)
{
    return printed < 0 ? 0 : printed < HINT_KEY_MAX ? (size_t)printed : HINT_KEY_MAX - 1;
}

size_t hint_key(char *ret_key, const char *prefix, const char *queue, const char *kind)
{
    int n = kind == NULL ? snprintf(ret_key, HINT_KEY_MAX, "%s:hints:%s", prefix, queue)
                         : snprintf(ret_key, HINT_KEY_MAX, "%s:hints:%s:%s", prefix, queue, kind);
    return key_len(n);
}

size_t hint_wake_key(char *ret_key, const char *prefix, const char *worker_id)
{
    return key_len(snprintf(ret_key, HINT_KEY_MAX, "%s:hints:!%s", prefix, worker_id));
}

void job_lock_prefix(char *ret_prefix, const char *prefix)
{
    (void)snprintf(ret_prefix, LOCK_KEY_MAX, "%s:job:", prefix);
}

size_t job_lock_key(char *ret_key, const char *prefix, int64_t id)
{
    int n = snprintf(ret_key, LOCK_KEY_MAX, "%s:job:%lld", prefix, (long long)id);
    return n < 0 ? 0 : n < LOCK_KEY_MAX ? (size_t)n : LOCK_KEY_MAX - 1;
}
