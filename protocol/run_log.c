/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/run_log.h"

#include <assert.h>

/* An append in progress does not overwrite the tail: there is at most one line by the handler's
 * thread, and one by the thread that reads the output. */
static_assert(JOB_LOG_TAIL_MAX + 2 * RUN_LOG_LINE_MAX <= RUNNER_LOG_BYTES, "lines spare the tail");

void run_log_reset(struct runner_page *page)
{
    atomic_store(&page->log_total, 0);
}

void run_log_append(struct runner_page *page, const char *bytes, size_t len)
{
    size_t n = len < RUN_LOG_LINE_MAX ? len : RUN_LOG_LINE_MAX;
    int64_t total = atomic_fetch_add(&page->log_total, (int64_t)n);
    size_t at = (size_t)(uint64_t)total % RUNNER_LOG_BYTES;
    size_t first = n < RUNNER_LOG_BYTES - at ? n : RUNNER_LOG_BYTES - at;
    memcpy(page->log + at, bytes, first);
    memcpy(page->log, bytes + first, n - first);
}

size_t run_log_tail(const struct runner_page *page, char ret_tail[JOB_LOG_TAIL_MAX])
{
    int64_t total = atomic_load(&page->log_total);
    if (total <= 0) {
        return 0;
    }
    size_t n = (uint64_t)total < JOB_LOG_TAIL_MAX ? (size_t)total : JOB_LOG_TAIL_MAX;
    size_t at = (size_t)((uint64_t)total - n) % RUNNER_LOG_BYTES;
    size_t first = n < RUNNER_LOG_BYTES - at ? n : RUNNER_LOG_BYTES - at;
    memcpy(ret_tail, page->log + at, first);
    memcpy(ret_tail + first, page->log, n - first);
    return n;
}
