/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/run_said.h"

void run_said_reset(struct runner_page *page)
{
    atomic_store(&page->progress_count, 0);
    atomic_store(&page->checkpoint_count, 0);
}

static void begin(_Atomic uint32_t *count)
{
    atomic_fetch_add(count, 1);
    atomic_thread_fence(memory_order_seq_cst);
}

static void end(_Atomic uint32_t *count)
{
    atomic_thread_fence(memory_order_seq_cst);
    atomic_fetch_add(count, 1);
}

void run_said_progress(struct runner_page *page, int percent, const char *text, size_t len)
{
    begin(&page->progress_count);
    page->percent = percent;
    page->progress_len = (uint32_t)len;
    memcpy(page->progress, text, len);
    end(&page->progress_count);
}

void run_said_checkpoint(struct runner_page *page, const char *json, size_t len)
{
    begin(&page->checkpoint_count);
    page->checkpoint_len = (uint32_t)len;
    memcpy(page->checkpoint, json, len);
    end(&page->checkpoint_count);
}

/* True if the values that were read are consistent and belong to the run. Callers read a length
 * only once, because the runner may change it at any time. */
static bool is_whole(const struct runner_page *page, int64_t nonce, const _Atomic uint32_t *count,
                     uint32_t before)
{
    atomic_thread_fence(memory_order_seq_cst);
    return before % 2 == 0 && atomic_load(count) == before &&
           atomic_load(&page->started_nonce) == nonce;
}

bool run_said_read_progress(const struct runner_page *page, int64_t nonce, uint32_t *count,
                            int *ret_percent, char *ret_text, size_t *ret_len)
{
    uint32_t now = atomic_load(&page->progress_count);
    if (now == *count) {
        return false;
    }
    int percent = *(const volatile int32_t *)&page->percent;
    size_t len = *(const volatile uint32_t *)&page->progress_len;
    len = len < RUNNER_PROGRESS_BYTES ? len : RUNNER_PROGRESS_BYTES;
    memcpy(ret_text, page->progress, len);
    if (!is_whole(page, nonce, &page->progress_count, now)) {
        return false;
    }
    *count = now;
    *ret_percent = percent < 0 ? 0 : percent > 100 ? 100 : percent;
    *ret_len = len;
    return true;
}

bool run_said_read_checkpoint(const struct runner_page *page, int64_t nonce, uint32_t *count,
                              char *ret_json, size_t *ret_len)
{
    uint32_t now = atomic_load(&page->checkpoint_count);
    if (now == *count) {
        return false;
    }
    size_t len = *(const volatile uint32_t *)&page->checkpoint_len;
    len = len < JOB_CHECKPOINT_MAX ? len : JOB_CHECKPOINT_MAX;
    memcpy(ret_json, page->checkpoint, len);
    if (!is_whole(page, nonce, &page->checkpoint_count, now)) {
        return false;
    }
    *count = now;
    *ret_len = len;
    return true;
}
