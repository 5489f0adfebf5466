/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/result_ring.h"

#include <assert.h>

/* Counts only grow; the position in the ring is the count modulo its size, a power of two. */
static_assert((RUNNER_RING_BYTES & (RUNNER_RING_BYTES - 1)) == 0, "counts wrap with the ring");

bool result_ring_put(struct runner_page *page, const char *bytes, size_t len)
{
    uint64_t put = atomic_load(&page->ring_put);
    uint64_t taken = atomic_load(&page->ring_taken);
    if (put - taken > RUNNER_RING_BYTES || len > RUNNER_RING_BYTES - (size_t)(put - taken)) {
        return false;
    }
    size_t at = (size_t)(put % RUNNER_RING_BYTES);
    size_t first = len < RUNNER_RING_BYTES - at ? len : RUNNER_RING_BYTES - at;
    memcpy(page->ring + at, bytes, first);
    memcpy(page->ring, bytes + first, len - first);
    atomic_store(&page->ring_put, put + len);
    return true;
}

enum status result_ring_take(struct runner_page *page, uint64_t *taken, struct buf *in,
                             struct err *err)
{
    uint64_t put = atomic_load(&page->ring_put);
    if (put == *taken) {
        return STATUS_OK;
    }
    if (put - *taken > RUNNER_RING_BYTES) {
        return err_fail(err, STATUS_INVALID, "the ring of results has %llu bytes",
                        (unsigned long long)(put - *taken));
    }
    size_t len = (size_t)(put - *taken);
    enum status st = buf_reserve(in, len, err);
    if (st != STATUS_OK) {
        return st;
    }
    size_t at = (size_t)(*taken % RUNNER_RING_BYTES);
    size_t first = len < RUNNER_RING_BYTES - at ? len : RUNNER_RING_BYTES - at;
    char *to = buf_at(in) + in->len;
    memcpy(to, page->ring + at, first);
    memcpy(to + first, page->ring, len - first);
    buf_grew(in, len);
    *taken = put;
    atomic_store(&page->ring_taken, put);
    return STATUS_OK;
}
